//! The workers' record beside the store: lines of a file, each appended with one call, so that they are in real order
//! across processes.
//!
//! If a process is killed during a call, Linux may cut the call at a page boundary of the file. So each line also
//! begins with a line break, which isolates the cut part on its own line.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::RunInfo;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Line {
    /// The start of a run has returned.
    Started { run: String },
    /// A step has performed a side effect.
    Did(Deed),
    /// A killed process has left the contexts of this many ended runs.
    Left { contexts: usize },
    /// A worker has read this many journals that a killed process left.
    Read { journals: usize },
    /// The store has confirmed an execution's success.
    Kept { run: String, execution: u64 },
    /// The pause of a run has returned.
    Paused { run: String },
    /// A run is about to be unpaused.
    Unpauses { run: String },
}

/// A step's side effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deed {
    pub(crate) process: u32,
    pub(crate) run: String,
    pub(crate) step: String,
    /// The subject of the effect, which distinguishes the steps of branches.
    pub(crate) what: u32,
    pub(crate) execution: u64,
    pub(crate) attempt: u32,
    pub(crate) key: String,
}

/// The file. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<File>);

impl Ledger {
    pub(crate) fn of(folder: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().create(true).append(true).open(path(folder)).unwrap()))
    }

    pub(crate) fn add(&self, line: &Line) {
        let text = format!("\n{}\n", serde_json::to_string(line).unwrap());
        // One call, so that lines of several processes do not mix.
        let written = (&*self.0).write(text.as_bytes()).unwrap();
        assert_eq!(written, text.len(), "the process lives, and a part of its line is missing");
    }

    /// Records a side effect for this subject.
    pub(crate) fn did(&self, what: u32, info: &RunInfo) {
        self.add(&Line::Did(Deed {
            process: std::process::id(),
            run: info.run().to_string(),
            step: info.step().to_owned(),
            what,
            execution: info.execution().0,
            attempt: info.attempt(),
            key: info.idempotency_key(),
        }));
    }
}

/// The complete lines so far.
pub(crate) fn lines(folder: &Path) -> Vec<Line> {
    lines_of(&fs::read_to_string(path(folder)).unwrap_or_default())
}

fn lines_of(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.filter_map(line).collect()
}

/// `None` for the beginning of a line whose process was killed while writing: the process has done nothing after it.
fn line(text: &str) -> Option<Line> {
    match serde_json::from_str(text) {
        Ok(line) => Some(line),
        Err(error) if error.is_eof() => None,
        Err(error) => panic!("{error}: {text}"),
    }
}

/// This process has opened the store.
pub(crate) fn hold(folder: &Path) {
    let mut holders = OpenOptions::new().create(true).append(true).open(holders(folder)).unwrap();
    // Eight bytes each, so that none of these lines crosses a page boundary.
    holders.write_all(format!("{:>7}\n", std::process::id()).as_bytes()).unwrap();
}

/// The last process that opened the store; `None` if none has.
pub(crate) fn latest_holder(folder: &Path) -> Option<u32> {
    let text = fs::read_to_string(holders(folder)).unwrap_or_default();
    let whole = text.split_inclusive('\n').rfind(|line| line.ends_with('\n'))?;
    Some(whole.trim().parse().unwrap())
}

fn holders(folder: &Path) -> PathBuf {
    folder.join("holders")
}

fn path(folder: &Path) -> PathBuf {
    folder.join("ledger")
}

#[test]
fn a_line_that_a_killed_process_has_begun_hides_none_that_follow() {
    let started = |run: &str| Line::Started { run: run.to_owned() };
    let whole = [started("a"), started("b")].map(|line| serde_json::to_string(&line).unwrap());
    let [first, second] = &whole;
    for end in 1..first.len() {
        let text = format!("\n{}\n{second}\n", &first[..end]);
        assert_eq!(lines_of(&text), [started("b")], "cut after {end} bytes");
    }
    assert_eq!(lines_of(&format!("\n{first}\n{second}\n")), [started("a"), started("b")]);
}
