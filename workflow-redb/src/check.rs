//! Verifying the contents of a file: positions without gaps, summaries that agree with journals, and decodable values.
//! `store_file` verifies redb's own pages.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::{Value, from_slice};
use workflow_core::store::{Position, Record, RunSummary};
use workflow_core::{RunId, RunStatus};

use crate::error::Malformed;
use crate::format::{IndexKey, RunEntry, parse_context_key, parse_index_key, parse_record_key, record_keys};
use crate::inbox;
use crate::index::Indexed;
use crate::recent::{self, Finding};
use crate::tables::{ReadError, View};

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The number of runs.
    pub runs: u64,
    /// The number of records.
    pub records: u64,
    /// The number of values of contexts.
    pub context_values: u64,
    /// The number of pending messages in the inbox.
    pub pending_messages: u64,
    /// The first 1,000 problems, in the order of the tables.
    pub problems: Vec<Problem>,
    /// The number of further problems.
    pub more_problems: u64,
}

impl Report {
    /// The most problems in a report.
    const MOST: usize = 1_000;

    /// Whether the check found no problem.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        if self.problems.len() < Self::MOST {
            self.problems.push(problem);
        } else {
            self.more_problems += 1;
        }
    }
}

/// A problem of a file.
///
/// ```
/// use workflow_core::store::Position;
/// use workflow_redb::Problem;
///
/// let gap = Problem::Gap { run: "order-17".into(), expected: Position(3), found: Position(5) };
/// assert_eq!(gap.to_string(), "run `order-17`: position 3 is missing, the next is 5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// Pages of the file differ from those that were written.
    #[error("the file is damaged: {detail}")]
    Damaged {
        /// redb's error.
        detail: String,
    },
    /// A key violates the table's format.
    #[error("table `{table}` has a key that is none: {key}")]
    BadKey {
        /// The table.
        table: &'static str,
        /// The key, with escapes for bytes that are not text.
        key: String,
    },
    /// Records of a run are missing.
    #[error("run `{run}`: position {expected} is missing, the next is {found}")]
    Gap {
        /// The run.
        run: RunId,
        /// The missing position.
        expected: Position,
        /// The next existing position.
        found: Position,
    },
    /// A record cannot be decoded.
    #[error("run `{run}`: the record at {position} cannot be decoded: {detail}")]
    BadRecord {
        /// The run.
        run: RunId,
        /// The record's position.
        position: Position,
        /// The problem.
        detail: String,
    },
    /// A recent write cannot be read.
    #[error("the recent batch {number} cannot be read")]
    BadBatch {
        /// Its number in `workflow.recent`.
        number: u64,
    },
    /// A run has records and no summary.
    #[error("run `{run}` has records and no summary")]
    NoSummary {
        /// The run.
        run: RunId,
    },
    /// A summary cannot be decoded.
    #[error("run `{run}`: the summary cannot be decoded: {detail}")]
    BadSummary {
        /// The run.
        run: RunId,
        /// The problem.
        detail: String,
    },
    /// A journal has another end than its summary.
    #[error("run `{run}` ends at {found}, and its summary says at {summary}")]
    EndDiffers {
        /// The run.
        run: RunId,
        /// The end in the summary.
        summary: Position,
        /// The end of the journal.
        found: Position,
    },
    /// The first record begins no run, or the summary has another workflow or start.
    #[error("run `{run}`: its first record does not begin the run that its summary tells of")]
    StartDiffers {
        /// The run.
        run: RunId,
    },
    /// The last record and the summary have different statuses.
    #[error("run `{run}`: its summary says {summary:?}, and its last record says {found:?}")]
    StatusDiffers {
        /// The run.
        run: RunId,
        /// The status in the summary.
        summary: RunStatus,
        /// The status by the last record.
        found: RunStatus,
    },
    /// The index of open runs has a run too many, or lacks one.
    #[error("run `{run}` is {} the index of runs that have not ended", if *listed { "wrongly in" } else { "missing in" })]
    OpenDiffers {
        /// The run.
        run: RunId,
        /// Whether it is in the index.
        listed: bool,
    },
    /// The index of open runs names another owner than the run's summary.
    #[error("run `{run}`: the index of runs that have not ended names another engine than its summary")]
    OwnerDiffers {
        /// The run.
        run: RunId,
    },
    /// A run is missing in the index by start, or is listed wrongly.
    #[error("run `{run}` is {} in the index by start", if *.listed { "wrongly" } else { "missing" })]
    StartsDiffer {
        /// The run.
        run: RunId,
        /// Whether the index has a key that is not the run's.
        listed: bool,
    },
    /// A pending message cannot be decoded. [`withdraw_message`](crate::RedbStore::withdraw_message) removes it.
    #[error("run `{run}`: the message `{id}` in its inbox cannot be decoded: {detail}")]
    BadMessage {
        /// The run.
        run: RunId,
        /// The message's id.
        id: String,
        /// The problem.
        detail: String,
    },
    /// A pending message is missing in the index of ids, or a message in it is not pending.
    #[error("run `{run}`: the message `{id}` is {} in the index of ids of the inbox", if *.listed { "wrongly" } else { "missing" })]
    MessagesDiffer {
        /// The run.
        run: RunId,
        /// The message's id.
        id: String,
        /// Whether the index has a message that is not pending.
        listed: bool,
    },
    /// A refused message cannot be decoded.
    #[error("the refused message {number} cannot be decoded: {detail}")]
    BadRefusedMessage {
        /// Its number in `workflow.refused`.
        number: u64,
        /// The problem.
        detail: String,
    },
    /// A value of a context cannot be decoded.
    #[error("the value `{key}` of the context of {scope} cannot be decoded: {detail}")]
    BadValue {
        /// The owner of the context.
        scope: String,
        /// The value's key.
        key: String,
        /// The problem.
        detail: String,
    },
}

/// Verifies the tables.
pub(crate) fn tables(view: &View) -> Result<Report, redb::Error> {
    let mut report = Report::default();
    keys(view, &mut report)?;
    recent_batches(view, &mut report)?;
    runs(view, &mut report)?;
    index(view, &mut report)?;
    starts(view, &mut report)?;
    contexts(view, &mut report)?;
    messages(view, &mut report)?;
    Ok(report)
}

/// Reports malformed keys, and runs with records and without an entry.
fn keys(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    let mut before = None;
    for entry in view.records.range::<&[u8]>(..)? {
        let (key, _) = entry?;
        let Some((run, _)) = parse_record_key(key.value()) else {
            report.add(bad_key("workflow.records", key.value()));
            continue;
        };
        if before.as_deref() == Some(run) {
            continue;
        }
        if view.runs.get(run.as_bytes())?.is_none() {
            report.add(Problem::NoSummary { run: run.into() });
            Journal::read(view, run, report)?;
        }
        before = Some(run.to_owned());
    }
    Ok(())
}

/// Reports unreadable recent writes, and runs with recent writes only.
fn recent_batches(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    let mut forgotten = Vec::new();
    recent::walk(view, |walked| match walked {
        Finding::BadKey(key) => report.add(bad_key("workflow.recent", key)),
        Finding::BadBatch(number) => report.add(Problem::BadBatch { number }),
        Finding::Forgotten(run) => forgotten.push(run),
    })?;
    for run in forgotten {
        // The check of the keys has reported a run with records.
        let keys = record_keys(run.as_str(), Position(0));
        if view.records.range(&*keys.start..&*keys.end)?.next().is_none() {
            report.add(Problem::NoSummary { run });
        }
    }
    Ok(())
}

/// A journal, summed up from its records.
struct Journal {
    run: RunId,
    end: Position,
    begins: Option<RunSummary>,
    status: RunStatus,
    /// Whether clean-up has begun and the run has not ended.
    cleans_up: bool,
    /// Whether the run is paused by itself, and with its parent.
    paused: [bool; 2],
}

impl Journal {
    /// Reads the whole journal, and reports problems of its records.
    fn read(view: &View, run: &str, report: &mut Report) -> Result<Self, redb::Error> {
        let mut journal = Self {
            run: run.into(),
            end: Position(0),
            begins: None,
            status: RunStatus::Running,
            cleans_up: false,
            paused: [false; 2],
        };
        let visited = recent::visit(view, run, Position(0), |position, record| {
            journal.add(position, record, report);
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        visited.map_err(ReadError::of_redb)?;
        Ok(journal)
    }

    fn add(&mut self, position: Position, bytes: Result<&[u8], Malformed>, report: &mut Report) {
        report.records += 1;
        if position != self.end {
            report.add(Problem::Gap { run: self.run.clone(), expected: self.end, found: position });
        }
        self.end = position.after(1);
        let before = self.status;
        self.status = if self.cleans_up { RunStatus::CleaningUp } else { RunStatus::Running };
        let mut bad = |detail: String| {
            report.add(Problem::BadRecord { run: self.run.clone(), position, detail });
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(malformed) => return bad(malformed.to_string()),
        };
        match from_slice::<Record>(bytes) {
            Ok(first @ Record::RunStarted { .. }) if position == Position(0) => {
                self.begins = RunSummary::begun_by(&first);
            }
            Ok(Record::RunEnded { status, .. }) => {
                (self.cleans_up, self.paused, self.status) = (false, [false; 2], status);
            }
            Ok(Record::RunPaused { by_parent, .. }) => self.paused[usize::from(by_parent)] = true,
            Ok(Record::RunUnpaused { by_parent, .. }) => self.paused[usize::from(by_parent)] = false,
            Ok(Record::RunWaiting { .. }) if self.paused.contains(&true) => self.status = RunStatus::Paused,
            Ok(Record::RunWaiting { .. }) => self.status = RunStatus::Waiting,
            Ok(Record::CleanUpStarted { .. } | Record::CleanUpRedriven { .. }) => {
                (self.cleans_up, self.paused, self.status) = (true, [false; 2], RunStatus::CleaningUp);
            }
            // The run waits, or is paused, as before.
            Ok(Record::RunKept { .. } | Record::ChildrenEnded { .. }) => self.status = before,
            Ok(_) => {}
            Err(error) => bad(error.to_string()),
        }
    }

    /// Compares it with its run's summary.
    fn compare(self, summary: &RunSummary, report: &mut Report) {
        let run = self.run;
        let begins = self.begins.as_ref();
        // Without a record, only the end is compared.
        if self.end != Position(0) && begins.is_none_or(|begins| !is_of_start(summary, begins)) {
            report.add(Problem::StartDiffers { run: run.clone() });
        }
        if self.end != Position(0) && self.status != summary.status {
            report.add(Problem::StatusDiffers { run, summary: summary.status, found: self.status });
        }
    }
}

fn runs(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    for entry in view.runs.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        report.runs += 1;
        let Ok(id) = std::str::from_utf8(key.value()) else {
            report.add(bad_key("workflow.runs", key.value()));
            continue;
        };
        let run = || RunId::from(id);
        let journal = Journal::read(view, id, report)?;
        let entry = match RunEntry::from_bytes(id, value.value()) {
            Ok(entry) => entry,
            Err(malformed) => {
                report.add(Problem::BadSummary { run: run(), detail: malformed.to_string() });
                continue;
            }
        };
        if entry.end != journal.end {
            report.add(Problem::EndDiffers { run: run(), summary: entry.end, found: journal.end });
        }
        match from_slice::<RunSummary>(entry.summary) {
            Ok(summary) => {
                journal.compare(&summary, report);
                let open = view.open.get(key.value())?;
                let listed = open.is_some();
                if listed == summary.status.is_ended() {
                    report.add(Problem::OpenDiffers { run: run(), listed });
                }
                let owner = summary.owner.as_ref().map_or(&[][..], |owner| owner.as_str().as_bytes());
                if open.is_some_and(|open| !open.value().is_empty() && open.value() != owner) {
                    report.add(Problem::OwnerDiffers { run: run() });
                }
                if !has_its_keys(view, id, &summary)? {
                    report.add(Problem::StartsDiffer { run: run(), listed: false });
                }
            }
            Err(error) => report.add(Problem::BadSummary { run: run(), detail: error.to_string() }),
        }
    }
    Ok(())
}

/// Reports entries of the index without a run. The check of the runs has compared the others.
fn index(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    for entry in view.open.range::<&[u8]>(..)? {
        let (key, _) = entry?;
        if view.runs.get(key.value())?.is_none() {
            let run = RunId::from(String::from_utf8_lossy(key.value()).into_owned());
            report.add(Problem::OpenDiffers { run, listed: true });
        }
    }
    Ok(())
}

/// Whether the summary has the facts of a start. One that an earlier release wrote has only workflow and time.
fn is_of_start(summary: &RunSummary, begins: &RunSummary) -> bool {
    let has_more = summary.thread.is_some();
    summary.workflow == begins.workflow
        && summary.started == begins.started
        && (!has_more
            || (&summary.thread, &summary.metadata, &summary.parent)
                == (&begins.thread, &begins.metadata, &begins.parent))
}

/// Whether the index by start has all keys of a run.
fn has_its_keys(view: &View, run: &str, summary: &RunSummary) -> Result<bool, redb::Error> {
    let Some(index) = &view.index else { return Ok(true) };
    for key in Indexed::of(summary).keys(run) {
        if index.get(&*key)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reports keys of the index by start that no run has.
fn starts(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    let Some(index) = &view.index else { return Ok(()) };
    let mut wrongly = BTreeSet::new();
    for entry in index.range::<&[u8]>(..)? {
        let (key, _) = entry?;
        let Some(IndexKey { run, .. }) = parse_index_key(key.value()) else {
            report.add(bad_key("workflow.index", key.value()));
            continue;
        };
        let entry = view.runs.get(run.as_bytes())?;
        // The check of the runs has reported one that cannot be read.
        let is_known = entry.is_some_and(|entry| {
            Indexed::of_entry(run, entry.value())
                .is_none_or(|facts| facts.keys(run).iter().any(|known| known == key.value()))
        });
        if !is_known {
            wrongly.insert(run.to_owned());
        }
    }
    for run in wrongly {
        report.add(Problem::StartsDiffer { run: run.into(), listed: true });
    }
    Ok(())
}

fn contexts(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    for entry in view.contexts.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        report.context_values += 1;
        let Some((scope, name)) = parse_context_key(key.value()) else {
            report.add(bad_key("workflow.contexts", key.value()));
            continue;
        };
        if let Err(error) = from_slice::<Value>(value.value()) {
            let (scope, key, detail) = (scope.to_string(), name.to_owned(), error.to_string());
            report.add(Problem::BadValue { scope, key, detail });
        }
    }
    Ok(())
}

fn messages(view: &View, report: &mut Report) -> Result<(), redb::Error> {
    let pending = inbox::walk(view, |walked| {
        report.add(match walked {
            inbox::Finding::Key(table, key) => bad_key(table, key),
            inbox::Finding::Message(key, detail) => {
                Problem::BadMessage { run: key.run.into(), id: key.id.to_owned(), detail: detail.to_string() }
            }
            inbox::Finding::Refused(number, detail) => {
                Problem::BadRefusedMessage { number, detail: detail.to_string() }
            }
            inbox::Finding::Id { run, id, listed } => {
                Problem::MessagesDiffer { run: run.into(), id: id.to_owned(), listed }
            }
        });
    })?;
    report.pending_messages = pending;
    Ok(())
}

fn bad_key(table: &'static str, key: &[u8]) -> Problem {
    Problem::BadKey { table, key: key.escape_ascii().to_string() }
}
