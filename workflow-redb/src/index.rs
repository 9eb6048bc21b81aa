//! The index of runs by start: which keys a run has in `workflow.index`. `format` has their bytes, `listing` reads them.
//!
//! Each run has a key in the group of its state, in that of its workflow, and in that of its thread if it has one. The
//! keys follow from the run's summary alone, so that a reader can compare the two.

use std::borrow::Cow;
use std::time::SystemTime;

use redb::ReadableTable;
use serde::Deserialize;
use workflow_core::RunStatus;
use workflow_core::store::RunSummary;

use crate::format::{RunEntry, TIME, beginning_with, index_group, index_time};
use crate::tables::{Bytes, Writing};

/// The group of runs that have not ended.
pub(crate) const OPEN_STATE: &str = "open";

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    State,
    Workflow,
    Thread,
}

/// The facts of a summary that decide its keys.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Indexed<'a> {
    #[serde(borrow)]
    workflow: Cow<'a, str>,
    #[serde(borrow, default)]
    thread: Option<Cow<'a, str>>,
    status: RunStatus,
    started: SystemTime,
}

impl<'a> Indexed<'a> {
    pub(crate) fn of(run: &'a RunSummary) -> Self {
        let thread = run.thread.as_ref().map(|thread| Cow::Borrowed(thread.as_str()));
        Self { workflow: Cow::Borrowed(&run.workflow), thread, status: run.status, started: run.started }
    }

    /// The facts of a run's entry; `None` if it cannot be read.
    pub(crate) fn of_entry(run: &str, entry: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(RunEntry::from_bytes(run, entry).ok()?.summary).ok()
    }

    /// The keys of a run with these facts.
    pub(crate) fn keys(&self, run: &str) -> Vec<Vec<u8>> {
        let groups = [
            Some(index_group(Kind::State, &state(self.status))),
            Some(index_group(Kind::Workflow, &self.workflow)),
            self.thread.as_ref().map(|thread| index_group(Kind::Thread, thread)),
        ];
        let key = |group: Vec<u8>| [&group, &index_time(self.started)[..], run.as_bytes()].concat();
        groups.into_iter().flatten().map(key).collect()
    }
}

/// The name of the group for a status: all open runs are in one.
pub(crate) fn state(status: RunStatus) -> Cow<'static, str> {
    if !status.is_ended() {
        return Cow::Borrowed(OPEN_STATE);
    }
    // Its name in summaries, which never changes.
    let name = serde_json::to_value(status).ok();
    Cow::Owned(name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default())
}

/// Lets the index follow a run from these facts to those.
pub(crate) fn follow(
    index: &mut Writing<'_>,
    run: &str,
    before: Option<&Indexed<'_>>,
    now: Option<&Indexed<'_>>,
) -> Result<(), redb::Error> {
    if before == now {
        return Ok(());
    }
    let [before, now] = [before, now].map(|facts| facts.map(|facts| facts.keys(run)).unwrap_or_default());
    for key in before.iter().filter(|key| !now.contains(key)) {
        index.remove(&**key)?;
    }
    for key in now.iter().filter(|key| !before.contains(key)) {
        index.insert(&**key, &[][..])?;
    }
    Ok(())
}

/// Removes every key of a run whose facts are unknown. O(index): only for a damaged run.
pub(crate) fn forget(index: &mut Writing<'_>, run: &str) -> Result<(), redb::Error> {
    Ok(index.retain(|key, _| crate::format::parse_index_key(key).is_none_or(|key| key.run != run))?)
}

/// The prefixes of all states that runs are in.
pub(crate) fn states(index: &impl ReadableTable<Bytes, Bytes>) -> Result<Vec<Vec<u8>>, redb::Error> {
    let mut groups = Vec::<Vec<u8>>::new();
    let mut rest = beginning_with(vec![Kind::State as u8]);
    while let Some(first) = index.range(&*rest.start..&*rest.end)?.next().transpose()? {
        let key = first.0.value();
        let Some(parsed) = crate::format::parse_index_key(key) else {
            // Skips a key of no group; a check reports it.
            rest.start = [key, &[0]].concat();
            continue;
        };
        let group = key[..key.len() - TIME - parsed.run.len()].to_vec();
        rest.start = beginning_with(group.clone()).end;
        groups.push(group);
    }
    Ok(groups)
}
