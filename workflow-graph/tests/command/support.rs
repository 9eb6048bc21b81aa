//! A folder of documents and scripts, and the command in it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A gate between two values.
pub(crate) const GATE: &str = "
graph: refund
input: {type: object, properties: {cents: {type: integer}}, required: [cents]}
nodes:
  approve:
    human:
      ask: Refund ${ input.cents } cents?
      reply: {type: object, properties: {granted: {type: boolean}}, required: [granted]}
    next: [{when: approve.granted, to: pay}, {to: refuse}]
  pay: {value: {refunded: \"${ input.cents }\"}}
  refuse: {value: {refunded: 0}}
";

/// A node that a script can hold up, between two others.
pub(crate) const SLOW: &str = "
graph: slow
nodes:
  first: {function: numbers.first, next: slow}
  slow: {function: numbers.slow, retry: none, next: last}
  last: {value: {first: \"${ first.n }\", slow: \"${ slow.n }\"}}
";

/// The slow node takes longer than any test.
pub(crate) const STUCK: &str = "nodes: {first: [{data: {n: 1}}], slow: [{data: {n: 2}, after: 3600s}]}";

/// Entries that differ from those of `STUCK`, so that a node which ran again shows.
pub(crate) const QUICK: &str = "nodes: {first: [{data: {n: 7}}], slow: [{data: {n: 8}}]}";

/// The effects of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let Output { status, stdout, stderr } = output;
        let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        Self { code: status.code().unwrap(), out, err }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// The command of a `… with: …` line.
    pub(crate) fn proposed(&self) -> Vec<String> {
        let line = self.err.lines().find_map(|line| line.split_once("with: workflow-graph ")).unwrap();
        let words = line.1.split(' ').map(|word| word.trim_matches('\'').to_owned());
        words.collect()
    }
}

/// A folder that is deleted with the test.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    /// The command in this folder, whose standard input is empty.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command(self.0.path(), arguments)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs the command with a standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command may end before it has read everything.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Starts the command, and returns it once it has printed a line of progress with this text.
    pub(crate) fn until(&self, arguments: &[&str], text: &str) -> Started {
        Started::until(self.command(arguments), text)
    }
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workflow-graph"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// A command under way.
pub(crate) struct Started {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
    err: String,
}

impl Started {
    /// Starts a command, and returns it once it has printed a line of progress with this text.
    pub(crate) fn until(mut command: Command, text: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut err = String::new();
        while !err.contains(text) {
            let read = lines.read_line(&mut err).unwrap();
            assert!(read > 0, "it ended without `{text}`: {err}");
        }
        Self { child, lines, err }
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> (Option<i32>, Ran) {
        self.lines.read_to_string(&mut self.err).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, Ran { code: code.unwrap_or(-1), out, err: self.err })
    }
}
