//! Random engines over one store that fails at random (S40, S66, S67): calls fail before or after they had their effect,
//! leases cannot be renewed, engines are held beyond their leases or are killed, and clients put messages into the inbox.
//!
//! In every fourth case calls of the store may take long, and runs are paused often.
//!
//! A ledger has each attempt, by run, execution and engine; the store has the writer of each record. `CLAIMED_CASES=500`
//! makes more cases than a test needs each time, `CLAIMED_SEED=7` only this one, and both make 500 from this one on.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::MutexGuard;

use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::watch;
use workflow_core::store::{Inbox, InboxMessage, MemoryInbox, RunMessage};
use workflow_core::{ErrorClass, Pause, Retries, RetryPolicy, Seq};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Whether calls of the store may take long in the case of this seed, and runs are paused often.
fn is_slow(seed: u64) -> bool {
    seed % 4 == 3
}

/// How many random actions a case has before its store fails no more.
const ACTIONS: u32 = 60;

/// The runs of a case.
const RUNS: u64 = 3;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Wonder(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Call(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rested(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Share(u32);

/// The way between an engine and its store.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Line {
    Open,
    /// Calls and answers wait.
    Held,
    /// The engine's process is gone.
    Dead,
}

/// The parts that all engines of a case share.
#[derive(Debug)]
struct World {
    kept: MemoryStore,
    leases: Leases,
    inbox: MemoryInbox,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: fastrand::Rng,
    /// The longest of the delays of calls, in seconds, by their kind.
    delays: [u32; 4],
    fails: bool,
    /// The engine that wrote last to each run.
    writers: BTreeMap<RunId, usize>,
    /// Each beginning and end of an attempt, and each write.
    ledger: Vec<String>,
    /// The violations so far.
    violations: Vec<String>,
    reached: BTreeMap<&'static str, u32>,
}

impl World {
    fn new(seed: u64) -> Arc<Self> {
        let state = State {
            rng: fastrand::Rng::with_seed(seed),
            delays: if is_slow(seed) { [3, 3, 3, 25] } else { [3; 4] },
            fails: true,
            writers: BTreeMap::new(),
            ledger: Vec::new(),
            violations: Vec::new(),
            reached: BTreeMap::new(),
        };
        let (kept, leases, inbox) = (MemoryStore::default(), Leases::default(), MemoryInbox::default());
        Arc::new(Self { kept, leases, inbox, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn draw(&self, below: u32) -> u32 {
        self.state().rng.u32(..below)
    }

    fn reach(&self, what: &'static str) {
        *self.state().reached.entry(what).or_default() += 1;
    }

    fn journal(&self, run: &RunId) -> Vec<Record> {
        let read = self.kept.read(run, Position(0), usize::MAX);
        read.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    fn all(&self) -> Vec<StoredRun> {
        let all = self.kept.runs(&RunQuery::new());
        all.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    /// Notes a write that the store has taken.
    fn wrote(&self, run: &RunId, who: usize, records: &[Record], waits: bool) {
        // S88: a run that waits is taken up by a record of its own.
        let takes_up = matches!(records[0], Record::RunStarted { .. } | Record::RunResumed { .. })
            || waits && matches!(records, [Record::RunKept { .. }]);
        let names = records.iter().map(|record| format!("{record:?}"));
        let names: Vec<_> =
            names.map(|name| name.split([' ', '{']).next().unwrap_or_default().to_owned()).collect();
        let mut state = self.state();
        let before = state.writers.insert(run.clone(), who);
        state.ledger.push(format!("{run}: engine {who} wrote {names:?}"));
        match before {
            Some(before) if before != who && !takes_up => {
                state.violations.push(format!("{run}: engine {who} wrote {names:?} behind engine {before}"));
            }
            Some(before) if before != who => *state.reached.entry("a claim").or_default() += 1,
            _ => {}
        }
    }
}

/// The world as one engine has it. Clones are one.
#[derive(Debug, Clone)]
struct Face {
    who: usize,
    world: Arc<World>,
    line: watch::Receiver<Line>,
}

impl Face {
    /// Waits until the line is open, and fails at random.
    async fn passes(&self, what: &'static str) -> Result<(), StoreError> {
        let mut line = self.line.clone();
        let _ = line.wait_for(|line| *line == Line::Open).await;
        if *self.line.borrow() != Line::Open {
            pending::<()>().await;
        }
        let (fails, delay) = {
            let mut state = self.world.state();
            let fails = state.fails && state.rng.u32(..30) == 0;
            (fails, if state.fails { state.rng.u32(..3) } else { 0 })
        };
        match delay {
            0 => {}
            1 => yield_now().await,
            _ => {
                let kind = self.world.draw(4) as usize;
                let most = self.world.state().delays[kind];
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

    /// Begins an attempt, unless this engine is gone.
    async fn begins(&self, step: &str, info: &RunInfo) {
        if *self.line.borrow() == Line::Dead {
            return pending().await;
        }
        let (run, execution) = (info.run(), info.execution());
        let is_over = |record: &Record| match record {
            Record::ExecutionSucceeded { execution: over, .. }
            | Record::ExecutionFailed { execution: over, .. } => *over == execution,
            Record::RunEnded { .. } => true,
            _ => false,
        };
        let is_over = self.world.journal(run).iter().any(is_over);
        let (what, mut state) =
            (format!("{run}: {execution} {step} of attempt {}", info.attempt()), self.world.state());
        state.ledger.push(format!("{what} begins in engine {}", self.who));
        if is_over {
            state.violations.push(format!("{what} begins in engine {} although it is over", self.who));
        }
        let writer = state.writers.get(run).copied();
        if writer != Some(self.who) {
            state
                .violations
                .push(format!("{what} begins in engine {}, and {writer:?} has the run", self.who));
        }
    }

    async fn works(&self, step: &str, info: &RunInfo) {
        self.begins(step, info).await;
        let seconds = self.world.draw(20);
        sleep(SECOND * seconds).await;
        let (run, execution) = (info.run(), info.execution());
        self.world.state().ledger.push(format!("{run}: {execution} {step} ends in engine {}", self.who));
    }
}

impl EventStore for Face {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let run = run.clone();
        self.call(move |face| {
            let (records, waits) = (batch.records.clone(), batch.run.status == RunStatus::Waiting);
            let appended = face.world.kept.append(&run, expected, batch);
            appended.now_or_never().expect("a store in memory answers at once")?;
            face.world.wrote(&run, face.who, &records, waits);
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let run = run.clone();
        self.call(move |face| face.world.kept.read(&run, from, at_most).now_or_never().unwrap())
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
}

impl Inbox for Face {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        let run = run.clone();
        self.call(move |face| face.world.inbox.pending(&run, at_most).now_or_never().unwrap())
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let (run, message) = (run.clone(), message.clone());
        self.call(move |face| face.world.inbox.settle(&run, &message, result).now_or_never().unwrap())
    }
}

fn soon() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(3, 7 * SECOND))
}

/// Rests, asks, calls a child, fails at first, and takes three notes.
struct Mixed(Face);

#[workflow]
impl Mixed {
    #[step]
    async fn plan(&self, begin: &Begin, info: &RunInfo) -> (Timer<Rested>, Wonder, Call, Item) {
        self.0.works("plan", info).await;
        let number = begin.0;
        (Timer::after(SECOND * 25, Rested(number)), Wonder(number), Call(number), Item(number))
    }

    #[step]
    async fn rest(&self, rested: &Rested, info: &RunInfo) -> Share {
        self.0.works("rest", info).await;
        Share(rested.0)
    }

    #[step]
    async fn take(&self, reply: &Reply<Wonder>, info: &RunInfo) -> Share {
        self.0.works("take", info).await;
        Share(**reply)
    }

    #[step]
    async fn call(&self, call: &Call, children: &Children, info: &RunInfo) -> Result<Share, RunError> {
        self.0.begins("call", info).await;
        Ok(Share(children.run::<Small>(Begin(call.0)).await?.0))
    }

    #[step(retry = soon())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Share, StepError> {
        self.0.works("work", info).await;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Share(item.0)) }
    }

    #[step]
    async fn end(&self, shares: &FixedList<Share, 4>, notes: &FixedList<Note, 3>, info: &RunInfo) -> Done {
        self.0.works("end", info).await;
        let notes = notes.iter().fold(0, |all, note| 10 * all + note.0);
        Done(1_000 * shares.iter().map(|share| share.0).sum::<u32>() + notes)
    }
}

/// A child that rests.
struct Small(Face);

#[workflow]
impl Small {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Timer<Rested> {
        self.0.works("work", info).await;
        Timer::after(SECOND * 20, Rested(begin.0))
    }

    #[step]
    async fn end(&self, rested: &Rested, info: &RunInfo) -> Done {
        self.0.works("end", info).await;
        Done(rested.0)
    }
}

/// An engine, and its line to the store.
struct Alive {
    engine: Engine,
    line: watch::Sender<Line>,
}

/// The engines and clients of a case.
struct Case {
    world: Arc<World>,
    clock: VirtualClock,
    is_slow: bool,
    engines: Vec<Alive>,
    born: usize,
    /// The messages that are left to put into the inbox, by run.
    script: BTreeMap<RunId, Vec<(String, RunMessage)>>,
    /// The ids of the messages that were put, in order, by run.
    put: BTreeMap<RunId, Vec<String>>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let (engines, script, put) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (world, clock, is_slow) = (World::new(seed), VirtualClock::new(), is_slow(seed));
        let mut case = Self { world, clock, is_slow, engines, born: 0, script, put };
        for _ in 0..2 + seed % 2 {
            case.adds_engine();
        }
        case
    }

    fn adds_engine(&mut self) {
        let (line, receiver) = watch::channel(Line::Open);
        let face = Face { who: self.born, world: Arc::clone(&self.world), line: receiver };
        let engine = Engine::builder().workflow(Mixed(face.clone())).workflow(Small(face.clone()));
        let engine = engine.inbox(Arc::new(face.clone())).store(face).clock(self.clock.clone()).lease(LEASE);
        // Each of these engines is held or killed: that is no fault of its steps.
        let engine = engine.max_interrupted_attempts(u32::MAX);
        let unloads = if self.born.is_multiple_of(2) { SECOND * 5 } else { Duration::MAX };
        let engine = engine.unload_waiting_after(unloads).build().unwrap();
        self.born += 1;
        let claims = engine.clone();
        // It may fail, and takes the lease.
        tokio::spawn(async move { drop(claims.resume_open_runs().await) });
        self.engines.push(Alive { engine, line });
    }

    /// One of the engines, at random.
    fn chosen(&self) -> &Alive {
        let place = self.world.draw(u32::try_from(self.engines.len()).unwrap());
        &self.engines[place as usize]
    }

    fn run(&self) -> RunId {
        format!("r-{}", u64::from(self.world.draw(3)) % RUNS).into()
    }

    /// Starts a run until the store has it, whatever fails.
    async fn starts(&mut self, number: u32) {
        let run = RunId::from(format!("r-{number}"));
        while self.world.journal(&run).is_empty() {
            let engine = self.chosen().engine.clone();
            let options = RunOptions::new().id(run.as_str());
            // It fails if the store does, also where the store has the run.
            drop(engine.start_with::<Mixed>(Begin(number + 1), options).await);
        }
        let note = |note: u32| RunMessage::Send { event: "Note".into(), data: json!(note) };
        let how = if self.world.draw(2) == 0 { Pause::Now } else { Pause::AfterRunning };
        let mut messages = vec![note(1), RunMessage::Pause { how }, note(2), RunMessage::Unpause, note(3)];
        if self.is_slow {
            let pauses = [RunMessage::Pause { how: Pause::Now }, RunMessage::Unpause];
            for place in [0, 0, 3, 8, 8] {
                messages.splice(place..place, pauses.clone());
            }
        }
        let messages = messages.into_iter().enumerate();
        let messages = messages.map(|(place, message)| (format!("m-{place}"), message)).rev().collect();
        self.script.insert(run, messages);
    }

    /// Puts a message into the inbox, and tells all engines.
    fn puts(&mut self, run: &RunId, id: String, message: RunMessage) {
        self.world.inbox.put(run.clone(), &*id, message).unwrap();
        self.put.entry(run.clone()).or_default().push(id);
        for alive in &self.engines {
            alive.engine.notify_inbox(run);
        }
    }

    fn puts_next(&mut self, run: &RunId) {
        if let Some((id, message)) = self.script.get_mut(run).and_then(Vec::pop) {
            self.puts(run, id, message);
        }
    }

    /// Replies to each request once, through the inbox.
    fn replies(&mut self) {
        for number in 0..RUNS {
            let run = RunId::from(format!("r-{number}"));
            for record in self.world.journal(&run) {
                let Record::EventLogged { seq: Seq(seq), event, .. } = record else { continue };
                let id = format!("reply-{seq}");
                if event.name() == "Wonder" && !self.put.get(&run).is_some_and(|put| put.contains(&id)) {
                    let data = json!(number + 1);
                    self.puts(&run, id, RunMessage::Reply { request: Seq(seq), data });
                }
            }
        }
    }

    /// One random act.
    async fn acts(&mut self) {
        sleep(SECOND * self.world.draw(12)).await;
        let (act, run) = (self.world.draw(10), self.run());
        match act {
            0 | 1 => {
                self.world.reach("a hold");
                let (line, long) = (self.chosen().line.clone(), SECOND * (5 + self.world.draw(70)));
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
            2 if self.born < 6 => {
                self.world.reach("a kill");
                let gone = self.world.draw(u32::try_from(self.engines.len()).unwrap()) as usize;
                let Alive { engine, line } = self.engines.remove(gone);
                line.send_replace(Line::Dead);
                // It gives nothing up.
                std::mem::forget((engine, line));
                self.adds_engine();
            }
            3 => {
                let engine = self.chosen().engine.clone();
                tokio::spawn(async move { drop(engine.claim_orphans().await) });
            }
            4 => {
                let engine = self.chosen().engine.clone();
                tokio::spawn(async move { drop(engine.attach::<Mixed>(run).await) });
            }
            5 | 6 => self.replies(),
            _ => {
                self.puts_next(&run);
                if self.is_slow {
                    self.puts_next(&run);
                }
            }
        }
    }

    fn have_ended(&self) -> bool {
        self.world.all().iter().all(|run| run.run.status.is_ended())
    }

    /// Lets the store fail no more, and waits for all runs.
    async fn ends(&mut self) {
        self.world.state().fails = false;
        for alive in &self.engines {
            alive.line.send_replace(Line::Open);
        }
        for round in 0..300_u32 {
            sleep(SECOND * 10).await;
            if self.have_ended() {
                return;
            }
            self.replies();
            for number in 0..RUNS {
                self.puts_next(&format!("r-{number}").into());
            }
            // No claim takes a run up that five engines in a row could write nothing to.
            if round == 150 {
                self.world.reach("a run that no claim takes");
                for alive in &self.engines {
                    let _ = alive.engine.resume_open_runs().await;
                }
            }
        }
    }

    /// The state of a run that does not end.
    fn stuck(&self, stored: &StoredRun) -> String {
        let (run, state) = (&stored.id, self.world.state());
        let said: Vec<_> = state.ledger.iter().filter(|line| line.starts_with(&format!("{run}: "))).collect();
        let said: Vec<_> = said.iter().rev().take(25).rev().map(|line| format!("\n    {line}")).collect();
        let here = |alive: &Alive| {
            let is_here = alive.engine.running().contains(run);
            format!("{} has it: {is_here}", alive.engine.id())
        };
        let here: Vec<_> = self.engines.iter().map(here).collect();
        let pending = self.world.inbox.pending(run, 10).now_or_never().unwrap().unwrap();
        let (status, owner) = (stored.run.status, &stored.run.owner);
        format!("{run} is {status} at {owner:?}, {here:?}, {} in its inbox{}", pending.len(), said.concat())
    }

    /// The violations in the end.
    fn violations(&self) -> Vec<String> {
        let mut violations = self.world.state().violations.clone();
        for stored in self.world.all() {
            let (run, journal) = (&stored.id, self.world.journal(&stored.id));
            if !stored.run.status.is_ended() {
                violations.push(self.stuck(&stored));
            }
            let origins = journal.iter().filter_map(|record| match record {
                Record::EventLogged { origin, .. }
                | Record::RunPaused { origin, .. }
                | Record::RunUnpaused { origin, .. } => origin.as_ref()?.id.as_deref().map(str::to_owned),
                _ => None,
            });
            let (applied, put) =
                (origins.collect::<Vec<_>>(), self.put.get(run).cloned().unwrap_or_default());
            if applied != put {
                violations.push(format!("{run} has {applied:?} of {put:?}"));
            }
            let over = journal.iter().filter_map(|record| match record {
                Record::ExecutionSucceeded { execution, .. } => Some(execution.0),
                _ => None,
            });
            let (mut once, mut twice) = (BTreeSet::new(), over.collect::<Vec<_>>());
            twice.retain(|execution| !once.insert(*execution));
            if !twice.is_empty() {
                violations.push(format!("{run} has executions that succeeded twice: {twice:?}"));
            }
            if let Some(number) = run.as_str().strip_prefix("r-").and_then(|run| run.parse::<u32>().ok()) {
                let expected = json!(4_000 * (number + 1) + 123);
                let done = journal.iter().find_map(|record| match record {
                    Record::EventLogged { event, .. } if event.name() == "Done" => {
                        Some(serde_json::to_value(event).unwrap()["data"].clone())
                    }
                    _ => None,
                });
                if done.as_ref() != Some(&expected) {
                    violations.push(format!("{run} ended with {done:?} instead of {expected}"));
                }
            }
        }
        violations
    }
}

/// Plays a case.
fn play(seed: u64) -> (Arc<World>, Vec<String>) {
    let runtime = runtime();
    let played = runtime.block_on(async {
        let mut case = Case::new(seed);
        for number in 0..u32::try_from(RUNS).unwrap() {
            case.starts(number).await;
        }
        for _ in 0..ACTIONS {
            case.acts().await;
        }
        case.ends().await;
        (Arc::clone(&case.world), case.violations())
    });
    runtime.shutdown_background();
    played
}

// S40, S66, S67
#[test]
#[expect(clippy::print_stderr, reason = "a test of a size shows what it reached")]
fn random_engines_over_a_store_that_fails_do_everything_once() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (cases, first) = (number("CLAIMED_CASES"), number("CLAIMED_SEED"));
    let only = first.filter(|_| cases.is_none());
    let (first, cases) = (first.unwrap_or(0), only.map_or(cases.unwrap_or(20), |_| 1));
    let (mut reached, mut failed) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for seed in first..first + cases {
        let (world, violations) = play(seed);
        let state = world.state();
        for (what, times) in &state.reached {
            *reached.entry(what).or_default() += times;
        }
        if !violations.is_empty() {
            if only.is_some() {
                eprintln!("{}", state.ledger.join("\n"));
            }
            failed.push(format!("CLAIMED_SEED={seed}: {}", violations.join("\n  ")));
        }
    }
    eprintln!("{reached:?}");
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
    for what in ["a claim", "a hold", "a kill", "a failure before", "a failure after"] {
        assert!(only.is_some() || reached.contains_key(what), "{what} in {reached:?}");
    }
}
