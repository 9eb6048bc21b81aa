//! How a run began, read from its journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::id::{ParentRun, RunId, ThreadId, TraceParent};
use crate::outcome::ResumeError;
use crate::run::{Host, RunLayer, RunOptions, RunShared, deadline_of};
use crate::store::{Position, Record, StoreError};
use crate::table::RecordedTable;

/// The facts of a journal's first record.
#[derive(Clone, Copy)]
pub(super) struct Beginning<'r> {
    pub(super) workflow: &'r Arc<str>,
    thread: &'r ThreadId,
    metadata: &'r BTreeMap<String, String>,
    pub(super) parent: Option<&'r ParentRun>,
    pub(super) awaited: bool,
    pub(super) private_thread: bool,
    timeout: Option<Duration>,
    deadline: Option<SystemTime>,
    configs: &'r BTreeMap<String, Value>,
    trace_parent: Option<TraceParent>,
    table: &'r RecordedTable,
    /// Whether a client without an engine began the run.
    pub(super) queued: bool,
}

impl<'r> Beginning<'r> {
    /// Reads the first record. An error if the journal is empty, does not begin a run, or has no event and no end.
    pub(super) fn of(run: &RunId, records: &'r [Record]) -> Result<Self, ResumeError> {
        let opens = |record: &Record| matches!(record, Record::EventLogged { .. } | Record::RunEnded { .. });
        match records.first() {
            None => Err(ResumeError::UnknownRun { run: run.clone() }),
            Some(Record::RunStarted {
                workflow,
                thread,
                metadata,
                parent,
                awaited,
                private_thread,
                timeout,
                configs,
                trace_parent,
                table,
                queued,
                ..
            }) if records.iter().any(opens) => Ok(Self {
                workflow,
                thread,
                metadata,
                parent: parent.as_ref(),
                awaited: *awaited,
                private_thread: *private_thread,
                timeout: *timeout,
                deadline: deadline_of(records),
                configs: if *queued { layers_of_queued(records).unwrap_or(configs) } else { configs },
                trace_parent: *trace_parent,
                table,
                queued: *queued,
            }),
            Some(_) => Err(ResumeError::Store(StoreError::corrupt(run, Position(0), NoBeginning))),
        }
    }

    /// Whether the run is a child that an execution of `parent` waited for.
    pub(super) fn is_awaited_by(&self, parent: &RunId) -> bool {
        self.awaited && self.parent.is_some_and(|names| names.run == *parent)
    }

    /// The table with which the run began.
    pub(super) fn table(&self) -> &'r RecordedTable {
        self.table
    }

    /// The layers of configuration of the run, by the names of their types.
    pub(super) fn configs(&self) -> &'r BTreeMap<String, Value> {
        self.configs
    }

    /// The same with these layers of configuration.
    pub(super) fn with_configs<'a>(self, configs: &'a BTreeMap<String, Value>) -> Beginning<'a>
    where
        'r: 'a,
    {
        Beginning { configs, ..self }
    }

    /// The options of the run's start, as the sources of its configurations are asked for them: a thread of the run's own
    /// has no name yet.
    pub(super) fn asked_options(&self, run: &RunId, host: &Host) -> RunOptions {
        let options = self.options(run, host);
        if self.private_thread && !self.awaited { RunOptions { thread: None, ..options } } else { options }
    }

    /// The options of the run's start.
    pub(super) fn options(&self, run: &RunId, host: &Host) -> RunOptions {
        let mut options = RunOptions::new().id(run.clone()).thread(self.thread.clone());
        options.metadata.clone_from(self.metadata);
        options.timeout = self.timeout;
        for config in host.table.configs() {
            if let Some(layer) = self.configs.get(config.type_name()) {
                options.configs.insert(config.type_id(), RunLayer::of(config, layer.clone()));
            }
        }
        if let Some(deadline) = self.deadline {
            options = options.deadline(deadline);
        }
        options.within_trace(self.trace_parent)
    }

    /// Adds the facts that are not options to a run that an earlier process began.
    pub(super) fn restores(&self, shared: RunShared) -> RunShared {
        // This start decides between the time of a queued run and that of the engine.
        let timeout = if self.queued { shared.timeout } else { self.timeout };
        shared.restored(self.private_thread, timeout)
    }
}

/// The layers of configuration that the first engine of a queued run recorded, if it recorded some.
fn layers_of_queued(records: &[Record]) -> Option<&BTreeMap<String, Value>> {
    records.iter().find_map(|record| match record {
        Record::RunResumed { configs, .. } => Some(configs).filter(|configs| !configs.is_empty()),
        _ => None,
    })
}

#[derive(Debug, thiserror::Error)]
#[error("a journal begins with how its run began, and the event that opened it")]
struct NoBeginning;

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, Written, greeter};
    use super::*;

    #[test]
    fn a_run_is_started_again_as_its_journal_says() {
        let written = Written::default();
        let began = Began { parent: Some("a"), awaited: true, private_thread: Some("t"), ..Began::default() };
        written.begin("a/greet-x1.1", began);
        let records = written.records("a/greet-x1.1");
        let beginning = Beginning::of(&"a/greet-x1.1".into(), &records).unwrap();
        assert_eq!(&**beginning.workflow, "Greeter");
        assert!(beginning.is_awaited_by(&"a".into()) && !beginning.is_awaited_by(&"b".into()));
        let options = beginning.options(&"a/greet-x1.1".into(), &greeter());
        assert_eq!((options.id, options.thread), (Some("a/greet-x1.1".into()), Some("t".into())));
        assert_eq!(options.metadata, [("kind".to_owned(), "test".to_owned())].into());
    }

    #[test]
    fn an_independent_child_is_awaited_by_no_run() {
        let written = Written::default();
        written.begin("b", Began { parent: Some("a"), ..Began::default() });
        let records = written.records("b");
        assert!(!Beginning::of(&"b".into(), &records).unwrap().is_awaited_by(&"a".into()));
    }

    #[test]
    fn a_journal_without_a_beginning_is_none() {
        let written = Written::default();
        written.begin("a", Began::default());
        let records = written.records("a");
        let of = |records| Beginning::of(&"a".into(), records).err();
        assert!(matches!(of(&[]), Some(ResumeError::UnknownRun { .. })));
        for broken in [&records[..1], &records[1..]] {
            let error = of(broken);
            assert!(matches!(error, Some(ResumeError::Store(StoreError::Corrupt { .. }))), "{error:?}");
        }
    }
}
