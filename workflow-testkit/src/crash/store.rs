//! The store of a killed process. It keeps journals as bytes, and goes down at one append.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::Notify;
use workflow_core::store::{
    ContextScope, ContextStore, EngineId, EventStore, Leases, MemoryContexts, Position, Record, Retention,
    RunQuery, RunSummary, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{RunId, Seq};

use super::confirm::{Confirms, Turn, Turns};
use super::elsewhere::{self, Keeper};

/// The [`EventStore`] that [`crash_everywhere`](crate::crash_everywhere()) gives to a scenario's engine. Clones share
/// one store.
///
/// The store keeps journals as bytes, like a store on a disk, so every record goes through its JSON in both directions.
/// With [`on`](crate::CrashEverywhere::on) a user's store keeps them as well, and answers reads. At the chosen append
/// the store goes down, with or without keeping it, and answers nothing any more. It [confirms](crate::Confirms) writes
/// at once or late. A [`default`](Self::default) store never goes down and confirms at once. Its contexts are in memory,
/// and no crash loses them.
///
/// ```
/// use workflow_core::store::{EventStore, Position};
/// use workflow_testkit::CrashStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::store::StoreError> {
/// let store = CrashStore::default();
/// assert!(store.read(&"order-17".into(), Position(0), 100).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CrashStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    leases: Leases,
    /// The contexts, which no crash loses.
    contexts: Arc<MemoryContexts>,
    /// Notified of every kept append, and when the store goes down.
    news: Notify,
    /// The user's store that keeps the journals as well.
    keeper: Option<Keeper>,
    /// Held during each change of the keeper.
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    journals: BTreeMap<RunId, Kept>,
    /// How many writes it was given.
    appends: u64,
    crash: Option<Crash>,
    /// The run whose write it went down with.
    down: Option<RunId>,
    confirms: Confirms,
    /// The writes that wait for confirmation.
    turns: Turns,
    /// The confirmed end of each run's log.
    confirmed: BTreeMap<RunId, Seq>,
    /// The first observation that came before its confirmation.
    premature: Option<String>,
    /// A digest of each write that it has, in order.
    writes: Vec<u64>,
}

#[derive(Clone)]
struct Kept {
    /// Each record as JSON.
    records: Vec<Box<[u8]>>,
    /// The summary of its latest batch.
    run: RunSummary,
    /// The time of its latest batch, by the machine's clock.
    written: SystemTime,
    /// The end of its log; `None` without events.
    until: Option<Seq>,
}

impl Kept {
    fn stored(&self, id: &RunId) -> StoredRun {
        let end = Position::default().after(self.records.len());
        StoredRun { id: id.clone(), end, run: self.run.clone() }
    }
}

/// The point at which a store goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crash {
    /// The number of the append, from 1.
    pub(super) at: u64,
    /// Whether the store keeps that append.
    pub(super) batch: Lot,
}

/// The fate of the batch that a store goes down with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lot {
    /// The store does not keep the batch.
    Lost,
    /// The store keeps the batch, but no caller gets the confirmation.
    Unheard,
}

impl Lot {
    pub(super) const BOTH: [Self; 2] = [Self::Lost, Self::Unheard];
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch = match self.batch {
            Lot::Lost => "was lost",
            Lot::Unheard => "was stored but not confirmed",
        };
        write!(f, "at append {}, whose batch {batch}", self.at)
    }
}

impl CrashStore {
    /// An empty store that confirms in this way and passes its journals to the keeper.
    pub(super) fn kept_by(keeper: Option<Keeper>, confirms: Confirms) -> Self {
        let state = Mutex::new(State { confirms, ..State::default() });
        Self { shared: Arc::new(Shared { state, keeper, ..Shared::default() }) }
    }

    /// The store after a restart. Blocks until no call is in progress.
    pub(super) fn restarted(&self, crash: Option<Crash>) -> Self {
        let _nothing_is_under_way = self.shared.one_at_a_time.blocking_lock();
        let state = self.lock().restarted(crash);
        let keeper = self.shared.keeper.clone();
        Self { shared: Arc::new(Shared { state: Mutex::new(state), keeper, ..Shared::default() }) }
    }

    pub(super) fn keeper(&self) -> Option<Keeper> {
        self.shared.keeper.clone()
    }

    pub(super) fn one_at_a_time(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.shared.one_at_a_time)
    }

    /// How many writes it was given.
    pub(super) fn appends(&self) -> u64 {
        self.lock().appends
    }

    /// A digest of each write that it has, in order.
    pub(super) fn writes(&self) -> Vec<u64> {
        self.lock().writes.clone()
    }

    pub(super) fn confirms(&self) -> Confirms {
        self.lock().confirms
    }

    /// The scenario's run, as opposed to its child runs.
    pub(super) fn drives(&self, run: RunId) {
        self.lock().turns = Turns::of(Some(run));
    }

    pub(super) fn turns<T>(&self, change: impl FnOnce(&mut Turns) -> T) -> T {
        change(&mut self.lock().turns)
    }

    /// Called when the run is idle: gives one waiting entry its turn. Returns whether there was one.
    pub(super) fn next_turn(&self) -> bool {
        let mut state = self.lock();
        if state.down.is_some() {
            return false;
        }
        let (confirms, before) = (state.confirms, state.turns.len());
        match state.turns.next(confirms) {
            // Some entries may have been dropped.
            None if state.turns.len() == before => return false,
            None => {}
            Some(Turn::Down(run)) => state.down = Some(run),
            Some(Turn::Taken(run, until)) => state.note_confirmed(&run, until),
        }
        drop(state);
        self.shared.news.notify_waiters();
        true
    }

    pub(super) fn note_confirmed(&self, run: &RunId, until: Option<Seq>) {
        self.lock().note_confirmed(run, until);
    }

    /// Whether this event of a run is confirmed, or this store does not have the run.
    pub(super) fn has_confirmed(&self, run: &RunId, event: Seq) -> bool {
        let state = self.lock();
        let is_here = state.journals.contains_key(run) || state.turns.has(run);
        !is_here || state.confirmed.get(run).is_some_and(|until| *until >= event)
    }

    /// Records an observation that came before its confirmation; the first counts.
    pub(super) fn note_premature(&self, what: String) {
        self.lock().premature.get_or_insert(what);
    }

    /// The first observation that came before its confirmation.
    pub(super) fn premature(&self) -> Option<String> {
        self.lock().premature.clone()
    }

    /// The run whose write the store went down with; `None` if it has not.
    pub(super) fn down(&self) -> Option<RunId> {
        self.lock().down.clone()
    }

    /// Waits until it is down.
    pub(super) async fn gone_down(&self) {
        self.until(|state| state.down.is_some()).await;
    }

    /// Waits until every run of the store has ended.
    pub(super) async fn all_ended(&self) {
        self.until(|state| state.journals.values().all(|kept| kept.run.status.is_ended())).await;
    }

    /// Waits until every received write is confirmed.
    pub(super) async fn all_confirmed(&self) {
        self.until(|state| state.turns.is_empty()).await;
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            // A later notification covers this one too.
            let told = self.shared.news.notified();
            if is_so(&self.lock()) {
                return;
            }
            told.await;
        }
    }

    /// All runs of the store.
    pub(super) fn kept_runs(&self) -> Vec<(RunId, RunSummary)> {
        self.lock().journals.iter().map(|(id, kept)| (id.clone(), kept.run.clone())).collect()
    }

    /// The records of a run.
    pub(super) fn records(&self, run: &RunId) -> Vec<Record> {
        self.page(run, Position(0), usize::MAX).unwrap_or_default()
    }

    /// The records of a run as JSON.
    pub(super) fn journal(&self, run: &RunId) -> Vec<Value> {
        let state = self.lock();
        let records = state.journals.get(run).map_or(&[][..], |kept| &kept.records);
        records.iter().map(|record| serde_json::from_slice(record).unwrap_or_default()).collect()
    }

    fn add(&self, run: &RunId, expected: Position, batch: &Write) -> StoreFuture<()> {
        let records = match bytes(&batch.records) {
            Ok(records) => records,
            Err(error) => return StoreFuture::ready(Err(error)),
        };
        let until = last_event(&batch.records);
        let mut state = self.lock();
        let lot = match state.admit(run, expected) {
            Some(Ok(lot)) => lot,
            Some(Err(conflict)) => return StoreFuture::ready(Err(conflict)),
            None => return StoreFuture::new(pending()),
        };
        if lot != Some(Lot::Lost) {
            state.keep(run, records, until, &batch.run);
        }
        drop(state);
        self.shared.news.notify_waiters();
        self.confirm(run, until, lot)
    }

    /// Accepts an append that is no conflict, and returns the fate of its batch if the store goes down with it. `None`
    /// if the store is down.
    pub(super) fn admit(&self, run: &RunId, expected: Position) -> Option<Result<Option<Lot>, StoreError>> {
        self.lock().admit(run, expected)
    }

    /// Keeps a batch.
    pub(super) fn keep(&self, run: &RunId, batch: &Write) -> Result<(), StoreError> {
        let records = bytes(&batch.records)?;
        self.lock().keep(run, records, last_event(&batch.records), &batch.run);
        self.shared.news.notify_waiters();
        Ok(())
    }

    pub(super) fn forget(&self, run: &RunId) -> bool {
        let forgotten = self.shared.contexts.clear(&ContextScope::Run(run.clone())).now_or_never();
        debug_assert!(forgotten.is_some(), "contexts in memory answer at once");
        self.lock().journals.remove(run).is_some()
    }

    /// Goes down with a batch of this run.
    pub(super) fn go_down(&self, run: &RunId) {
        self.lock().down = Some(run.clone());
        self.shared.news.notify_waiters();
    }

    fn page(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let state = self.lock();
        let records = state.journals.get(run).map_or(&[][..], |kept| &kept.records);
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        let page = records.iter().enumerate().skip(from).take(at_most.max(1));
        let read = page.map(|(place, record)| {
            let corrupt = |error| StoreError::corrupt(run, Position::default().after(place), error);
            serde_json::from_slice(record).map_err(corrupt)
        });
        read.collect()
    }

    fn list(&self, query: &RunQuery) -> Vec<StoredRun> {
        let state = self.lock();
        let admitted = state.journals.iter().filter(|(id, kept)| query.admits(id, &kept.run));
        query.choose(admitted.map(|(id, kept)| kept.stored(id)))
    }

    /// The runs that no rule of the retention keeps.
    pub(super) fn chosen(&self, retention: &Retention) -> Vec<RunId> {
        let state = self.lock();
        let runs = state.journals.iter().map(|(id, kept)| (kept.stored(id), kept.written));
        retention.choose(runs).into_iter().map(|(stored, _)| stored.id).collect()
    }

    fn answer<T: Send + Unpin + 'static>(
        &self,
        answer: impl FnOnce() -> Result<T, StoreError>,
    ) -> StoreFuture<T> {
        if self.down().is_some() { StoreFuture::new(pending()) } else { StoreFuture::ready(answer()) }
    }

    /// No code leaves the state half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admit(&mut self, run: &RunId, expected: Position) -> Option<Result<Option<Lot>, StoreError>> {
        if self.down.is_some() {
            return None;
        }
        let end = self.journals.get(run).map_or(0, |kept| kept.records.len());
        let found = Position::default().after(end);
        if found != expected {
            return Some(Err(StoreError::Conflict { expected, found }));
        }
        self.appends += 1;
        Some(Ok(self.crash.filter(|crash| crash.at == self.appends).map(|crash| crash.batch)))
    }

    fn keep(&mut self, run: &RunId, records: Vec<Box<[u8]>>, until: Option<Seq>, summary: &RunSummary) {
        let written = SystemTime::now();
        let mut digest = DefaultHasher::new();
        (run, &records).hash(&mut digest);
        self.writes.push(digest.finish());
        let empty = || Kept { records: Vec::new(), run: summary.clone(), written, until: None };
        let kept = self.journals.entry(run.clone()).or_insert_with(empty);
        kept.records.extend(records);
        kept.until = kept.until.max(until);
        (kept.run, kept.written) = (summary.clone(), written);
    }

    fn note_confirmed(&mut self, run: &RunId, until: Option<Seq>) {
        if let Some(until) = until {
            let confirmed = self.confirmed.entry(run.clone()).or_insert(until);
            *confirmed = until.max(*confirmed);
        }
    }

    /// The state that the next process finds: everything it reads is confirmed.
    fn restarted(&self, crash: Option<Crash>) -> Self {
        let confirmed = self.journals.iter().filter_map(|(run, kept)| Some((run.clone(), kept.until?)));
        Self {
            journals: self.journals.clone(),
            crash,
            confirms: self.confirms,
            confirmed: confirmed.collect(),
            ..Self::default()
        }
    }
}

/// The end of a log with these records; `None` if they have no event.
pub(super) fn last_event(records: &[Record]) -> Option<Seq> {
    let events = records.iter().filter_map(|record| match record {
        Record::EventLogged { seq, .. } | Record::FanOutGathered { seq, .. } => Some(*seq),
        _ => None,
    });
    events.max()
}

fn bytes(records: &[Record]) -> Result<Vec<Box<[u8]>>, StoreError> {
    let bytes = records.iter().map(|record| serde_json::to_vec(record).map(Vec::into_boxed_slice));
    bytes.collect::<Result<_, _>>().map_err(StoreError::unserialisable)
}

impl EventStore for CrashStore {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        match &self.shared.keeper {
            Some(keeper) => self.append_to(keeper, run, expected, batch),
            None => self.add(run, expected, &batch),
        }
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        match &self.shared.keeper {
            Some(keeper) => elsewhere::page(self, keeper, run, from, at_most),
            None => self.answer(|| self.page(run, from, at_most)),
        }
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        match &self.shared.keeper {
            Some(keeper) => elsewhere::list(self, keeper, query),
            None => self.answer(|| Ok(self.list(query))),
        }
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        match &self.shared.keeper {
            Some(keeper) => self.remove_from(keeper, run),
            None => self.answer(|| Ok(self.forget(run))),
        }
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        match &self.shared.keeper {
            Some(keeper) => self.retain_in(keeper, kept),
            None => {
                self.answer(|| Ok(self.chosen(kept).iter().filter(|run| self.forget(run)).count() as u64))
            }
        }
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.answer(|| Ok(self.shared.leases.renew(engine, duration)))
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        Some(Arc::<MemoryContexts>::clone(&self.shared.contexts))
    }
}

impl fmt::Debug for CrashStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("CrashStore")
            .field("runs", &state.journals.len())
            .field("appends", &state.appends)
            .field("down", &state.down.is_some())
            .finish()
    }
}
