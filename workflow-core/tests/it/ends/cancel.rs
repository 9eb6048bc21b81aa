//! Cancelling a run at every point and by a dropped guard, and the signals that executions get (S31).

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture,
    StoredRun, Write,
};
use workflow_core::{EngineBuilder, RunHandle, RunId, RunOptions, RunStatus, Seq};
use workflow_testkit::{Scenario, VirtualClock, explore};

use crate::fixtures::{Alive, Begin, Done, Guard, log_of, until};

mod attempts;
mod children;
mod everything;
mod guards;
mod timers;
mod told;

/// The points of a run. The test cancels the run at the chosen one.
#[derive(Debug, Clone, Default)]
struct Points(Arc<Mutex<Chosen>>);

#[derive(Debug, Default)]
struct Chosen {
    passed: usize,
    /// The point, and the guard to drop there.
    cancels: Option<(usize, Box<dyn Any + Send>)>,
    is_set: bool,
}

impl Points {
    fn cancel_at(&self, point: usize, guard: impl Any + Send) {
        *self.0.lock().unwrap() = Chosen { passed: 0, cancels: Some((point, Box::new(guard))), is_set: true };
    }

    /// Waits until a point is chosen: a concurrent task could pass all of them before.
    async fn chosen(&self) {
        until(|| self.0.lock().unwrap().is_set).await;
    }

    fn pass(&self) {
        let mut chosen = self.0.lock().unwrap();
        chosen.passed += 1;
        let passed = chosen.passed;
        let guard = chosen.cancels.take_if(|(point, _)| *point == passed);
        drop(chosen);
        drop(guard);
    }

    /// Takes a turn between two points.
    async fn turn(&self) {
        self.pass();
        tokio::task::yield_now().await;
        self.pass();
    }
}

/// The state that workflows share with these tests.
#[derive(Clone, Default)]
struct World {
    points: Points,
    alive: Alive,
}

impl World {
    async fn guarded_turn(&self) -> Guard {
        let guard = self.alive.guard();
        self.points.turn().await;
        guard
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Question;
/// Replies to all requests of the run until it ends. Time passes when the run is idle.
async fn answer<W: Workflow>(run: &RunHandle<W>, points: &Points) {
    while !run.settled().await.is_ended() {
        for request in run.requests().await.unwrap_or_default() {
            points.pass();
            if let Some(id) = request.id::<Question>() {
                // An error says that the run has ended.
                let _ = run.reply(id, 1).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The observations of logs and ends, in order.
#[derive(Clone, Default)]
struct Story(Arc<Mutex<Vec<Told>>>);

/// The run, and the position of the event; `None` for the end of the run.
type Told = (RunId, Option<Seq>);

impl Observer for Story {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        let told = match what {
            Observed::EventLogged { seq, .. } => Some(*seq),
            Observed::RunEnded { .. } => None,
            _ => return,
        };
        self.0.lock().unwrap().push((run.clone(), told));
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl Story {
    fn ends_with_the_end_of(&self, run: &RunId) -> bool {
        self.0.lock().unwrap().last() == Some(&(run.clone(), None))
    }

    /// The observations of each run.
    fn of_each_run(&self) -> BTreeMap<RunId, Vec<Option<Seq>>> {
        let story = self.0.lock().unwrap();
        let mut runs = BTreeMap::<_, Vec<_>>::new();
        for (run, told) in &*story {
            runs.entry(run.clone()).or_default().push(*told);
        }
        runs
    }
}

/// A slow store, with points at which a run can be cancelled too.
#[derive(Debug, Clone, Default)]
struct Slow(Arc<MemoryStore>, Points);

impl EventStore for Slow {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (Self(kept, points), run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            points.turn().await;
            kept.append(&run, expected, batch).await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.0.contexts()
    }
}

/// The way a run is cancelled.
#[derive(Debug, Clone, Copy)]
enum Cancel {
    /// From within, at a point.
    AtPoint(usize),
    /// From outside, after this many turns.
    AfterTurns(usize),
    /// From outside, after this many turns, with a second of virtual time per sixteen turns.
    InTime(usize),
}

impl Cancel {
    async fn turns(self) {
        let (seconds, turns) = match self {
            Self::AtPoint(_) => (0, 0),
            Self::AfterTurns(turns) => (0, turns),
            Self::InTime(turns) => (turns / 16, turns % 16),
        };
        tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }
}

/// Asserts that a run cancelled there leaves nothing behind, nor does a run below it: no event after the end, no task
/// and no guard. Its end comes after theirs. Returns whether it was cancelled, or completed first.
async fn leaves_nothing<W: Workflow>(engine: EngineBuilder, world: &World, cancel: Cancel) -> RunStatus {
    let (story, runtime) = (Story::default(), Handle::current().metrics());
    let engine = engine.clock(VirtualClock::new()).observer(story.clone()).build().unwrap();
    let options = |id: &str| RunOptions::new().id(id).thread("shared");
    let tasks = runtime.num_alive_tasks();
    let run = engine.start_with::<W>(Begin(2), options("first")).await.unwrap();
    if let Cancel::AtPoint(point) = cancel {
        world.points.cancel_at(point, run.clone().cancel_on_drop("at a point"));
        answer(&run, &world.points).await;
    } else {
        let cancels = async {
            cancel.turns().await;
            // An error says that the run has ended.
            let _ = run.cancel("after its turns").await;
        };
        tokio::join!(cancels, answer(&run, &world.points));
    }
    let (status, report) = (run.status(), run.report().await.unwrap());
    // Only children that a completed run does not wait for may continue.
    assert!(status == RunStatus::Completed || story.ends_with_the_end_of(run.id()), "{cancel:?}");
    until(|| world.alive.count() == 0 && runtime.num_alive_tasks() == tasks).await;
    let is_done = report.log.iter().any(|logged| &*logged.event == "Done");
    assert_eq!(is_done, status == RunStatus::Completed);
    let told = story.of_each_run();
    for (run, told) in &told {
        let journal = engine.history(run).await.unwrap();
        let ends = journal.iter().filter(|record| matches!(record, Record::RunEnded { .. })).count();
        assert!(ends == 1 && matches!(journal.last(), Some(Record::RunEnded { .. })), "{run}: {cancel:?}");
        assert_eq!(told.iter().position(Option::is_none), Some(told.len() - 1), "{run}: {cancel:?}");
    }
    let logged: Vec<_> = report.log.iter().map(|logged| Some(logged.seq)).chain([None]).collect();
    assert_eq!(told[run.id()], logged, "{cancel:?}");
    world.points.cancel_at(usize::MAX, ());
    let next = engine.start_with::<W>(Begin(2), options("next")).await.unwrap();
    answer(&next, &world.points).await;
    let completed = next.status() == RunStatus::Completed;
    assert!(completed, "the next run of the thread can use everything: {cancel:?}");
    until(|| world.alive.count() == 0 && runtime.num_alive_tasks() == tasks).await;
    status
}

/// Cancels at each point in turn, until the run ends first; with a store that answers at once, and a slow one.
fn everywhere<W: Workflow>(workflow: impl Fn(World) -> W, cancel: impl Fn(usize) -> Cancel) {
    let engine = |world: &World| Engine::builder().workflow(workflow(world.clone()));
    wherever::<W>(|world| engine(world).store(MemoryStore::default()), &cancel);
    wherever::<W>(|world| engine(world).store(Slow(Arc::default(), world.points.clone())), &cancel);
}

fn wherever<W: Workflow>(engine: impl Fn(&World) -> EngineBuilder, cancel: impl Fn(usize) -> Cancel) {
    for point in 1.. {
        let world = World::default();
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let status =
            runtime.block_on(async { leaves_nothing::<W>(engine(&world), &world, cancel(point)).await });
        if status == RunStatus::Completed {
            assert!(point > 1, "it was cancelled before");
            return;
        }
        assert_eq!(status, RunStatus::Cancelled, "at {point}");
        assert!(point < 1_000, "a run comes to an end");
    }
}

/// Tries every order of a cancel and the run's operations.
fn in_every_order<W: Workflow>(workflow: fn(World) -> W) {
    let world = World::default();
    let scenario = || {
        let scenario = Scenario::new(workflow(world.clone())).reply(|_: &Question| 1);
        scenario.cancel_after(Duration::ZERO, "now").start(Begin(1))
    };
    let explored = explore(scenario).assert(|run| {
        assert_eq!(world.alive.count(), 0);
        let (has_ended, log) = (run.emitted::<Done>().len() == 1, log_of(run.report()));
        assert_eq!(has_ended, run.status() == RunStatus::Completed);
        assert_eq!(has_ended, log.last() == Some(&"Done"));
        assert!(has_ended || run.status() == RunStatus::Cancelled);
    });
    let completed = explored.outcomes().filter(|outcome| outcome.output().is_some()).count();
    assert!(completed > 0 && explored.outcomes().count() > completed);
}
