//! What workers write down beside the store: lines of a file that each is appended to with one call, so that they stand
//! in the order in which things happened, whoever did them.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::RunInfo;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Line {
    /// Starting a run returned.
    Started { run: String },
    /// A step has done something outside.
    Did(Deed),
    /// A process that was killed has left the contexts of so many runs that had ended.
    Left { contexts: usize },
    /// A worker has read this many journals, which a process that was killed has left.
    Read { journals: usize },
    /// The store has answered that an execution's success is kept.
    Kept { run: String, execution: u64 },
}

/// What a step has done outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deed {
    pub(crate) process: u32,
    pub(crate) run: String,
    pub(crate) step: String,
    /// What it was done for: the steps of branches are told apart by it.
    pub(crate) what: u32,
    pub(crate) execution: u64,
    pub(crate) attempt: u32,
    pub(crate) key: String,
}

/// The file. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<File>);

impl Ledger {
    pub(crate) fn of(folder: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().create(true).append(true).open(path(folder)).unwrap()))
    }

    pub(crate) fn add(&self, line: &Line) {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        // One call, so that no line is torn, and lines of several processes do not mix.
        let written = (&*self.0).write(&text).unwrap();
        assert_eq!(written, text.len(), "a line was torn");
    }

    /// A step does something for this.
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

/// The whole lines that are there.
pub(crate) fn lines(folder: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path(folder)).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// This process has opened the store.
pub(crate) fn hold(folder: &Path) {
    let mut holders = OpenOptions::new().create(true).append(true).open(holders(folder)).unwrap();
    holders.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
}

/// The process that has opened the store last; none if nobody has.
pub(crate) fn latest_holder(folder: &Path) -> Option<u32> {
    let text = fs::read_to_string(holders(folder)).unwrap_or_default();
    let whole = text.split_inclusive('\n').rfind(|line| line.ends_with('\n'))?;
    Some(whole.trim_end().parse().unwrap())
}

fn holders(folder: &Path) -> PathBuf {
    folder.join("holders")
}

fn path(folder: &Path) -> PathBuf {
    folder.join("ledger")
}
