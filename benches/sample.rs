//! Crates that are written, and compiled to see what that costs: each is a workspace of its own, with the dependencies
//! of this one as its lock file has them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A crate to be compiled.
#[derive(Debug)]
pub struct Sample {
    root: PathBuf,
}

/// The cost of a build.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Until it was done.
    pub time: Duration,
    /// Of all processors together; none where the system does not say so.
    pub processor: Option<Duration>,
}

/// Where `workflow-core` is, as a dependency.
pub fn workflow_core() -> String {
    format!("workflow-core = {{ path = '{}' }}\n", workspace().join("workflow-core").display())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Sample {
    /// Writes a program with these lines of dependencies into a folder of its own.
    ///
    /// # Panics
    /// If that fails.
    pub fn write(root: &Path, name: &str, dependencies: &str, source: &str) -> Self {
        let root = root.join(name);
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{dependencies}"
        );
        std::fs::create_dir_all(root.join("src")).expect("a folder for the crate");
        std::fs::write(root.join("Cargo.toml"), manifest).expect("a manifest");
        std::fs::write(root.join("src/main.rs"), source).expect("a source");
        std::fs::copy(workspace().join("Cargo.lock"), root.join("Cargo.lock"))
            .expect("the workspace's lock file");
        Self { root }
    }

    /// Compiles the crate anew; its dependencies are kept from the first time.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn compile(&self, command: &[&str]) -> u64 {
        let source = self.root.join("src/main.rs");
        let text = std::fs::read(&source).expect("the source");
        std::fs::write(&source, text).expect("the source, written again");
        let output = self.cargo(command, &self.root.join("../target"));
        u64::from(output.status.success())
    }

    /// Compiles it and all its dependencies.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn build_from_scratch(&self) -> Spent {
        let target = self.root.join("target");
        if target.exists() {
            std::fs::remove_dir_all(&target).expect("what was built before is removed");
        }
        let (began, before) = (Instant::now(), processor_time());
        self.cargo(&["build"], &target);
        let processor = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
        Spent { time: began.elapsed(), processor }
    }

    /// How many crates are compiled for it on this system, itself among them, with those of macros and build scripts.
    ///
    /// # Panics
    /// If cargo does not list them.
    pub fn crates(&self) -> u64 {
        let output = self.run(Command::new(env!("CARGO")).args([
            "tree",
            "--offline",
            "--edges=normal,build",
            "--prefix=none",
        ]));
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len() as u64
    }

    fn cargo(&self, command: &[&str], target: &Path) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        self.run(cargo.args(command).args(["--quiet", "--offline", "--target-dir"]).arg(target))
    }

    /// Without what only serves to compile it again, as a dependency from a registry is compiled.
    fn run(&self, command: &mut Command) -> Output {
        let output =
            command.env("CARGO_INCREMENTAL", "0").current_dir(&self.root).output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

/// The processor time of all processes that this one has waited for, in the hundredths of a second in which Linux
/// counts.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let (user, system) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
    Some(Duration::from_millis(10 * (user + system)))
}
