//! The replay check, for tests: a second state follows the journal of a live run and must equal the run's own
//! state (S39). A checked run costs many times as much as an unchecked one.
//!
//! ```text
//! batch ─▶ RunState (live) ───────────────────────────┐
//!   └────▶ records ─▶ JSON ─▶ records ─▶ Replay ──────┴─▶ equal as text, or the test fails
//! ```
//!
//! The check compares whenever the live state has everything that follows from a batch: each time in a short
//! journal, at growing distances in a long one. At the end of the run it replays the whole journal from the
//! beginning to each of ten positions, and compares again. Of a very long journal it checks only the
//! beginning.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::earlier_tables::EarlierTables;
use super::host::Host;
use super::state::{Contradiction, Replay, RunState};
use crate::id::Seq;
use crate::json::Difference;
use crate::scheduler::{CleanUp, End, SchedulerLimits};
use crate::store::{Position, Record};

/// The most snapshots that are compared again at the end.
const SNAPSHOTS: usize = 10;

/// Up to this many records, the check compares after every batch.
const COMPARE_EACH: usize = 64;

/// The most records that are checked, which bounds the time and the memory of a check.
const MAX_RECORDS: usize = 2_048;

/// A second state that follows a run's journal.
pub(super) struct ReplayCheck {
    host: Arc<Host>,
    began_at: SystemTime,
    /// `None` once a record has no JSON, since such a run has no journal, and once the check is over.
    replay: Option<Replay>,
    /// Every record, as it was read back from JSON.
    records: Vec<Record>,
    /// The number of records at which the next comparison is due.
    compare_at: usize,
    /// The last event whose value was compared.
    compared: Seq,
    /// Snapshots of the live state, with the number of records at each.
    snapshots: Vec<(usize, String)>,
    failures: Arc<ReplayFailures>,
}

/// The differences that the replay checks of an engine's runs have found.
#[derive(Debug, Default)]
pub(crate) struct ReplayFailures(Mutex<Vec<String>>);

impl ReplayFailures {
    /// Notes a failure and panics. The panic ends the run's task; the test fails when it drops the engine.
    fn note(&self, failure: &str) -> ! {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(failure.to_owned());
        panic!("{failure}");
    }

    /// The first failure, if there is one.
    pub(crate) fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

impl ReplayCheck {
    /// The check of a run that began at this time, before its first record.
    pub(super) fn new(host: &Arc<Host>, began_at: SystemTime, failures: &Arc<ReplayFailures>) -> Box<Self> {
        let (host, records, snapshots) = (Arc::clone(host), Vec::new(), Vec::new());
        let replay =
            Replay::new(Arc::clone(&host), RunState::new(&host.table, SchedulerLimits::NONE), began_at);
        let failures = Arc::clone(failures);
        Box::new(Self {
            host,
            began_at,
            replay: Some(replay),
            records,
            compare_at: 0,
            compared: Seq(0),
            snapshots,
            failures,
        })
    }

    /// Reads the journal that a run resumes from.
    pub(super) fn resume(&mut self, records: &[Record]) {
        self.recall(records);
        self.take(records);
    }

    fn recall(&mut self, records: &[Record]) {
        if let Some(replay) = &mut self.replay {
            replay.recall(records, &EarlierTables::of(&self.host.table, records));
        }
    }

    /// Reads the records of one batch of the journal.
    ///
    /// # Panics
    /// If the records do not follow from those before them.
    pub(super) fn take(&mut self, records: &[Record]) {
        let Some(replay) = &mut self.replay else { return };
        let Some(records) = records.iter().map(read_back).collect::<Option<Vec<_>>>() else {
            self.replay = None;
            return;
        };
        if let Err(contradiction) = replay.take(&records) {
            self.fail(&contradiction, &records);
        }
        self.records.extend(records);
        if self.records.len() > MAX_RECORDS {
            self.finish();
        }
    }

    /// Compares both states, if a comparison is due. The live state must have everything that follows.
    ///
    /// # Panics
    /// If the states differ.
    #[cold]
    pub(super) fn compare(&mut self, live: &RunState) {
        let is_due = match live.end() {
            None => self.records.len() >= self.compare_at,
            // The journal has the limit that was reached only once the run ends, and how a clean-up was stopped never.
            // Nor does it have the trigger of a precondition that failed.
            Some(
                End::LogFull
                | End::TooManyExecutions
                | End::TooManyEvents(_)
                | End::TooManyItems(_)
                | End::PreconditionFailed(_),
            ) => false,
            Some(_) if live.scheduler.clean_up().is_some_and(CleanUp::was_stopped) => false,
            // The journal does not know of the results that come late before the clean-up begins.
            Some(_) if live.scheduler.is_to_clean_up() && self.has_snapshot() => false,
            Some(End::Completed(_) | End::Failed(_) | End::Stalled) => true,
            // The journal has any other end since the clean-up began.
            Some(_) if live.scheduler.cleans_up() => true,
            // Any other end follows only from a later record: `RunEnded`.
            Some(_) => false,
        };
        let Some(replay) = self.replay.as_mut().filter(|_| is_due) else { return };
        let replayed = replay.state();
        if let Some((seq, difference)) = event_difference(live, replayed, &mut self.compared) {
            self.fail_event(live, seq, &difference);
        }
        let (live, replayed) = (live.snapshot(), replayed.snapshot());
        let position = replay.position();
        self.assert_same(&live, &replayed, position, self.records.last());
        let len = self.records.len();
        // A batch that has no record is a mistake too, and no other batch may follow: short journals are
        // compared each time.
        self.compare_at = if len < COMPARE_EACH { len } else { len + len / 4 };
        self.snapshots.pop_if(|(at, _)| *at == len);
        if self.snapshots.len() < SNAPSHOTS {
            self.snapshots.push((len, live));
        } else {
            // Old snapshots thin out, so that the rest stays spread over the run.
            self.snapshots.remove(1 + len % (SNAPSHOTS - 1));
            self.snapshots.push((len, live));
        }
    }

    /// Whether the state behind the latest record was compared.
    fn has_snapshot(&self) -> bool {
        self.snapshots.last().is_some_and(|(at, _)| *at == self.records.len())
    }

    /// Ends the check: replays the journal from its beginning to each snapshot.
    ///
    /// # Panics
    /// If a state differs from its snapshot.
    pub(super) fn finish(&mut self) {
        if self.replay.take().is_none() {
            return;
        }
        for (len, live) in std::mem::take(&mut self.snapshots) {
            let records = &self.records[..len];
            let state = RunState::new(&self.host.table, SchedulerLimits::NONE);
            let mut replay = Replay::new(Arc::clone(&self.host), state, self.began_at);
            replay.recall(records, &EarlierTables::of(&self.host.table, records));
            if let Err(contradiction) = replay.take(records) {
                self.fail(&contradiction, records);
            }
            let replayed = replay.state().snapshot();
            self.assert_same(&live, &replayed, replay.position(), records.last());
        }
    }

    /// Notes that the journal cannot be replayed.
    fn fail(&self, contradiction: &Contradiction, records: &[Record]) -> ! {
        let Contradiction { position, what } = contradiction;
        self.failures.note(&format!(
            "the replay check: the journal of a run of `{}` cannot be replayed at {position}: {what}\n{}",
            self.host.table.name,
            text_of(records)
        ));
    }

    // The text of a snapshot is JSON, so it cannot show this difference.
    fn fail_event(&self, live: &RunState, seq: Seq, Difference { path, sides }: &Difference) -> ! {
        let is_it = |record: &Record| matches!(record, Record::EventLogged { seq: at, .. } if *at == seq);
        let before = self.records.iter().position(is_it).unwrap_or(self.records.len());
        let record = self.records.get(before);
        let name = live.log.get(seq).map_or("", |record| record.event.name());
        let place = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
        let [live, replayed] = sides.each_ref().map(|side| side.as_deref().unwrap_or("nothing"));
        self.failures.note(&format!(
            "the replay check: event `{name}`, {seq} of a run of `{}`, is read back as another value{place}\n  the run \
             has:     {live}\n  the journal has: {replayed}\n  the record at {}: {}",
            self.host.table.name,
            Position::default().after(before),
            text_of(record.map(std::slice::from_ref).unwrap_or_default())
        ));
    }

    /// Notes the first line in which two snapshots differ, if they do.
    fn assert_same(&self, live: &str, replayed: &str, position: Position, last: Option<&Record>) {
        if live == replayed {
            return;
        }
        let mut lines = live.lines().zip(replayed.lines());
        let (live, replayed) = lines.find(|(live, replayed)| live != replayed).unwrap_or((live, replayed));
        self.failures.note(&format!(
            "the replay check: a run of `{}` and its journal differ at {position}\n  the run has:     {live}\n  the \
             journal has: {replayed}\n  the last record: {}",
            self.host.table.name,
            text_of(last.map(std::slice::from_ref).unwrap_or_default())
        ));
    }
}

/// The first event that was not compared yet and differs, with the difference.
fn event_difference(live: &RunState, replayed: &RunState, compared: &mut Seq) -> Option<(Seq, Difference)> {
    let pairs = live.log.since(*compared).zip(replayed.log.since(*compared));
    pairs.into_iter().find_map(|(live, replayed)| {
        compared.0 += 1;
        Some((*compared, live.event.difference(&replayed.event)?))
    })
}

/// The record as a store that keeps bytes returns it; `None` if it has no JSON.
fn read_back(record: &Record) -> Option<Record> {
    serde_json::from_slice(&serde_json::to_vec(record).ok()?).ok()
}

/// The records as JSON, a line each.
fn text_of(records: &[Record]) -> String {
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
