//! Cancelling: at every point, by a guard that is dropped, and what executions are told of it (S31).

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::{Builder, Handle};
use workflow_core::prelude::*;
use workflow_core::{
    EngineBuilder, MemoryStore, Observation, Observed, Observer, Record, RunHandle, RunOptions, RunStatus,
    blocking,
};
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{
    Alive, Alpha, Begin, Done, Gate, Guard, Item, Part, Saw, Seen, everyone_else, log_of, started, until,
};

/// The points that a run comes to. At the one that is chosen it is cancelled.
#[derive(Clone, Default)]
struct Points(Arc<Mutex<Chosen>>);

#[derive(Default)]
struct Chosen {
    passed: usize,
    /// At which point, and what is dropped there.
    cancels: Option<(usize, Box<dyn Any + Send>)>,
    is_set: bool,
}

impl Points {
    fn cancel_at(&self, point: usize, guard: impl Any + Send) {
        *self.0.lock().unwrap() = Chosen { passed: 0, cancels: Some((point, Box::new(guard))), is_set: true };
    }

    /// Waits until a point is chosen: what goes on elsewhere could be past all of them before.
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

/// What the workflows of these tests share with them.
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

/// Two inputs, emitted events, display, contexts, an asynchronous precondition.
struct Joins(World);

#[workflow]
impl Joins {
    #[step]
    async fn first(&self, begin: &Begin, saws: &Emitter<Saw>, display: &Display) -> Result<Item, StepError> {
        let _guard = self.0.guarded_turn().await;
        for number in 0..2 {
            saws.emit(Saw(number.to_string()))?;
            display.show(Progress(number));
            self.0.points.turn().await;
        }
        Ok(Item(begin.0))
    }

    #[step(spawn)]
    async fn second(&self, begin: &Begin, display: &Display) -> Part {
        let _guard = self.0.guarded_turn().await;
        display.chunk("half way");
        self.0.points.turn().await;
        Part(begin.0)
    }

    #[step]
    async fn note(&self, _saw: &Saw, thread: &ThreadContext) -> Result<(), StepError> {
        let _guard = self.0.guarded_turn().await;
        thread.update("saws", |count: Option<u32>| count.unwrap_or(0) + 1).await?;
        self.0.points.pass();
        Ok(())
    }

    #[step(precondition = is_time)]
    async fn join(&self, item: &Item, part: &Part, run: &RunContext) -> Result<Done, StepError> {
        let _guard = self.0.guarded_turn().await;
        let sum = run.update("sum", |sum: Option<u32>| sum.unwrap_or(0) + item.0 + part.0).await?;
        self.0.points.pass();
        Ok(Done(sum))
    }

    #[precondition]
    async fn is_time(&self, _item: &Item) -> bool {
        let _guard = self.0.guarded_turn().await;
        true
    }
}

/// A fan-out whose branches run in tasks of their own.
struct Branches(World);

#[workflow]
impl Branches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        let _guard = self.0.guarded_turn().await;
        (0..begin.0 + 2).map(Item).collect()
    }

    #[step(spawn, concurrency = 2)]
    async fn work(&self, item: &Item, cancellation: &Cancellation) -> Result<Part, StepError> {
        let _guard = self.0.guarded_turn().await;
        cancellation.check()?;
        Ok(Part(item.0))
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(u32::try_from(parts.len()).unwrap())
    }
}

/// Waits for an answer.
struct Asks(World);

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Question {
        let _guard = self.0.guarded_turn().await;
        Question
    }

    #[step]
    async fn take(&self, answer: &Reply<Question>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(**answer)
    }
}

/// Computes on a thread.
struct Computes(World);

#[workflow]
impl Computes {
    #[step]
    async fn compute(&self, begin: &Begin) -> Result<Item, StepError> {
        let (guard, points, begin) = (self.0.alive.guard(), self.0.points.clone(), begin.0);
        points.chosen().await;
        let sum = blocking(move |cancellation| {
            let _guard = guard;
            for _ in 0..3 {
                points.pass();
                cancellation.check()?;
            }
            Ok::<_, workflow_core::Cancelled>(begin)
        });
        Ok(Item(sum.await??))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(item.0)
    }
}

/// Replies to whatever the run asks, until it ends.
async fn answer<W: Workflow>(run: &RunHandle<W>, points: &Points) {
    while !run.settled().await.is_ended() {
        for request in run.requests().await.unwrap_or_default() {
            points.pass();
            if let Some(id) = request.id::<Question>() {
                // An error says that the run has ended.
                let _ = run.reply(id, 1).await;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// What observers are told of the log and the end.
#[derive(Clone, Default)]
struct Story(Arc<Mutex<Vec<String>>>);

impl Observer for Story {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        if let Observed::EventLogged { .. } | Observed::RunEnded { .. } = what {
            let seq =
                if let Observed::EventLogged { seq, .. } = what { seq.to_string() } else { "end".into() };
            self.0.lock().unwrap().push(format!("{run} {seq}"));
        }
    }
}

/// How a run is cancelled.
#[derive(Debug, Clone, Copy)]
enum Cancel {
    /// From within, when it comes to a point.
    AtPoint(usize),
    /// From outside, when so many turns were taken.
    AfterTurns(usize),
}

/// A run that is cancelled there leaves nothing behind. Says whether it was, or completed first.
async fn leaves_nothing<W: Workflow>(engine: EngineBuilder, world: &World, cancel: Cancel) -> RunStatus {
    let (story, runtime) = (Story::default(), Handle::current().metrics());
    let engine = engine.observer(story.clone()).store(MemoryStore::default()).build().unwrap();
    let options = |id: &str| RunOptions::new().id(id).thread("shared");
    let tasks = runtime.num_alive_tasks();
    let run = engine.start_with::<W>(Begin(2), options("first")).await.unwrap();
    match cancel {
        Cancel::AtPoint(point) => {
            world.points.cancel_at(point, run.clone().cancel_on_drop("at a point"));
            answer(&run, &world.points).await;
        }
        Cancel::AfterTurns(turns) => {
            let turns = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                // An error says that the run has ended.
                let _ = run.cancel("after its turns").await;
            };
            tokio::join!(turns, answer(&run, &world.points));
        }
    }
    let (status, report) = (run.status(), run.report().await.unwrap());
    until(|| world.alive.count() == 0 && runtime.num_alive_tasks() == tasks).await;
    assert_eq!(report.log.iter().any(|logged| &*logged.event == "Done"), status == RunStatus::Completed);
    let journal = engine.history(run.id()).await.unwrap();
    let ends = journal.iter().filter(|record| matches!(record, Record::RunEnded { .. })).count();
    assert!(ends == 1 && matches!(journal.last(), Some(Record::RunEnded { .. })), "{cancel:?}");
    world.points.cancel_at(usize::MAX, ());
    let next = engine.start_with::<W>(Begin(2), options("next")).await.unwrap();
    answer(&next, &world.points).await;
    assert_eq!(
        next.status(),
        RunStatus::Completed,
        "the next run of the thread can use everything: {cancel:?}"
    );
    engine.shut_down(Duration::from_mins(1)).await;
    let story: Vec<String> =
        story.0.lock().unwrap().iter().filter(|line| line.starts_with("first ")).cloned().collect();
    let logged: Vec<String> = report.log.iter().map(|logged| format!("first {}", logged.seq)).collect();
    assert_eq!(story.split_last(), Some((&"first end".to_owned(), &logged[..])), "{cancel:?}");
    status
}

/// Cancels at each point there is, until the run has ended before.
fn everywhere<W: Workflow>(workflow: impl Fn(World) -> W, cancel: impl Fn(usize) -> Cancel) {
    for point in 1.. {
        let world = World::default();
        let engine = Engine::builder().workflow(workflow(world.clone()));
        let runtime = Builder::new_current_thread().build().unwrap();
        let status = runtime.block_on(leaves_nothing::<W>(engine, &world, cancel(point)));
        if status == RunStatus::Completed {
            assert!(point > 1, "it was cancelled before");
            return;
        }
        assert_eq!(status, RunStatus::Cancelled, "at {point}");
        assert!(point < 1_000, "a run comes to an end");
    }
}

// S31
#[test]
fn joins_emitters_display_and_contexts_can_be_cancelled_at_every_point() {
    everywhere(Joins, Cancel::AtPoint);
    everywhere(Joins, Cancel::AfterTurns);
}

// S31
#[test]
fn fan_outs_and_spawned_steps_can_be_cancelled_at_every_point() {
    everywhere(Branches, Cancel::AtPoint);
    everywhere(Branches, Cancel::AfterTurns);
}

// S31
#[test]
fn requests_can_be_cancelled_at_every_point() {
    everywhere(Asks, Cancel::AtPoint);
    everywhere(Asks, Cancel::AfterTurns);
}

// S31
#[test]
fn blocking_work_can_be_cancelled_at_every_point() {
    everywhere(Computes, Cancel::AtPoint);
}

/// Every order in which a cancel can meet what the run does.
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

// S31
#[test]
fn a_cancel_in_every_order_leaves_nothing() {
    in_every_order(Joins);
    in_every_order(Branches);
    in_every_order(Asks);
}

/// Never ends by itself.
struct Waiting;

#[workflow]
impl Waiting {
    #[step(precondition = never)]
    async fn end(&self, _begin: &Begin, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }

    #[precondition]
    fn never(alpha: &Alpha) -> bool {
        alpha.0 == 0
    }
}

async fn cancelled_because<W: Workflow>(run: &RunHandle<W>) -> String {
    match run.outcome().await {
        Err(RunError::Cancelled { reason }) => reason.to_string(),
        _ => panic!("it was cancelled: {}", run.status()),
    }
}

// S31
#[tokio::test]
async fn a_full_mailbox_does_not_lose_the_cancel_of_a_guard() {
    let run = started(Waiting, 0).await;
    run.settled().await;
    let guard = run.clone().cancel_on_drop("nobody listens");
    let sends = (0..64).filter(|number| run.send(Alpha(*number + 1)).now_or_never().is_none()).count();
    assert_eq!(sends, 64);
    drop(guard);
    assert_eq!(cancelled_because(&run).await, "nobody listens");
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}

// S31
#[tokio::test]
async fn a_guard_can_be_dropped_outside_of_a_runtime_and_in_a_panic() {
    let run = started(Waiting, 0).await;
    let guard = run.clone().cancel_on_drop("a thread went");
    std::thread::spawn(move || drop(guard)).join().unwrap();
    assert_eq!(cancelled_because(&run).await, "a thread went");
    let run = started(Waiting, 0).await;
    let guard = run.clone().cancel_on_drop("a thread panicked");
    let thread = std::thread::spawn(move || {
        let _guard = guard;
        panic!("the thread panics");
    });
    thread.join().unwrap_err();
    assert_eq!(cancelled_because(&run).await, "a thread panicked");
}

// S31
#[test]
fn a_guard_can_outlive_the_runtime_of_its_run() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let run = runtime.block_on(started(Waiting, 0));
    let guard = run.clone().cancel_on_drop("too late");
    drop(runtime);
    drop(guard);
    assert!(matches!(run.outcome().now_or_never(), Some(Err(RunError::Abandoned))));
}

// S31
#[tokio::test]
async fn a_guard_that_is_disarmed_is_a_handle_and_leaves_the_run_alone() {
    let guard = started(Waiting, 0).await.cancel_on_drop("never");
    assert_eq!(guard.settled().await, RunStatus::Waiting);
    let run = guard.disarm();
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Waiting);
    run.send(Alpha(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    drop(run.clone().cancel_on_drop("it has ended"));
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

// S31
#[tokio::test]
async fn of_several_guards_the_first_that_is_dropped_gives_the_reason() {
    let run = started(Waiting, 0).await;
    let guards = ["first", "second"].map(|reason| run.clone().cancel_on_drop(reason));
    drop(guards);
    assert_eq!(cancelled_because(&run).await, "first");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined;

/// Leaves something behind that waits to be told.
struct Leaving {
    left: Seen,
    cancellations: Arc<Mutex<Vec<Cancellation>>>,
    gate: Gate,
}

#[workflow]
impl Leaving {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Outer> {
        [Outer].into_iter().collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..4).map(Item).collect()
    }

    /// The first returns, the last fails, which drops those between them.
    #[step]
    async fn leave(&self, item: &Item, cancellation: Cancellation) -> Result<Part, StepError> {
        self.left.note(item.0.to_string());
        self.cancellations.lock().unwrap().push(cancellation);
        match item.0 {
            0 => Ok(Part(0)),
            3 => Err(StepError::permanent("broken")),
            _ => std::future::pending().await,
        }
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) -> Joined {
        Joined
    }

    #[step]
    async fn end(&self, _joined: &Gather<Joined>, cancellation: &Cancellation) -> Done {
        self.cancellations.lock().unwrap().push(cancellation.clone());
        self.gate.pass().await;
        Done(0)
    }
}

// S31, S49
#[tokio::test]
async fn a_cancellation_is_told_when_its_execution_has_returned_failed_or_was_dropped() {
    let (cancellations, gate) = (Arc::<Mutex<Vec<Cancellation>>>::default(), Gate::closed());
    let leaving =
        Leaving { left: Seen::default(), cancellations: Arc::clone(&cancellations), gate: gate.clone() };
    let left = leaving.left.clone();
    let run = started(leaving, 0).await;
    everyone_else().await;
    assert_eq!(
        (run.status(), left.lines()),
        (RunStatus::Running, ["0", "1", "2", "3"].map(String::from).into())
    );
    let told = || cancellations.lock().unwrap().iter().map(Cancellation::is_cancelled).collect::<Vec<_>>();
    assert_eq!(told(), [true, true, true, true, false]);
    gate.let_pass(1);
    run.outcome().await.unwrap();
    let last = cancellations.lock().unwrap().pop().unwrap();
    last.cancelled().await;
}

/// Computes without an await until it is told.
struct Stubborn(Alive, Arc<AtomicBool>);

#[workflow]
impl Stubborn {
    #[step(spawn)]
    async fn compute(&self, begin: &Begin, cancellation: &Cancellation) -> Result<Done, StepError> {
        let _guard = self.0.guard();
        while cancellation.check().is_ok() {
            std::thread::yield_now();
        }
        self.1.store(true, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(Done(begin.0))
    }
}

// S31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_computes_in_a_task_of_its_own_is_told_in_the_middle_of_it() {
    let (alive, told) = (Alive::default(), Arc::<AtomicBool>::default());
    let run = started(Stubborn(alive.clone(), Arc::clone(&told)), 1).await;
    until(|| alive.count() == 1).await;
    run.cancel("enough").await.unwrap();
    until(|| alive.count() == 0).await;
    assert!(told.load(Ordering::SeqCst));
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}
