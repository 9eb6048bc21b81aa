//! Other libraries, in a separate program: it reads requests by lines and answers with times.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Their names.
pub(crate) const NAMES: [&str; 3] = ["cano", "graph-flow", "ractor"];

/// The program with the other libraries; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Peers {
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
    child: Child,
}

impl Peers {
    /// Starts the program if it was built, or builds it first on request.
    ///
    /// # Panics
    /// If it cannot be built.
    pub(crate) fn start(build: bool) -> Option<Self> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("peers");
        if build {
            let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
            let status = cargo.arg("--target-dir").arg(&target).status().expect("cargo runs");
            assert!(status.success(), "the peers cannot be built");
        }
        let program = target.join("release/workflow-peers");
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (asked, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { asked, answers, child })
    }

    /// The time of one library for a shape; `None` if it does not support the shape.
    ///
    /// # Panics
    /// If the program has ended.
    pub(crate) fn go(&mut self, shape: &str, name: &str) -> Option<Duration> {
        writeln!(self.asked, "{shape} {name}").expect("the peers are there");
        let mut answer = String::new();
        let read = self.answers.read_line(&mut answer).expect("the peers write text");
        assert!(read > 0, "the peers have ended");
        answer.trim().parse().ok().map(Duration::from_nanos)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // A program that has already ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
