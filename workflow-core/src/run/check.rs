//! The replay check: a second state follows the journal of a run, out of records that were written and read back, and has
//! to be what the run itself has come to. It is for tests, and costs a run many times what it costs alone.
//!
//! Every record goes through JSON before the second state takes it in. Whenever all that follows from a batch is in the
//! run's state, both are compared as [text](RunState::snapshot); in a long run at ever longer distances. When the run ends,
//! the whole journal is replayed once more from its beginning to each of ten positions in between. Of a very long journal
//! only the beginning is checked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::host::Host;
use super::state::{Contradiction, Replay, RunState};
use crate::id::Seq;
use crate::json::Difference;
use crate::scheduler::{End, SchedulerLimits};
use crate::store::{Position, Record};

/// The most looks that are kept to be compared with another replay.
const KEPT: usize = 10;

/// Up to so many records, each batch is compared.
const EACH: usize = 64;

/// Of a longer journal only so many records are checked, so that a check is bounded in time and memory.
const MOST: usize = 2_048;

/// A state that follows a run's journal.
pub(super) struct ReplayCheck {
    host: Arc<Host>,
    began_at: SystemTime,
    limits: SchedulerLimits,
    /// None once a record could not be written as JSON: such a run has no journal.
    replay: Option<Replay>,
    /// Every record, as it is read back.
    records: Vec<Record>,
    /// How many records there are at the next comparison.
    next: usize,
    /// The last event of the log that was compared.
    compared: Seq,
    /// What the run had come to when its journal ended there.
    kept: Vec<(usize, String)>,
    failures: Arc<ReplayFailures>,
}

/// What the replay checks of an engine's runs have found.
#[derive(Debug, Default)]
pub(crate) struct ReplayFailures(Mutex<Vec<String>>);

impl ReplayFailures {
    /// Notes a failure. The run's task ends with it, and its test when the engine is dropped.
    fn note(&self, failure: &str) -> ! {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(failure.to_owned());
        panic!("{failure}");
    }

    /// What was found first, if anything was.
    pub(crate) fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

impl ReplayCheck {
    /// Of a run that began then, and has this in its journal.
    pub(super) fn new(
        host: &Arc<Host>,
        limits: SchedulerLimits,
        began_at: SystemTime,
        failures: &Arc<ReplayFailures>,
    ) -> Box<Self> {
        let (host, records, kept) = (Arc::clone(host), Vec::new(), Vec::new());
        let replay = Replay::new(Arc::clone(&host), RunState::new(&host.table, limits), began_at);
        let failures = Arc::clone(failures);
        Box::new(Self {
            host,
            began_at,
            limits,
            replay: Some(replay),
            records,
            next: 0,
            compared: Seq(0),
            kept,
            failures,
        })
    }

    /// Follows the journal that a run resumes from.
    pub(super) fn resume(&mut self, records: &[Record]) {
        self.recall(records);
        self.take(records);
    }

    fn recall(&mut self, records: &[Record]) {
        if let Some(replay) = &mut self.replay {
            replay.recall(records);
        }
    }

    /// More of the journal: what enters it at once.
    ///
    /// # Panics
    /// If it does not follow from what was there before.
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
        if self.records.len() > MOST {
            self.finish();
        }
    }

    /// Compares, if it is time, once all that follows from the journal so far is in the run's state.
    ///
    /// # Panics
    /// If the two differ.
    pub(super) fn compare(&mut self, live: &RunState) {
        let is_due = match live.end() {
            None => self.records.len() >= self.next,
            Some(End::Completed(_) | End::Failed(_) | End::Stalled) => true,
            // What else ends a run does not follow from its journal before that says so.
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
        // A batch that is in no record is a mistake too, and none may follow: short journals are compared each time.
        self.next = if len < EACH { len } else { len + len / 4 };
        self.kept.pop_if(|(kept, _)| *kept == len);
        if self.kept.len() < KEPT {
            self.kept.push((len, live));
        } else {
            // Old looks thin out, so that those that stay are spread over the run.
            self.kept.remove(1 + len % (KEPT - 1));
            self.kept.push((len, live));
        }
    }

    /// Replays the journal from its beginning to each position that was kept.
    ///
    /// # Panics
    /// If a state differs from the one that the run had there.
    pub(super) fn finish(&mut self) {
        if self.replay.take().is_none() {
            return;
        }
        for (len, live) in std::mem::take(&mut self.kept) {
            let records = &self.records[..len];
            let state = RunState::new(&self.host.table, self.limits);
            let mut replay = Replay::new(Arc::clone(&self.host), state, self.began_at);
            replay.recall(records);
            if let Err(contradiction) = replay.take(records) {
                self.fail(&contradiction, records);
            }
            let replayed = replay.state().snapshot();
            self.assert_same(&live, &replayed, replay.position(), records.last());
        }
    }

    fn fail(&self, contradiction: &Contradiction, records: &[Record]) -> ! {
        let Contradiction { position, what } = contradiction;
        self.failures.note(&format!(
            "the replay check: the journal of a run of `{}` cannot be replayed at {position}: {what}\n{}",
            self.host.table.name,
            text_of(records)
        ));
    }

    /// What JSON cannot tell apart, the snapshots do not.
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

/// The first event behind those that were compared that differs, and how.
fn event_difference(live: &RunState, replayed: &RunState, compared: &mut Seq) -> Option<(Seq, Difference)> {
    let pairs = live.log.since(*compared).zip(replayed.log.since(*compared));
    pairs.into_iter().find_map(|(live, replayed)| {
        compared.0 += 1;
        Some((*compared, live.event.difference(&replayed.event)?))
    })
}

/// The record as it comes back from a store that keeps bytes; nothing if it has no JSON.
fn read_back(record: &Record) -> Option<Record> {
    serde_json::from_slice(&serde_json::to_vec(record).ok()?).ok()
}

fn text_of(records: &[Record]) -> String {
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
