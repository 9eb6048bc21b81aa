//! Evaluation of steps, and their sharing of threads (S11, S14, S20–S22).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::{ErrorClass, Retries, RetryPolicy};
use workflow_testkit::Scenario;

use crate::fixtures::{
    Alpha, Begin, Beta, Close, Done, Gate, Item, Part, Saw, Seen, everyone_else, outcomes_of, saw, started,
    until,
};

struct InOrder;

#[workflow]
impl InOrder {
    #[step]
    async fn third_by_name(&self, alpha: &Alpha) -> Saw {
        Saw(format!("first {}", alpha.0))
    }

    #[step]
    async fn first_by_name(&self, alpha: &Alpha) -> Saw {
        Saw(format!("second {}", alpha.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S11
#[tokio::test]
async fn steps_of_one_trigger_are_evaluated_in_declaration_order() {
    let run = Scenario::new(InOrder).send(Alpha(1)).send(Alpha(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["first 1", "second 1", "first 2", "second 2"]);
}

struct Again;

#[workflow]
impl Again {
    #[step]
    async fn run_again(&self, alpha: &Alpha, begin: &Begin) -> Saw {
        Saw(format!("{} {}", begin.0, alpha.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S14
#[tokio::test]
async fn a_step_runs_as_soon_as_it_is_ready_and_again_for_every_later_trigger() {
    let scenario = Scenario::new(Again).send(Alpha(1)).send(Alpha(2)).send(Alpha(3));
    assert_eq!(saw(&scenario.start(Begin(7)).await), ["7 1", "7 2", "7 3"]);
}

struct NothingElse;

#[workflow]
impl NothingElse {
    #[step(precondition = allowed)]
    async fn guarded(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    async fn allowed(context: &RunContext) -> Result<bool, StepError> {
        Ok(context.get::<bool>("allowed").await?.unwrap_or(false))
    }

    /// Writes the precondition's data, and ends after the evaluation.
    #[step]
    async fn allow(&self, _begin: &Begin, context: &RunContext) -> Result<(), StepError> {
        tokio::task::yield_now().await;
        Ok(context.set("allowed", true).await?)
    }
}

// S11
#[tokio::test]
async fn neither_a_context_write_nor_another_steps_end_triggers_anything() {
    let run = Scenario::new(NothingElse).start(Begin(1)).await;
    let report = run.stall().unwrap();
    assert_eq!(report.idle.len(), 1);
    let refused = report.idle[0].refused.as_ref().unwrap();
    assert_eq!((&*refused.precondition, refused.times), ("allowed", 1));
}

struct Together(Arc<Barrier>);

#[workflow]
impl Together {
    #[step]
    async fn left(&self, begin: &Begin) -> Item {
        self.0.wait().await;
        Item(begin.0)
    }

    #[step]
    async fn right(&self, begin: &Begin) -> Part {
        self.0.wait().await;
        Part(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S21
#[tokio::test]
async fn ready_steps_run_concurrently() {
    let done = Together(Arc::new(Barrier::new(2))).run(Begin(1)).await.unwrap();
    assert_eq!(done, Done(2));
}

struct Fanned {
    gate: Gate,
    seen: Seen,
}

#[workflow]
impl Fanned {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(concurrency = 2)]
    async fn work(&self, item: &Item) -> Part {
        self.seen.note(item.0.to_string());
        self.gate.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 5>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

// S21
#[tokio::test]
async fn the_surplus_over_a_steps_concurrency_waits_in_order() {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let run = started(Fanned { gate: gate.clone(), seen: seen.clone() }, 5).await;
    everyone_else().await;
    assert_eq!(seen.lines(), ["1", "2"]);
    gate.let_pass(1);
    everyone_else().await;
    assert_eq!(seen.lines(), ["1", "2", "3"]);
    gate.let_pass(4);
    assert_eq!(run.outcome().await.unwrap(), Done(15));
    assert_eq!(seen.lines(), ["1", "2", "3", "4", "5"]);
}

// S21
#[tokio::test]
async fn an_engine_bounds_the_concurrent_executions_of_a_run() {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let workflow = Fanned { gate: gate.clone(), seen: seen.clone() };
    let engine = Engine::builder().workflow(workflow).max_concurrent_executions(1).build().unwrap();
    let run = engine.start::<Fanned>(Begin(5)).await.unwrap();
    everyone_else().await;
    assert_eq!(seen.lines(), ["1"]);
    gate.let_pass(5);
    assert_eq!(run.outcome().await.unwrap(), Done(15));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Worked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined;

/// Opens inner branches. The first fails; the others wait for their turn behind it.
struct Within(Seen);

#[workflow]
impl Within {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        FanOut::new(vec![Item(0)]).continue_others()
    }

    #[step]
    async fn within(&self, _item: &Item) -> FanOut<Part> {
        FanOut::new(vec![Part(1), Part(2), Part(3)]).fail_all()
    }

    #[step]
    async fn work(&self, part: &Part) -> Result<Worked, StepError> {
        self.0.note(part.0.to_string());
        tokio::task::yield_now().await;
        if part.0 < 4 { Err(StepError::permanent("it is broken")) } else { Ok(Worked) }
    }

    #[step]
    async fn gathered(&self, _all: &Gather<Worked>) -> Joined {
        Joined
    }

    #[step]
    async fn end(&self, all: &Gather<Joined>) -> Done {
        Done(u32::try_from(all.failed().count()).unwrap())
    }
}

// S21, S49
#[tokio::test]
async fn a_waiting_execution_does_not_begin_once_its_branch_is_dropped() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Within(seen.clone())).max_concurrent_executions(1);
    let run = engine.build().unwrap().start::<Within>(Begin(1)).await.unwrap();
    let _ = run.outcome().await;
    assert_eq!(seen.lines(), ["1"]);
    let report = run.report().await.unwrap();
    let dropped = outcomes_of(&report, "work").into_iter().filter(|it| **it == ExecutionOutcome::Dropped);
    assert_eq!(dropped.count(), 2);
}

fn at_once() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::ZERO))
}

/// The first attempt at each item fails.
struct Attempts(Seen, Arc<Level>);

#[workflow]
impl Attempts {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(retry = at_once())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        let now = self.1.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.1.highest.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.1.now.fetch_sub(1, Ordering::SeqCst);
        self.0.note(format!("{} {}", item.0, info.attempt()));
        if info.attempt() == 1 { Err(StepError::transient("not yet")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 5>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

// S21
#[tokio::test(start_paused = true)]
async fn another_attempt_waits_for_its_turn_as_the_first_did() {
    let seen = Seen::default();
    let level = Arc::<Level>::default();
    let engine = Engine::builder().workflow(Attempts(seen.clone(), Arc::clone(&level)));
    let engine = engine.max_concurrent_executions(1).build().unwrap();
    let run = engine.start::<Attempts>(Begin(5)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(15));
    assert_eq!((seen.lines().len(), level.highest.load(Ordering::SeqCst)), (10, 1));
}

#[derive(Default)]
struct Level {
    now: AtomicUsize,
    highest: AtomicUsize,
}

impl Level {
    async fn visit(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.highest.fetch_max(now, Ordering::SeqCst);
        // The maximum number must be reached once, even with few threads.
        until(|| self.highest.load(Ordering::SeqCst) >= 3).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Levelled(Arc<Level>);

#[workflow]
impl Levelled {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(concurrency = 3, spawn)]
    async fn work(&self, item: &Item) -> Part {
        self.0.visit().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 40>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steps_concurrency_holds_across_threads() {
    let level = Arc::<Level>::default();
    assert_eq!(Levelled(Arc::clone(&level)).run(Begin(40)).await.unwrap(), Done(40));
    assert_eq!(level.highest.load(Ordering::SeqCst), 3);
}

struct Spawning;

#[workflow]
impl Spawning {
    /// Each half needs the other to be on another thread: both block.
    #[step(spawn)]
    async fn left(&self, begin: &Begin, halves: &Halves) -> Item {
        halves.0.wait();
        Item(begin.0)
    }

    #[step(spawn)]
    async fn right(&self, begin: &Begin, halves: &Halves) -> Part {
        halves.0.wait();
        Part(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

struct Halves(&'static std::sync::Barrier);

impl workflow_core::StepInput for &Halves {
    const SPEC: workflow_core::signature::InputSpec = workflow_core::signature::InputSpec::injected("Halves");
    type Item<'a> = &'a Halves;

    fn fill(slot: workflow_core::signature::Slot<'_>) -> Result<&Halves, StepError> {
        static BOTH: std::sync::LazyLock<std::sync::Barrier> =
            std::sync::LazyLock::new(|| std::sync::Barrier::new(2));
        Ok(slot.keep(Halves(&BOTH)))
    }
}

// S21
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn spawned_executions_of_one_run_use_several_threads() {
    let engine = Engine::builder().workflow(Spawning).build().unwrap();
    let run = engine.start::<Spawning>(Begin(4)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(8));
}

struct Loops;

#[workflow]
impl Loops {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn count_down(&self, item: &Item) -> (Option<Item>, Option<Part>) {
        let next = item.0.checked_sub(1).map(Item);
        let last = next.is_none().then_some(Part(item.0));
        (next, last)
    }

    #[step(precondition = is_zero)]
    async fn end(&self, item: &Item, _part: &Part) -> Done {
        Done(item.0)
    }

    #[precondition]
    fn is_zero(item: &Item) -> bool {
        item.0 == 0
    }
}

// S9, S14
#[tokio::test]
async fn a_step_may_loop_until_it_stops_emitting_what_it_takes() {
    let run = Scenario::new(Loops).start(Begin(4)).await;
    run.assert_executions("count_down", 5);
    run.assert_emitted::<Item>(5);
}

struct Endless;

#[workflow]
impl Endless {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Item, Option<Done>) {
        (Item(item.0 + 1), None)
    }
}

// S9
#[tokio::test]
async fn a_loop_without_a_way_out_ends_where_the_log_is_full() {
    let engine = Engine::builder().workflow(Endless).max_events_per_run(100).build().unwrap();
    let run = engine.start::<Endless>(Begin(0)).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::LogFull { limit: 100, .. })));
    assert_eq!(run.report().await.unwrap().log.len(), 100);
}

struct Long;

#[workflow]
impl Long {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Option<Item>, Option<Done>) {
        let next = item.0.checked_sub(1).map(Item);
        let done = next.is_none().then_some(Done(0));
        (next, done)
    }
}

// S21
#[tokio::test]
async fn a_run_that_never_waits_lets_others_have_their_turn() {
    let long = started(Long, 20_000).await;
    let short = started(Long, 1).await;
    short.outcome().await.unwrap();
    assert!(!long.status().is_ended());
    long.outcome().await.unwrap();
}

struct Same;

#[workflow]
impl Same {
    #[step(reruns)]
    async fn both(&self, alphas: Option<FixedList<Alpha, 1>>, betas: Option<FixedList<Beta, 1>>) -> Saw {
        let alphas = alphas.map(|alphas| alphas.to_array()[0].0);
        let betas = betas.map(|betas| betas.to_array()[0].0);
        Saw(format!("{alphas:?} {betas:?}"))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S20
#[tokio::test]
async fn one_combination_of_events_executes_at_most_once() {
    let scenario = (1..=3).fold(Scenario::new(Same), |scenario, n| scenario.send(Alpha(n)).send(Beta(n)));
    assert_eq!(saw(&scenario.start(Begin(0)).await), ["Some(1) None", "Some(1) Some(1)"]);
}

struct Shared {
    calls: AtomicUsize,
}

#[workflow]
impl Shared {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn count(&self, item: &Item) -> Part {
        tokio::task::yield_now().await;
        self.calls.fetch_add(1, Ordering::SeqCst);
        Part(item.0)
    }

    #[step]
    async fn end(&self, _parts: &FixedList<Part, 8>) -> Done {
        Done(u32::try_from(self.calls.load(Ordering::SeqCst)).unwrap())
    }
}

// S22
#[tokio::test]
async fn every_execution_of_every_run_borrows_the_same_workflow() {
    let engine = Engine::builder().workflow(Shared { calls: AtomicUsize::new(0) }).build().unwrap();
    let first = engine.start::<Shared>(Begin(8)).await.unwrap().outcome().await.unwrap();
    let second = engine.start::<Shared>(Begin(8)).await.unwrap().outcome().await.unwrap();
    assert_eq!((first, second), (Done(8), Done(16)));
}

struct WithoutSelf;

#[workflow]
impl WithoutSelf {
    #[step]
    async fn end(begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S22
#[tokio::test]
async fn a_step_that_depends_on_nothing_needs_no_self() {
    Scenario::new(WithoutSelf).start(Begin(2)).await.assert_output(&Done(2));
}
