//! Random trees of parents and children (S34, S82): whatever happens to their engines, a report, a summary and a report of the
//! records alone say the same of each child, and the same quality.
//!
//! Children succeed, fail, stall, time out, are dropped by the step that awaits them, are independent, or are cancelled. Runs
//! are unloaded and loaded again, engines shut down, are killed also at a random write, and another engine takes over, in
//! every second case by a claim. The model knows nothing of the record of ends: it reads the children's own journals.
//!
//! `REPORTED_RUNS=2000` makes more trees than a test needs each time, `REPORTED_SEED=7` only this one.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::{Quality, RunReport};
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{
    AnyRun, ErrorClass, RecordedRun, Redrive, Retries, RetryPolicy, RunId, RunOptions, RunStatus,
};
use workflow_testkit::VirtualClock;

use crate::formats::recorded::as_read;

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(30);

/// The random acts of a case, before its runs are left alone.
const ACTS: u32 = 25;

/// How many runs are below the root at most, one under the other.
const DEPTH: u64 = 2;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    seed: u64,
    depth: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Turn {
    seed: u64,
    depth: u64,
    number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Bell;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done;

/// A number below `limit` that follows from the seed and the place where it is drawn.
fn drawn(seed: u64, place: u64, limit: u64) -> u64 {
    fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ place).u64(..limit)
}

fn seconds(seed: u64, place: u64, limit: u64) -> Duration {
    SECOND * u32::try_from(drawn(seed, place, limit)).unwrap()
}

fn soon() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(2, 7 * SECOND))
}

/// Takes a few turns, most of which have children. A bell may end it while they run.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn plan(&self, begin: &Begin) -> (Turn, Option<Timer<Bell>>) {
        let &Begin { seed, depth } = begin;
        let bell = (drawn(seed, 1, 3) == 0).then(|| Timer::after(seconds(seed, 2, 200), Bell));
        (Turn { seed, depth, number: 0 }, bell)
    }

    #[step(loops, retry = soon())]
    async fn turn(
        &self,
        turn: &Turn,
        children: &Children,
        info: &RunInfo,
    ) -> Result<(Option<Turn>, Option<Timer<Turn>>, Option<Done>), StepError> {
        let seed = turn.seed * 64 + turn.number * 4 + u64::from(info.attempt());
        plays(seed, turn.depth, children).await?;
        let next = Turn { number: turn.number + 1, ..turn.clone() };
        Ok(match drawn(seed, 3, 4) {
            _ if next.number == 2 + drawn(turn.seed, 4, 4) => (None, None, Some(Done)),
            0 => (Some(next), None, None),
            _ => (None, Some(Timer::after(seconds(seed, 5, 90), next)), None),
        })
    }

    #[step]
    async fn ring(&self, _bell: &Bell) -> Done {
        Done
    }

    #[step(on_end)]
    async fn tidy(&self, begin: &Begin, children: &Children) {
        if drawn(begin.seed, 6, 2) == 0 {
            let _ = children.run::<Child>(Begin { seed: begin.seed * 64 + 63, depth: 0 }).await;
        }
    }
}

/// The children of one attempt.
async fn plays(seed: u64, depth: u64, children: &Children) -> Result<(), StepError> {
    let small = |place| Begin { seed: seed * 8 + place, depth: 0 };
    let large = || Begin { seed: seed * 8 + 7, depth: depth.saturating_sub(1) };
    match drawn(seed, 10, 10) {
        0 | 1 => drop(children.run::<Child>(small(0)).await),
        2 => drop(tokio::join!(children.run::<Child>(small(0)), children.run::<Child>(small(1)))),
        3 if depth > 0 => drop(children.run::<Parent>(large()).await),
        4 => drop(children.start::<Child>(small(2)).await),
        5 if depth > 0 => drop(children.start::<Parent>(large()).await),
        6 => {
            tokio::select! {
                ended = children.run::<Child>(small(3)) => drop(ended),
                () = sleep(seconds(seed, 11, 60)) => {}
            }
        }
        7 => {
            let _done = children.run::<Child>(small(4)).await.map_err(StepError::transient)?;
        }
        8 => {
            if let Ok(child) = children.start::<Child>(small(5)).await {
                sleep(seconds(seed, 12, 20)).await;
                let _ = child.cancel("its parent wants it no more").await;
            }
        }
        9 => {
            let options = RunOptions::new().timeout(5 * SECOND);
            drop(children.run_with::<Child>(small(6), options).await);
        }
        _ => sleep(seconds(seed, 13, 30)).await,
    }
    Ok(())
}

/// Ends in every way.
struct Child;

#[workflow]
impl Child {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Option<Timer<Bell>>, StepError> {
        sleep(seconds(begin.seed, 20, 60)).await;
        match drawn(begin.seed, 21, 6) {
            0 | 1 => Err(StepError::permanent("broken")),
            // It stalls.
            2 => Ok(None),
            _ => Ok(Some(Timer::after(seconds(begin.seed, 22, 60), Bell))),
        }
    }

    #[step]
    async fn ring(&self, _bell: &Bell) -> Done {
        Done
    }
}

/// The store as one engine has it, until the process of that engine is killed. Clones are one.
#[derive(Debug, Clone)]
struct Line {
    kept: Arc<MemoryStore>,
    /// How many writes are left until the process is killed; negative if it is.
    left: Arc<AtomicI64>,
}

impl Line {
    fn of(kept: &Arc<MemoryStore>) -> Self {
        Self { kept: Arc::clone(kept), left: Arc::new(AtomicI64::new(i64::MAX)) }
    }

    /// The process is killed at the write behind as many.
    fn kill_after(&self, writes: i64) {
        self.left.store(writes, Ordering::SeqCst);
    }

    fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }

    fn call<T: Send + Unpin + 'static>(&self, answer: StoreFuture<T>) -> StoreFuture<T> {
        if self.is_dead() { StoreFuture::new(pending()) } else { answer }
    }
}

impl EventStore for Line {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return StoreFuture::new(pending());
        }
        let appended = self.kept.append(run, expected, batch);
        // The store has the last write, and the process does not know.
        self.call(appended)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.call(self.kept.read(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.call(self.kept.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.call(self.kept.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.call(self.kept.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        if self.is_dead() { StoreFuture::new(pending()) } else { self.kept.lease(engine, duration) }
    }
}

/// The children of a run with their ends, and the quality; `None` for a child that has not ended.
#[derive(Debug, PartialEq)]
struct Facts {
    children: Vec<(RunId, Option<RunStatus>)>,
    quality: Quality,
}

impl From<&RunReport> for Facts {
    fn from(report: &RunReport) -> Self {
        let end = |status: RunStatus| status.is_ended().then_some(status);
        let children = report.children.iter().map(|child| (child.child.run.clone(), end(child.status)));
        Self { children: children.collect(), quality: report.quality }
    }
}

/// One tree, its engine, and handles that a caller has kept.
struct Case {
    seed: u64,
    kept: Arc<MemoryStore>,
    clock: VirtualClock,
    engine: Engine,
    line: Line,
    born: u64,
    handles: BTreeMap<RunId, AnyRun>,
    rng: fastrand::Rng,
}

impl Case {
    async fn begin(seed: u64) -> Self {
        let (kept, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
        let (engine, line) = Self::engine(&kept, &clock, seed, 0);
        let options = RunOptions::new().id("r");
        let root =
            engine.start_with::<Parent>(Begin { seed: seed % 100_003, depth: DEPTH }, options).await.unwrap();
        drop(root);
        let (handles, rng) = (BTreeMap::new(), fastrand::Rng::with_seed(seed));
        Self { seed, kept, clock, engine, line, born: 0, handles, rng }
    }

    fn engine(kept: &Arc<MemoryStore>, clock: &VirtualClock, seed: u64, born: u64) -> (Engine, Line) {
        let line = Line::of(kept);
        let engine =
            Engine::builder().workflow(Parent).workflow(Child).store(line.clone()).clock(clock.clone());
        // Each of these engines is killed: that is no fault of its steps.
        let engine = engine.max_interrupted_attempts(u32::MAX).replay_check(true);
        let engine = if seed.is_multiple_of(2) { engine } else { engine.lease(LEASE) };
        let unloads = if (seed + born).is_multiple_of(3) { Duration::MAX } else { SECOND * 2 };
        (engine.unload_waiting_after(unloads).build().unwrap(), line)
    }

    /// Another engine takes over, of a process that was killed or shut down.
    async fn is_followed(&mut self) {
        self.handles.clear();
        self.born += 1;
        let (engine, line) = Self::engine(&self.kept, &self.clock, self.seed, self.born);
        let before = std::mem::replace(&mut self.engine, engine);
        if std::mem::replace(&mut self.line, line).is_dead() {
            // It gives nothing up.
            std::mem::forget(before);
        }
        if self.seed % 2 == 1 && self.rng.bool() {
            // By the claims of its renewals, once the lease of the other engine has run out.
            self.engine.claim_orphans().await.unwrap();
            sleep(3 * LEASE).await;
        }
        if self.seed % 2 == 1 {
            sleep(LEASE).await;
        }
        let resumed = self.engine.resume_open_runs().await.unwrap();
        assert!(
            resumed.refused.is_empty() && resumed.elsewhere.is_empty(),
            "case {}: {resumed:?}",
            self.seed
        );
    }

    fn journal(&self, run: &RunId) -> Vec<Record> {
        let read = self.kept.read(run, Position(0), usize::MAX);
        read.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    fn all(&self) -> Vec<StoredRun> {
        let all = self.kept.runs(&RunQuery::new());
        all.now_or_never().expect("a store in memory answers at once").unwrap()
    }

    /// The journal of a run, a line for each record.
    fn told(&self, run: &RunId) -> String {
        let lines = self.journal(run).into_iter().map(|record| {
            let mut line = format!("  {run}: {record:?}");
            line.truncate(line.floor_char_boundary(260));
            line + "\n"
        });
        lines.collect()
    }

    /// How and when a run ended, by its own journal.
    fn end(&self, run: &RunId) -> Option<(RunStatus, SystemTime)> {
        match self.journal(run).last()? {
            Record::RunEnded { status, at, .. } => Some((*status, *at)),
            _ => None,
        }
    }

    /// The ends that a report of the run may have for each child.
    fn model(&self, run: &RunId) -> Vec<(RunId, Vec<Option<RunStatus>>)> {
        let parent = self.end(run);
        let children = self.journal(run).into_iter().filter_map(|record| match record {
            Record::ChildStarted { child, .. } => Some(child),
            _ => None,
        });
        let may_be = children.map(|child| {
            let end = self.end(&child.run);
            // The end of a child that goes on when its parent has ended.
            let later = match parent {
                Some((RunStatus::Completed, _)) if child.awaited => Some(RunStatus::Cancelled),
                _ => None,
            };
            let status = end.map(|(status, _)| status);
            let may_be = match (parent, end) {
                (None, _) => vec![status],
                // It waits for awaited children, and records their ends before its own.
                (Some((RunStatus::Completed, until)), Some((_, at))) if at == until => vec![status, later],
                (Some((_, until)), Some((_, at))) if at == until && !child.awaited => vec![status, later],
                (Some((_, until)), Some((_, at))) if at <= until => vec![status],
                (Some((RunStatus::Completed, _)), _) => vec![later],
                (Some(_), _) if child.awaited => panic!("{} did not end before {run}", child.run),
                (Some(_), _) => vec![None],
            };
            (child.run, may_be)
        });
        may_be.collect()
    }

    /// Asserts that the facts are those of the model, and that the records alone say the same.
    fn compare(&self, run: &RunId, facts: &Facts, what: &str) {
        let (seed, model, journal) = (self.seed, self.model(run), as_read(&self.journal(run)));
        let recorded = RecordedRun::of(run, &journal).unwrap();
        assert_eq!(
            *facts,
            recorded.report().into(),
            "{run} of case {seed}, {what}: live, and by the records"
        );
        assert_eq!(facts.children.len(), model.len(), "{run} of case {seed}, {what}: {facts:?}");
        for ((child, status), (of, may_be)) in facts.children.iter().zip(&model) {
            assert!(
                child == of && may_be.contains(status),
                "{child} of case {seed}, {what}: {status:?}, and not one of {may_be:?}\n{}{}",
                self.told(run),
                self.told(child)
            );
        }
        let awaited = |run: &RunId| {
            let is_awaited = |record: &Record| matches!(record, Record::ChildStarted { child, .. } if child.awaited && child.run == *run);
            journal.iter().any(is_awaited)
        };
        let bad = [RunStatus::Failed, RunStatus::Stalled, RunStatus::TimedOut].map(Some);
        let is_degraded = facts.children.iter().any(|(child, status)| awaited(child) && bad.contains(status));
        let quality = match self.end(run) {
            Some((status, _)) if status != RunStatus::Completed => Quality::Failed,
            _ if is_degraded => Quality::Degraded,
            _ => Quality::Clean,
        };
        assert_eq!(facts.quality, quality, "{run} of case {seed}, {what}");
    }

    /// Looks at every run that is here, or has ended.
    async fn look(&mut self, reached: &mut Reached) {
        for StoredRun { id, run: listed, .. } in self.all() {
            if let Some(handle) = self.handles.get(&id).filter(|handle| handle.status() == listed.status) {
                let before = self.journal(&id).len();
                let Some(report) = answered(handle.report_so_far()).await else { return };
                let report = report.unwrap();
                // Else the run went on behind its report.
                if self.journal(&id).len() == before {
                    self.compare(&id, &(&*report).into(), "by a handle that was kept");
                    reached.note("a handle that was kept");
                }
            }
            let mut before = self.journal(&id).len();
            let report = match self.engine.find(&id) {
                Some(run) if !listed.status.is_ended() => answered(run.report_so_far()).await,
                // A run that has ended, or a root that was unloaded.
                _ if listed.status.is_ended() || id.as_str() == "r" => {
                    let Some(run) = answered(self.engine.attach_any(&id)).await else { return };
                    reached.note(if listed.status.is_ended() { "looked back at" } else { "loaded" });
                    before = self.journal(&id).len();
                    answered(run.unwrap().report_so_far()).await
                }
                _ => None,
            };
            if self.line.is_dead() {
                return;
            }
            let Some(Ok(report)) = report.filter(|_| self.journal(&id).len() == before) else { continue };
            let facts = Facts::from(&*report);
            self.compare(&id, &facts, "as the engine has it");
            for (child, status) in &facts.children {
                let is_awaited =
                    report.children.iter().any(|known| known.child.run == *child && known.child.awaited);
                reached.note(match (is_awaited, status) {
                    (true, Some(RunStatus::Completed)) => "an awaited child that completed",
                    (true, Some(RunStatus::Failed)) => "an awaited child that failed",
                    (true, Some(RunStatus::Cancelled)) => "an awaited child that was cancelled",
                    (true, Some(_)) => "an awaited child that stalled or timed out",
                    (true, None) => "an awaited child that is open",
                    (false, Some(_)) => "an independent child that has ended",
                    (false, None) => "an independent child that is open",
                });
            }
            if let Some(quality) = self.all().iter().find(|run| run.id == id).and_then(|run| run.run.quality)
            {
                assert_eq!(quality, facts.quality, "the summary of {id} of case {}", self.seed);
                reached.note(match quality {
                    Quality::Clean => "a clean run",
                    Quality::Degraded => "a degraded run",
                    Quality::Failed => "a failed run",
                });
            }
        }
    }

    fn chosen(&mut self) -> Option<AnyRun> {
        let running = self.engine.running();
        let run = running.get(self.rng.usize(..running.len().max(1)))?;
        self.engine.find(run)
    }

    /// One random act.
    async fn acts(&mut self, reached: &mut Reached) {
        match self.rng.u8(..12) {
            0 => {
                reached.note("a kill");
                self.line.kill_after(0);
            }
            1 | 2 => self.line.kill_after(self.rng.i64(1..12)),
            3 => {
                reached.note("a shut down");
                let within = SECOND * self.rng.u32(..20);
                if answered(self.engine.shut_down(within)).await.is_none() {
                    self.line.kill_after(0);
                }
                self.is_followed().await;
            }
            4 if self.rng.bool() => {
                if let Some(run) = self.chosen() {
                    reached.note("a cancel");
                    // It may have ended, or wait for its store.
                    drop(answered(run.cancel("enough")).await);
                }
            }
            5 | 6 => {
                if let Some(run) = self.chosen() {
                    self.handles.insert(run.id().clone(), run);
                }
            }
            7 => self.handles.clear(),
            8 | 9 => {
                let ended = self.end(&"r".into()).filter(|(status, _)| *status != RunStatus::Completed);
                let despite = Redrive::new().despite_clean_up();
                if ended.is_some()
                    && let Some(Ok(_)) = answered(self.engine.redrive_with::<Parent>("r", despite)).await
                {
                    self.handles.clear();
                    reached.note("a redrive");
                }
            }
            _ => self.look(reached).await,
        }
    }

    /// Lets the time pass, and another engine take over if the process was killed meanwhile. Nothing else happens at the moment
    /// at which this returns.
    async fn pass(&mut self, time: Duration, reached: &mut Reached) {
        sleep(time + Duration::from_millis(1)).await;
        if self.line.is_dead() {
            reached.note("another engine after a kill");
            self.is_followed().await;
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// An answer; `None` if there is none any more, since the process is killed.
async fn answered<T>(asked: impl IntoFuture<Output = T>) -> Option<T> {
    tokio::time::timeout(LEASE, asked).await.ok()
}

/// The situations that the cases led to.
#[derive(Debug, Default)]
struct Reached(BTreeMap<&'static str, u64>);

impl Reached {
    fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

async fn play(seed: u64, reached: &mut Reached) {
    let mut case = Case::begin(seed).await;
    for _ in 0..ACTS {
        let time = SECOND * case.rng.u32(..40);
        case.pass(time, reached).await;
        case.acts(reached).await;
    }
    if !case.line.is_dead() {
        case.line.kill_after(i64::MAX);
    }
    for _ in 0..200 {
        case.pass(SECOND * 30, reached).await;
        case.look(reached).await;
        if case.all().iter().all(|run| run.run.status.is_ended()) {
            break;
        }
    }
    for StoredRun { id, run, .. } in case.all() {
        assert!(run.status.is_ended(), "{id} of case {seed} is {}", run.status);
    }
    // Another engine says the same later.
    let own = case.engine.clone();
    own.shut_down(SECOND).await;
    case.is_followed().await;
    case.look(reached).await;
}

// S34, S82
#[test]
fn reports_say_the_same_in_every_life_and_by_the_records_alone() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (runs, only) = (number("REPORTED_RUNS").unwrap_or(100), number("REPORTED_SEED"));
    let mut reached = Reached::default();
    for seed in only.map_or(0..runs, |seed| seed..seed + 1) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(seed, &mut reached));
    }
    let Reached(reached) = reached;
    let all = [
        "a kill",
        "another engine after a kill",
        "a shut down",
        "a cancel",
        "a redrive",
        "a handle that was kept",
        "loaded",
        "looked back at",
        "an awaited child that completed",
        "an awaited child that failed",
        "an awaited child that was cancelled",
        "an awaited child that stalled or timed out",
        "an awaited child that is open",
        "an independent child that has ended",
        "an independent child that is open",
        "a clean run",
        "a degraded run",
        "a failed run",
    ];
    for what in all {
        let count = reached.get(what).copied().unwrap_or_default();
        assert!(only.is_some() || runs < 100 || count * 30 >= runs, "{what} in {reached:?}");
    }
}
