//! An event store with one fault of any kind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use workflow_core::store::{
    ContextStore, EngineId, EventStore, MemoryContexts, Position, Record, Retention, RunQuery, RunSummary,
    StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{RunId, RunStatus};

mod alter;
mod fault;
mod lease;
mod retain;

use Fault::*;
use alter::alter;
pub(crate) use fault::Fault;

/// Behaves correctly except for one fault.
#[derive(Clone)]
pub(crate) struct FaultyJournals {
    fault: Fault,
    kept: Arc<Mutex<Kept>>,
    contexts: Arc<MemoryContexts>,
}

#[derive(Default)]
struct Kept {
    journals: BTreeMap<RunId, Journal>,
    removed: BTreeMap<RunId, usize>,
    begun: usize,
    leases: BTreeMap<EngineId, (Instant, Duration)>,
}

struct Journal {
    records: Vec<Record>,
    run: RunSummary,
    batches: usize,
    /// Its number in order of creation.
    age: usize,
    /// Whether listings omit it.
    hidden: bool,
    written: SystemTime,
}

impl FaultyJournals {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, kept: Arc::default(), contexts: Arc::default() }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn place(&self, run: &RunId) -> RunId {
        let text = run.as_str();
        match self.fault {
            IgnoresCase => text.to_lowercase().into(),
            CutsIds => text.chars().take(255).collect::<String>().into(),
            // A UUID has 36 characters.
            MixesUpPrefixes => text.chars().take(36).collect::<String>().into(),
            _ => run.clone(),
        }
    }

    /// Whether a batch is refused.
    fn check(&self, run: &RunId, expected: Position, batch: &Write) -> Result<(), StoreError> {
        let mut kept = self.kept.lock().unwrap();
        let was = kept.removed.get(run).copied();
        let journal = kept.journals.get_mut(run);
        let end = journal.as_ref().map_or(0, |journal| journal.records.len());
        let end = if journal.is_none() && self.is(RemembersTheEnd) { was.unwrap_or(0) } else { end };
        let mut found = Position(end as u64);
        let refused = match self.fault {
            BeginsAnywhere => journal.is_some() && found != expected,
            RemovedTakesAnything => was.is_none() && found != expected,
            IgnoresThePosition => false,
            TakesLowPositions => expected > found,
            CountsFromOne => expected != found && expected != Position(found.0 + 1),
            TakesRepeats => expected != found && expected.after(batch.records.len()) != found,
            _ => found != expected,
        };
        if !refused {
            return Ok(());
        }
        match (self.fault, journal) {
            (ConflictChangesTheSummary, Some(journal)) => journal.run = batch.run.clone(),
            (ConflictCutsTheJournal, Some(journal)) => {
                journal.records.truncate(usize::try_from(expected.0).unwrap());
            }
            (FindsOneTooFew, Some(_)) => found.0 -= 1,
            _ => {}
        }
        Err(StoreError::Conflict { expected, found })
    }

    fn write(&self, run: &RunId, expected: Position, Write { records, run: summary }: Write) {
        let mut kept = self.kept.lock().unwrap();
        let age = kept.begun;
        kept.begun += 1;
        let written = SystemTime::now();
        let empty =
            Journal { records: vec![], run: summary.clone(), batches: 0, age, hidden: false, written };
        let journal = kept.journals.entry(run.clone()).or_insert(empty);
        if self.is(TakesRepeats) {
            journal.records.truncate(usize::try_from(expected.0).unwrap());
        }
        journal.records.extend(alter(self.fault, records));
        journal.batches += 1;
        journal.written = written;
        if !self.is(KeepsTheFirstSummary) && !self.is(SumsUpTooLate) {
            let thread = journal.run.thread.take();
            journal.run = summary;
            match self.fault {
                KeepsTheFirstThread => journal.run.thread = thread,
                LosesLabels => journal.run.metadata = Arc::default(),
                RoundsStarts => journal.run.started = round(journal.run.started),
                _ => {}
            }
        }
    }

    fn sum_up(&self, run: &RunId, summary: RunSummary) {
        if let Some(journal) = self.kept.lock().unwrap().journals.get_mut(run) {
            journal.run = summary;
        }
    }

    async fn add(self, run: RunId, expected: Position, mut batch: Write) -> Result<(), StoreError> {
        let place = self.place(&run);
        let unserialisable = batch
            .records
            .iter()
            .find_map(|record| serde_json::to_vec(record).err())
            .map(StoreError::unserialisable);
        if self.is(RefusesTheEmptyId) && run.as_str().is_empty() {
            return Err(StoreError::unavailable(std::fmt::Error));
        }
        self.check(&place, expected, &batch)?;
        match self.fault {
            HidesThatItSerialises => {
                unserialisable.map_or(Ok(()), Err)?;
                self.write(&place, expected, batch);
            }
            AppendsInTwoParts => {
                let rest = batch.records.split_off(batch.records.len() / 2);
                let rest = Write { records: rest, run: batch.run.clone() };
                self.write(&place, expected, batch);
                a_while().await;
                self.write(&place, expected, rest);
            }
            ChecksBeforeItWrites => {
                a_while().await;
                self.write(&place, expected, batch);
            }
            SumsUpTooLate => {
                let summary = batch.run.clone();
                self.write(&place, expected, batch);
                a_while().await;
                self.sum_up(&place, summary);
            }
            AnswersTooEarly => drop(tokio::spawn(async move {
                a_while().await;
                self.write(&place, expected, batch);
            })),
            WritesBeforeItSerialises => {
                self.write(&place, expected, batch);
                return unserialisable.map_or(Ok(()), Err);
            }
            _ => self.write(&place, expected, batch),
        }
        Ok(())
    }

    fn page(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let run = &self.place(run);
        let mut kept = self.kept.lock().unwrap();
        if self.is(ReadingBegins) {
            let summary = RunSummary::running("Unknown", SystemTime::UNIX_EPOCH);
            let written = SystemTime::UNIX_EPOCH;
            let empty = Journal { records: vec![], run: summary, batches: 0, age: 0, hidden: false, written };
            kept.journals.entry(run.clone()).or_insert(empty);
        }
        let Some(journal) = kept.journals.get_mut(run) else {
            let unknown = Err(StoreError::unavailable(std::fmt::Error));
            return if self.is(RefusesUnknownRuns) { unknown } else { Ok(Vec::new()) };
        };
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        let (from, at_most) = match self.fault {
            ReadsOneTooLate if from > 0 => (from.saturating_add(1), at_most.max(1)),
            ReadsFromTheBeginning if from < journal.records.len() => (0, at_most.max(1)),
            ReadsTheLastFromBehind => (from.min(journal.records.len() - 1), at_most.max(1)),
            ReadsAll => (from, usize::MAX),
            ReadsNothingForNothing => (from, at_most),
            ReadsByThrees => (from, at_most / 3 * 3),
            _ => (from, at_most.max(1)),
        };
        let mut page: Vec<Record> = journal.records.iter().skip(from).take(at_most).cloned().collect();
        if self.is(ReadsBackwards) {
            page.reverse();
        }
        if self.is(ReadingRemoves) {
            journal.records.drain(..from.min(journal.records.len()));
        }
        Ok(page)
    }

    fn list(&self, query: &RunQuery) -> Vec<StoredRun> {
        let mut kept = self.kept.lock().unwrap();
        let mut listed: Vec<(usize, StoredRun)> = Vec::new();
        for (id, journal) in kept.journals.iter().filter(|(_, journal)| !journal.hidden) {
            let end = if self.is(CountsBatches) { journal.batches } else { journal.records.len() };
            let stored = StoredRun { id: id.clone(), end: Position(end as u64), run: journal.run.clone() };
            listed.push((journal.age, stored));
        }
        match self.fault {
            ListsByAge => listed.sort_by_key(|(age, _)| *age),
            ListsByCase => listed.sort_by_key(|(_, stored)| stored.id.as_str().to_lowercase()),
            _ => {}
        }
        let mut listed: Vec<StoredRun> = listed.into_iter().map(|(_, stored)| stored).collect();
        if self.is(LimitsBeforeItFilters) {
            listed.retain(|stored| query.begins_after().is_none_or(|after| stored.id > *after));
            listed.truncate(query.page());
        }
        if self.is(PagesFromWhereTheLastWas) {
            let ids: BTreeSet<&RunId> = listed.iter().map(|stored| &stored.id).collect();
            if query.begins_after().is_some_and(|after| !ids.contains(after)) {
                return Vec::new();
            }
        }
        listed.retain(|stored| self.admits(query, stored));
        if query.is_newest_first() {
            match self.fault {
                ListsNewestLast => {}
                ListsTheLeastIdFirst => listed.sort_by_key(|stored| Reverse(stored.run.started)),
                _ => listed.sort_by_key(|stored| Reverse((stored.run.started, stored.id.clone()))),
            }
        }
        if !self.is(ForgetsAtMost) {
            listed.truncate(if self.is(ShortensPages) { query.page().min(8) } else { query.page() });
        }
        if self.is(ListingRemoves) {
            kept.journals.clear();
        }
        listed
    }

    /// Whether the query matches this run, as the faulty store understands it.
    fn admits(&self, query: &RunQuery, StoredRun { id, run, .. }: &StoredRun) -> bool {
        let admits = query.admits(id, run);
        let unended = RunSummary::running(Arc::clone(&run.workflow), run.started);
        match self.fault {
            ListsEndedAsOpen => query.admits(id, &unended),
            ListsStalledAsOpen if run.status.to_string() == "stalled" => query.admits(id, &unended),
            ListsOpenOnly => admits && !run.status.is_ended(),
            ForgetsAfter => {
                let last = format!("{id}~");
                admits || (query.admits(&last.into(), run) && query.begins_after().is_some())
            }
            PagesFromTheLastOne => {
                admits || (query.begins_after() == Some(id) && query.admits(&format!("{id}~").into(), run))
            }
            ForgetsTheRun => {
                let asked = query.of_run().is_some_and(|asked| query.admits(asked, run));
                admits || asked && query.begins_before().is_none()
            }
            TakesPrefixesOfIds => {
                let rest = query.of_below().and_then(|above| id.as_str().strip_prefix(above.as_str()));
                let below = rest.zip(query.of_below()).map(|(rest, above)| format!("{above}/{rest}").into());
                admits || below.is_some_and(|below| query.admits(&below, run))
            }
            TakesPrefixesOfThreads => {
                let asked = query.of_thread().filter(|asked| {
                    run.thread.as_ref().is_some_and(|thread| thread.as_str().starts_with(asked.as_str()))
                });
                let mut shorter = run.clone();
                shorter.thread = asked.cloned().or(shorter.thread);
                query.admits(id, &shorter)
            }
            ListsExcludedOwners => query.admits(id, &run.clone().owned_by(None)),
            ExcludesRunsWithoutAnOwner => {
                admits && (query.excluded_owners().is_empty() || run.owner.is_some())
            }
            PagesFromTheNextTime => {
                admits && query.begins_before().is_none_or(|(time, _)| run.started < time)
            }
            PagesFromTheSameTime => {
                let mut earlier = run.clone();
                earlier.started -= Duration::from_nanos(1);
                admits
                    || query.begins_before().is_some_and(|(time, _)| time == run.started)
                        && query.admits(id, &earlier)
            }
            ForgetsTheStatusOfTheNewest if query.is_newest_first() => {
                let mut statuses = query.statuses().iter().copied().chain([RunStatus::Running]);
                admits
                    || statuses.any(|status| {
                        let mut other = run.clone();
                        other.status = status;
                        query.admits(id, &other)
                    })
            }
            MixesUpFilters if query.of_thread().is_some() && !query.statuses().is_empty() => {
                admits && query.of_workflow().is_none()
            }
            ForgetsTheWorkflow => query.begins_after().is_none_or(|after| id > after),
            TakesPrefixesOfWorkflows => {
                let names = run.workflow.char_indices().map(|(end, _)| &run.workflow[..end]);
                let mut shorter = names.map(|name| RunSummary::running(name, run.started).ended(run.status));
                admits || shorter.any(|shorter| query.admits(id, &shorter))
            }
            _ => admits,
        }
    }

    async fn delete(self, run: RunId) -> Result<bool, StoreError> {
        let place = self.place(&run);
        let was_there = self.delete_now(&place);
        if self.is(RemovesInTwoParts) {
            a_while().await;
            self.kept.lock().unwrap().journals.remove(&place);
        }
        Ok(was_there)
    }

    fn delete_now(&self, run: &RunId) -> bool {
        let mut kept = self.kept.lock().unwrap();
        let Kept { journals, removed, .. } = &mut *kept;
        let Some(journal) = journals.get_mut(run) else { return self.is(RemoveIsAlwaysTrue) };
        removed.insert(run.clone(), journal.records.len());
        match self.fault {
            RemovesNothing => {}
            RemoveLeavesTheSummary => journal.records.clear(),
            RemoveLeavesRecords | RemovesInTwoParts => journal.hidden = true,
            RemovesPrefixes => journals.retain(|other, _| !other.as_str().starts_with(run.as_str())),
            _ => drop(journals.remove(run)),
        }
        true
    }
}

/// The millisecond of a time.
fn round(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(since.as_millis()).unwrap())
}

/// Long enough for others to come between.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

impl EventStore for FaultyJournals {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        StoreFuture::new(self.clone().add(run.clone(), expected, batch))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        StoreFuture::ready(self.page(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(self.list(query)))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        StoreFuture::new(self.clone().delete(run.clone()))
    }
    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(self.kept.lock().unwrap().retain(self.fault, kept)))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(self.kept.lock().unwrap().lease(self.fault, engine, duration)))
    }

    fn serialises(&self) -> bool {
        !self.is(HidesThatItSerialises)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        match self.fault {
            HandsOutNewContexts => Some(Arc::new(MemoryContexts::default())),
            RetainLeavesContexts => Some(Arc::<MemoryContexts>::clone(&self.contexts)),
            _ => None,
        }
    }
}
