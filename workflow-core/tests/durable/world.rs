//! Engines over one store that is slow, fails or is held: the store and the inbox as each engine has them, and a ledger of
//! what the engines did, which is outside of them.
//!
//! The ledger has each attempt by run, execution and engine; the store has the writer of each record.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Inbox, InboxMessage, Leases, MemoryInbox, MemoryStore, Position, Record, Retention,
    RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{ExecutionId, RunId, RunStatus};

use crate::formats::recorded::as_read;

const SECOND: Duration = Duration::from_secs(1);

/// The way between an engine and its store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line {
    Open,
    /// Calls and answers wait.
    Held,
    /// The engine's process is gone.
    Dead,
}

/// How a store behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// The longest of the delays of calls, in seconds, by their kind.
    pub(crate) delays: [u32; 4],
    /// One in so many calls fails, before or after it had its effect.
    pub(crate) fails_one_in: u32,
    /// Whether the store has bytes, and not the values themselves.
    pub(crate) serialises: bool,
}

/// The parts that all engines of a case share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) kept: MemoryStore,
    pub(crate) leases: Leases,
    pub(crate) inbox: MemoryInbox,
    serialises: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    rng: fastrand::Rng,
    weather: Weather,
    /// Whether calls fail and take time.
    pub(crate) fails: bool,
    /// The engine that wrote last to each run.
    writers: BTreeMap<RunId, usize>,
    /// How often an engine read the journal of each run from its beginning.
    pub(crate) loads: BTreeMap<RunId, u32>,
    /// Each beginning and end of an attempt, and each write.
    pub(crate) ledger: Vec<String>,
    /// The violations so far.
    pub(crate) violations: Vec<String>,
    pub(crate) reached: BTreeMap<&'static str, u32>,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather) -> Arc<Self> {
        let state = State {
            rng: fastrand::Rng::with_seed(seed),
            weather,
            fails: true,
            writers: BTreeMap::new(),
            loads: BTreeMap::new(),
            ledger: Vec::new(),
            violations: Vec::new(),
            reached: BTreeMap::new(),
        };
        let (kept, leases, inbox) = (MemoryStore::default(), Leases::default(), MemoryInbox::default());
        Arc::new(Self { kept, leases, inbox, serialises: weather.serialises, state: Mutex::new(state) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn draw(&self, below: u32) -> u32 {
        self.state().rng.u32(..below)
    }

    pub(crate) fn reach(&self, what: &'static str) {
        *self.state().reached.entry(what).or_default() += 1;
    }

    pub(crate) fn violate(&self, what: String) {
        self.state().violations.push(what);
    }

    pub(crate) fn journal(&self, run: &RunId) -> Vec<Record> {
        let read = self.kept.read(run, Position(0), usize::MAX);
        read.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    pub(crate) fn all(&self) -> Vec<StoredRun> {
        let all = self.kept.runs(&RunQuery::new());
        all.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    /// Notes a write that the store has taken.
    fn wrote(&self, run: &RunId, who: usize, records: &[Record], status: RunStatus) {
        let takes_up = match records {
            // S88: a run that waits is taken up by a record of its own.
            [Record::RunKept { .. }] => status == RunStatus::Waiting,
            [first, ..] => matches!(
                first,
                Record::RunStarted { .. }
                    | Record::RunResumed { .. }
                    | Record::RunRedriven { .. }
                    | Record::CleanUpRedriven { .. }
            ),
            [] => false,
        };
        let names: Vec<_> = records.iter().map(FirstWord::of).collect();
        let mut state = self.state();
        let before = state.writers.insert(run.clone(), who);
        state.ledger.push(format!("{run}: engine {who} wrote {names:?}, {status}"));
        match before {
            Some(before) if before != who && !takes_up => {
                state.violations.push(format!("{run}: engine {who} wrote {names:?} behind engine {before}"));
            }
            Some(before) if before != who => *state.reached.entry("a claim").or_default() += 1,
            _ => {}
        }
    }
}

/// The first word of a text, which is written no further.
#[derive(Default)]
struct FirstWord(String);

impl FirstWord {
    fn of(of: &impl fmt::Debug) -> String {
        let mut word = Self::default();
        // It ends with an error after the word.
        let _ = write!(word, "{of:?}");
        word.0
    }
}

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|letter: char| !letter.is_alphanumeric());
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        if end.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Whether the journal has the end of this execution.
fn is_over(journal: &[Record], execution: ExecutionId) -> bool {
    let (mut succeeded, mut failed, mut ended) = (false, false, false);
    for record in journal {
        match record {
            Record::ExecutionSucceeded { execution: over, .. } => succeeded |= *over == execution,
            Record::ExecutionFailed { execution: over, .. } => failed |= *over == execution,
            Record::RunEnded { .. } => ended = true,
            Record::RunRedriven { .. } | Record::CleanUpRedriven { .. } => (failed, ended) = (false, false),
            _ => {}
        }
    }
    succeeded || failed || ended
}

/// The executions under way in the pause in which the run is by its journal; `None` if it is not paused.
pub(crate) fn under_way_in_pause(journal: &[Record]) -> Option<&[ExecutionId]> {
    let (mut own, mut with_parent) = (None, None);
    for record in journal {
        match record {
            Record::RunPaused { by_parent, running, .. } => {
                *(if *by_parent { &mut with_parent } else { &mut own }) = Some(&running[..]);
            }
            Record::RunUnpaused { by_parent, .. } => {
                *(if *by_parent { &mut with_parent } else { &mut own }) = None;
            }
            Record::RunEnded { .. } | Record::CleanUpStarted { .. } => (own, with_parent) = (None, None),
            _ => {}
        }
    }
    own.or(with_parent)
}

/// The world as one engine has it. Clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    pub(crate) who: usize,
    pub(crate) world: Arc<World>,
    line: watch::Receiver<Line>,
}

impl Face {
    pub(crate) fn new(who: usize, world: &Arc<World>) -> (Self, watch::Sender<Line>) {
        let (sender, line) = watch::channel(Line::Open);
        (Self { who, world: Arc::clone(world), line }, sender)
    }

    /// Whether the engine's process is gone.
    pub(crate) fn is_dead(&self) -> bool {
        *self.line.borrow() == Line::Dead
    }

    /// Waits until the line is open, and fails at random.
    async fn passes(&self, what: &'static str) -> Result<(), StoreError> {
        let mut line = self.line.clone();
        let _ = line.wait_for(|line| *line == Line::Open).await;
        if *self.line.borrow() != Line::Open {
            pending::<()>().await;
        }
        let (fails, delay) = {
            let mut state = self.world.state();
            let one_in = state.weather.fails_one_in;
            let fails = state.fails && one_in > 0 && state.rng.u32(..one_in) == 0;
            (fails, if state.fails { state.rng.u32(..3) } else { 0 })
        };
        match delay {
            0 => {}
            1 => yield_now().await,
            _ => {
                let kind = self.world.draw(4) as usize;
                let most = self.world.state().weather.delays[kind];
                sleep(SECOND * self.world.draw(most)).await;
            }
        }
        if fails {
            self.world.reach(what);
            return Err(StoreError::unavailable(std::io::Error::other(what)));
        }
        Ok(())
    }

    fn call<T: Send + Unpin + 'static>(
        &self,
        calls: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<T> {
        let face = self.clone();
        StoreFuture::new(async move {
            face.passes("a failure before").await?;
            let answer = calls(&face)?;
            face.passes("a failure after").await?;
            Ok(answer)
        })
    }

    /// Notes that an attempt begins, and whether it may.
    pub(crate) fn notes_begin(&self, step: &str, info: &RunInfo) {
        let (run, execution) = (info.run(), info.execution());
        let journal = self.world.journal(run);
        let is_over = is_over(&journal, execution);
        let is_paused = under_way_in_pause(&journal).is_some_and(|running| !running.contains(&execution));
        let (what, mut state) =
            (format!("{run}: {execution} {step} of attempt {}", info.attempt()), self.world.state());
        state.ledger.push(format!("{what} begins in engine {}", self.who));
        if is_over {
            state.violations.push(format!("{what} begins in engine {} although it is over", self.who));
        }
        if is_paused {
            state.violations.push(format!("{what} begins in engine {} in a pause", self.who));
        }
        let writer = state.writers.get(run).copied();
        if writer != Some(self.who) {
            state
                .violations
                .push(format!("{what} begins in engine {}, and {writer:?} has the run", self.who));
        }
    }

    /// Begins an attempt, unless this engine is gone.
    pub(crate) async fn begins(&self, step: &str, info: &RunInfo) {
        if self.is_dead() {
            return pending().await;
        }
        self.notes_begin(step, info);
    }

    pub(crate) async fn works(&self, step: &str, info: &RunInfo) {
        self.begins(step, info).await;
        let seconds = self.world.draw(20);
        sleep(SECOND * seconds).await;
        self.notes_end(step, info);
    }

    fn notes_messages<'a>(
        &self,
        what: &str,
        run: &RunId,
        messages: impl IntoIterator<Item = &'a InboxMessage>,
    ) {
        let ids: Vec<_> = messages.into_iter().map(|message| &message.id).collect();
        self.world.state().ledger.push(format!("{run}: engine {} {what} {ids:?}", self.who));
    }

    /// Notes that an attempt ends.
    pub(crate) fn notes_end(&self, step: &str, info: &RunInfo) {
        let (run, execution) = (info.run(), info.execution());
        self.world.state().ledger.push(format!("{run}: {execution} {step} ends in engine {}", self.who));
    }
}

impl EventStore for Face {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let run = run.clone();
        self.call(move |face| {
            let Write { records, run: summary } = batch;
            let records = if face.world.serialises { as_read(&records) } else { records };
            let (status, write) = (summary.status, Write { records: records.clone(), run: summary });
            let appended = face.world.kept.append(&run, expected, write);
            appended.now_or_never().expect("a store in memory answers at once")?;
            face.world.wrote(&run, face.who, &records, status);
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let run = run.clone();
        self.call(move |face| {
            // The first record alone says whose child a run is.
            if from == Position(0) && at_most > 1 {
                let mut state = face.world.state();
                *state.loads.entry(run.clone()).or_default() += 1;
                state.ledger.push(format!("{run}: engine {} reads the journal", face.who));
            }
            face.world.kept.read(&run, from, at_most).now_or_never().unwrap()
        })
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let query = query.clone();
        self.call(move |face| face.world.kept.runs(&query).now_or_never().unwrap())
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.world.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.world.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        let engine = engine.clone();
        self.call(move |face| Ok(face.world.leases.renew(&engine, duration)))
    }

    fn serialises(&self) -> bool {
        self.world.serialises
    }
}

impl Inbox for Face {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        let run = run.clone();
        self.call(move |face| {
            let pending = face.world.inbox.pending(&run, at_most).now_or_never().unwrap();
            face.notes_messages("reads the messages", &run, pending.iter().flatten());
            pending
        })
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let (run, message) = (run.clone(), message.clone());
        self.call(move |face| {
            face.notes_messages("settles the message", &run, [&message]);
            face.world.inbox.settle(&run, &message, result).now_or_never().unwrap()
        })
    }
}

/// An engine, and its line to the store.
pub(crate) struct Alive {
    pub(crate) engine: Engine,
    pub(crate) line: watch::Sender<Line>,
}

impl Alive {
    /// Holds the line so long.
    pub(crate) fn holds(&self, long: Duration) {
        let line = self.line.clone();
        line.send_if_modified(|line| std::mem::replace(line, Line::Held) == Line::Open);
        tokio::spawn(async move {
            sleep(long).await;
            line.send_if_modified(|line| {
                *line == Line::Held && {
                    *line = Line::Open;
                    true
                }
            });
        });
    }

    /// The engine's process is gone. It gives nothing up as long as somebody keeps the result.
    #[must_use]
    pub(crate) fn dies(self) -> Self {
        self.line.send_replace(Line::Dead);
        self
    }
}

/// A runtime of one thread, with paused time.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}
