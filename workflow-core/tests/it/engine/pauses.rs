//! Paused runs in memory (S61): their executions, and their appearance to a program.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::{Limit, Pause, Retries, RetryPolicy, RunHandle, RunOptions, RunStatus, SendError};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Gate, Item, Part, everyone_else};

const HOUR: Duration = Duration::from_hours(1);

/// The acts of the steps, in order. Clones share it.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

async fn paused<W: Workflow>(run: &RunHandle<W>) {
    run.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
}

/// Works on alphas behind a gate, asks before betas, and ends with the close.
#[derive(Clone)]
struct Works {
    seen: Seen,
    gate: Gate,
}

impl Works {
    fn new() -> Self {
        Self { seen: Seen::default(), gate: Gate::closed() }
    }
}

#[workflow]
impl Works {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        self.seen.add("begin");
        Item(begin.0)
    }

    #[step]
    async fn work(&self, alpha: &Alpha) -> Part {
        self.seen.add(format!("work {}", alpha.0));
        self.gate.pass().await;
        Part(alpha.0)
    }

    #[step]
    async fn note(&self, part: &Part) -> Item {
        self.seen.add(format!("note {}", part.0));
        Item(part.0)
    }

    #[step(precondition = is_wanted)]
    async fn check(&self, beta: &Beta) -> Item {
        self.seen.add(format!("check {}", beta.0));
        Item(beta.0)
    }

    #[precondition]
    fn is_wanted(&self, beta: &Beta) -> bool {
        self.seen.add(format!("is {} wanted", beta.0));
        true
    }

    #[step(reruns)]
    async fn end(&self, items: List<Item>, _close: &Close) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

async fn works(works: &Works) -> (Engine, RunHandle<Works>) {
    let engine = Engine::builder().workflow(works.clone()).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Works>(Begin(1)).await.unwrap();
    run.settled().await;
    works.seen.take();
    (engine, run)
}

// S61
#[tokio::test]
async fn nothing_begins_in_a_paused_run_and_what_was_deferred_begins_in_order_questions_first() {
    let workflow = Works::new();
    let (_engine, run) = works(&workflow).await;
    paused(&run).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(2)).await.unwrap();
    run.send(Alpha(3)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    everyone_else().await;
    assert!(workflow.seen.take().is_empty());
    let report = run.report_so_far().await.unwrap();
    assert_eq!((report.log.len(), report.executions("work")), (5, 0), "the events are in the log");
    let waiting: Vec<_> = report.waiting.iter().map(|it| (&*it.step, &it.waits_for)).collect();
    assert_eq!(waiting, [("work", &WaitsFor::Pause), ("work", &WaitsFor::Pause)]);
    workflow.gate.let_pass(2);
    run.unpause().await.unwrap();
    run.settled().await;
    assert_eq!(workflow.seen.take(), ["is 2 wanted", "check 2", "work 1", "work 3", "note 1", "note 3"]);
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
}

// S61
#[tokio::test]
async fn executions_under_way_end_and_commit_and_the_run_is_paused_once_none_runs() {
    let workflow = Works::new();
    let (_engine, run) = works(&workflow).await;
    run.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    run.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(run.status(), RunStatus::Running);
    let report = run.report_so_far().await.unwrap();
    assert!(report.paused.is_some() && report.to_string().contains("the run is paused since"));
    workflow.gate.let_pass(1);
    assert_eq!(run.settled().await, RunStatus::Paused);
    assert_eq!(workflow.seen.take(), ["work 1"], "its part is in the log, and nothing takes it yet");
    assert_eq!(run.report_so_far().await.unwrap().log.last().unwrap().event.to_string(), "Part");
    run.unpause().await.unwrap();
    run.settled().await;
    assert_eq!(workflow.seen.take(), ["note 1"]);
}

// S61
#[tokio::test]
async fn an_explanation_says_why_steps_of_a_paused_run_do_not_run() {
    let workflow = Works::new();
    let (_engine, run) = works(&workflow).await;
    paused(&run).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(2)).await.unwrap();
    let explained = run.explain().await.unwrap().to_string();
    let drawn = Works::graph().with_report(&run.report_so_far().await.unwrap()).to_mermaid();
    assert!(drawn.contains("did not run, 1 deferred"), "{drawn}");
    for text in [
        "`Works`: paused\n- the run is paused since",
        "x2 begins once the run is unpaused",
        "its precondition `is_wanted` is asked once the run is unpaused",
    ] {
        assert!(explained.contains(text), "{text} in {explained}");
    }
    assert!(!explained.contains("stalled"), "{explained}");
}

// S61
#[tokio::test]
async fn repeats_change_nothing_and_an_ended_run_is_neither_paused_nor_unpaused() {
    let workflow = Works::new();
    let (_engine, run) = works(&workflow).await;
    run.unpause().await.unwrap();
    assert_eq!(run.status(), RunStatus::Waiting);
    paused(&run).await;
    paused(&run).await;
    run.send(Alpha(1)).await.unwrap();
    workflow.gate.let_pass(1);
    run.unpause().await.unwrap();
    run.unpause().await.unwrap();
    run.settled().await;
    assert_eq!(workflow.seen.take(), ["work 1", "note 1"]);
    assert_eq!(run.report_so_far().await.unwrap().paused, None);
    run.cancel("enough").await.unwrap();
    for refused in [run.pause(Pause::AfterRunning).await, run.unpause().await] {
        assert!(matches!(refused, Err(SendError::Ended { status: RunStatus::Cancelled, .. })), "{refused:?}");
    }
}

// S61
#[tokio::test]
async fn without_a_store_a_run_cannot_drop_what_runs() {
    let workflow = Works::new();
    let (_engine, run) = works(&workflow).await;
    let refused = run.pause(Pause::Now).await.unwrap_err();
    assert!(
        matches!(refused, SendError::NoStore { .. }) && refused.to_string().contains("has no store"),
        "{refused}"
    );
    assert_eq!(run.status(), RunStatus::Waiting);
}

// S31, S61
#[tokio::test]
async fn a_cancel_ends_a_paused_run_and_its_clean_up_runs() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(CleansUp(seen.clone())).workflow(Undoes).build().unwrap();
    let run = engine.start::<CleansUp>(Begin(1)).await.unwrap();
    run.pause(Pause::AfterRunning).await.unwrap();
    run.send(Alpha(1)).await.unwrap();
    run.cancel("enough").await.unwrap();
    assert_eq!((run.status(), seen.take()), (RunStatus::Cancelled, vec!["undo 1".to_owned()]));
    assert_eq!(run.report().await.unwrap().paused, None);
}

struct CleansUp(Seen);

#[workflow]
impl CleansUp {
    #[step]
    async fn work(&self, _begin: &Begin, _alpha: &Alpha) -> Done {
        self.0.add("work");
        Done(0)
    }

    #[step(on_end)]
    async fn undo(&self, begin: &Begin, children: &Children) -> Result<(), RunError> {
        let Done(undone) = children.run::<Undoes>(Begin(begin.0)).await?;
        self.0.add(format!("undo {undone}"));
        Ok(())
    }
}

/// The child of a clean-up step.
struct Undoes;

#[workflow]
impl Undoes {
    #[step]
    async fn undo(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S28, S61
#[tokio::test]
async fn a_stop_event_of_an_execution_under_way_ends_a_paused_run() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Ends(gate.clone())).build().unwrap();
    let run = engine.start::<Ends>(Begin(4)).await.unwrap();
    everyone_else().await;
    run.pause(Pause::AfterRunning).await.unwrap();
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(4));
}

struct Ends(Gate);

#[workflow]
impl Ends {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        self.0.pass().await;
        Done(begin.0)
    }
}

/// Emits nothing.
struct Silent(Gate);

#[workflow]
impl Silent {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Option<Item> {
        self.0.pass().await;
        None
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S30, S61
#[tokio::test]
async fn a_paused_run_in_which_nothing_is_left_to_do_stalls_once_it_is_unpaused() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Silent(gate.clone())).build().unwrap();
    let run = engine.start::<Silent>(Begin(1)).await.unwrap();
    everyone_else().await;
    run.pause(Pause::AfterRunning).await.unwrap();
    gate.let_pass(1);
    assert_eq!(run.settled().await, RunStatus::Paused);
    let explained = run.explain().await.unwrap().to_string();
    assert!(explained.contains(": paused") && !explained.contains("stalled"), "{explained}");
    run.unpause().await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::Stalled(_))));
}

/// Fails once, and works for this many hours.
struct Retried(Seen);

fn an_hour_later() -> RetryPolicy {
    RetryPolicy::none().on(workflow_core::ErrorClass::Tool, Retries::fixed(3, HOUR))
}

#[workflow]
impl Retried {
    #[step(retry = an_hour_later())]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        self.0.add(format!("attempt {}", info.attempt()));
        if info.attempt() == 1 {
            return Err(StepError::tool("busy"));
        }
        sleep(begin.0 * HOUR).await;
        Ok(Item(begin.0))
    }

    #[step]
    async fn wait(&self, _: &Begin) -> Timer<Part> {
        Timer::after(5 * HOUR, Part(5))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S36, S61
#[tokio::test(start_paused = true)]
async fn a_retry_that_falls_due_in_a_pause_begins_after_it_and_timers_fire_meanwhile() {
    let seen = Seen::default();
    let engine =
        Engine::builder().workflow(Retried(seen.clone())).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Retried>(Begin(1)).await.unwrap();
    everyone_else().await;
    paused(&run).await;
    assert_eq!(seen.take(), ["attempt 1"]);
    sleep(7 * HOUR).await;
    assert_eq!(run.settled().await, RunStatus::Paused);
    let report = run.report_so_far().await.unwrap();
    let waiting: Vec<_> = report.waiting.iter().map(|it| (&*it.step, it.waits_for.clone())).collect();
    assert_eq!(waiting, [("work", WaitsFor::Pause)]);
    assert!(report.log.iter().any(|logged| &*logged.event == "Part"), "the timer has fired");
    assert!(seen.take().is_empty());
    assert_eq!(run.retry_now().await.unwrap(), 0);
    run.unpause().await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    assert_eq!(seen.take(), ["attempt 2"]);
}

// S32, S61
#[tokio::test(start_paused = true)]
async fn active_time_stands_still_in_a_pause() {
    let seen = Seen::default();
    let engine =
        Engine::builder().workflow(Retried(seen.clone())).clock(VirtualClock::new()).build().unwrap();
    let options = || RunOptions::new().timeout(4 * HOUR);
    for (begin, ends) in [(2, RunStatus::Completed), (4, RunStatus::TimedOut)] {
        let run = engine.start_with::<Retried>(Begin(begin), options()).await.unwrap();
        // The first attempt fails, and the second runs for an hour at least until the run is paused.
        sleep(2 * HOUR).await;
        run.pause(Pause::AfterRunning).await.unwrap();
        sleep(HOUR * 30).await;
        let status = run.status();
        if ends == RunStatus::Completed {
            assert_eq!(status, RunStatus::Paused, "what ran has ended after three hours");
            run.unpause().await.unwrap();
        } else {
            assert_eq!(status, ends, "it ran in the pause");
        }
        let _ = run.outcome().await;
        assert_eq!(run.status(), ends);
    }
}

// S21, S61
#[tokio::test]
async fn a_paused_run_returns_its_permit_and_takes_one_again() {
    let workflow = Works::new();
    let engine = Engine::builder().workflow(workflow.clone()).max_concurrent_runs(1).build().unwrap();
    let first = engine.start::<Works>(Begin(1)).await.unwrap();
    first.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    first.pause(Pause::AfterRunning).await.unwrap();
    let starting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start::<Works>(Begin(2)).await.unwrap() }
    });
    everyone_else().await;
    assert!(!starting.is_finished(), "the execution under way has the permit");
    workflow.gate.let_pass(1);
    let second = starting.await.unwrap();
    assert_eq!(first.settled().await, RunStatus::Paused);
    second.send(Alpha(2)).await.unwrap();
    everyone_else().await;
    first.unpause().await.unwrap();
    everyone_else().await;
    assert_eq!(
        first.report_so_far().await.unwrap().executions("note"),
        0,
        "the other run has the permit now"
    );
    workflow.gate.let_pass(1);
    second.settled().await;
    assert_eq!(first.settled().await, RunStatus::Waiting);
    assert_eq!(first.report_so_far().await.unwrap().executions("note"), 1);
}

/// Works one at a time in the engine.
struct Limited(Seen, Gate);

#[workflow]
impl Limited {
    #[step(limit = "one", concurrency = 2)]
    async fn work(&self, alpha: &Alpha) -> Item {
        self.0.add(format!("work {}", alpha.0));
        self.1.pass().await;
        Item(alpha.0)
    }

    #[step]
    async fn begin(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }

    #[step(precondition = never)]
    async fn take(&self, _items: List<Item>) -> Done {
        Done(1)
    }

    #[precondition]
    #[expect(clippy::unused_self, reason = "a precondition has a receiver")]
    fn never(&self) -> bool {
        false
    }
}

// S61, S70
#[tokio::test]
async fn a_deferred_attempt_holds_no_limit() {
    let (seen, gate) = (Seen::default(), Gate::closed());
    let workflow = Limited(seen.clone(), gate.clone());
    let engine = Engine::builder().workflow(workflow).limit("one", Limit::concurrent(1)).build().unwrap();
    let first = engine.start::<Limited>(Begin(1)).await.unwrap();
    for alpha in 1..=4 {
        first.send(Alpha(alpha)).await.unwrap();
    }
    let second = engine.start::<Limited>(Begin(2)).await.unwrap();
    second.send(Alpha(9)).await.unwrap();
    everyone_else().await;
    first.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(seen.take(), ["work 1"]);
    gate.let_pass(2);
    assert_eq!(first.settled().await, RunStatus::Paused);
    second.settled().await;
    assert_eq!(seen.take(), ["work 9"], "attempts of the paused run have left the queue of the limit");
    let waiting = first.report_so_far().await.unwrap().waiting.clone();
    assert!(waiting.len() == 3 && waiting.iter().all(|it| it.waits_for == WaitsFor::Pause), "{waiting:?}");
    gate.let_pass(3);
    first.unpause().await.unwrap();
    first.settled().await;
    assert_eq!(seen.take(), ["work 2", "work 3", "work 4"]);
    assert_eq!(first.report_so_far().await.unwrap().executions("work"), 4);
}

/// Executions beyond the bound of the run.
struct Many(Seen, Gate);

#[workflow]
impl Many {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.add(format!("work {}", item.0));
        self.1.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: FixedList<Part, 4>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S21, S61
#[tokio::test]
async fn executions_that_wait_for_others_of_their_run_wait_for_the_pause_and_begin_once() {
    let (seen, gate) = (Seen::default(), Gate::closed());
    let engine = Engine::builder().workflow(Many(seen.clone(), gate.clone())).max_concurrent_executions(2);
    let run = engine.build().unwrap().start::<Many>(Begin(4)).await.unwrap();
    everyone_else().await;
    assert_eq!(seen.take(), ["work 0", "work 1"]);
    for _ in 0..2 {
        run.pause(Pause::AfterRunning).await.unwrap();
        run.unpause().await.unwrap();
    }
    run.pause(Pause::AfterRunning).await.unwrap();
    gate.let_pass(2);
    assert_eq!(run.settled().await, RunStatus::Paused);
    gate.let_pass(2);
    run.unpause().await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    assert_eq!(seen.take(), ["work 2", "work 3"]);
}

/// A child that works on alphas, awaited by its parent.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let done = children.run_with::<Works>(Begin(begin.0), RunOptions::new().id("c")).await?;
        Ok(Item(done.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

async fn family(works: &Works) -> (Engine, RunHandle<Parent>, RunHandle<Works>) {
    let engine = Engine::builder().workflow(works.clone()).workflow(Parent).build().unwrap();
    let parent = engine.start_with::<Parent>(Begin(1), RunOptions::new().id("p")).await.unwrap();
    everyone_else().await;
    let child = engine.attach::<Works>("p/delegate-x1.c").await.unwrap();
    works.seen.take();
    (engine, parent, child)
}

// S61
#[tokio::test]
async fn awaited_children_pause_and_unpause_with_their_parent() {
    let workflow = Works::new();
    let (_engine, parent, child) = family(&workflow).await;
    child.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    parent.pause(Pause::AfterRunning).await.unwrap();
    everyone_else().await;
    assert_eq!(
        (parent.status(), child.status()),
        (RunStatus::Running, RunStatus::Running),
        "the child works"
    );
    workflow.gate.let_pass(1);
    assert_eq!(
        parent.settled().await,
        RunStatus::Paused,
        "an execution that waits for a paused child does not count"
    );
    assert_eq!(child.status(), RunStatus::Paused);
    assert!(child.report_so_far().await.unwrap().paused.as_ref().unwrap().with_parent);
    child.unpause().await.unwrap();
    child.send(Alpha(2)).await.unwrap();
    everyone_else().await;
    assert_eq!((child.status(), workflow.seen.take()), (RunStatus::Paused, vec!["work 1".to_owned()]));
    workflow.gate.let_pass(1);
    parent.unpause().await.unwrap();
    everyone_else().await;
    assert_eq!(workflow.seen.take(), ["note 1", "work 2", "note 2"]);
    child.send(Close).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(4));
}

// S61
#[tokio::test]
async fn a_child_that_was_paused_by_itself_stays_paused_when_its_parent_is_unpaused() {
    let workflow = Works::new();
    let (_engine, parent, child) = family(&workflow).await;
    paused(&child).await;
    paused(&parent).await;
    parent.unpause().await.unwrap();
    everyone_else().await;
    assert_eq!((parent.status(), child.status()), (RunStatus::Running, RunStatus::Paused));
    assert!(!child.report_so_far().await.unwrap().paused.as_ref().unwrap().with_parent);
    child.unpause().await.unwrap();
    child.send(Close).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(1));
}

/// Runs a child that ends behind a gate.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let done = children.run_with::<Ends>(Begin(begin.0), RunOptions::new().id("c")).await?;
        Ok(Item(done.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S61
#[tokio::test]
async fn a_child_that_ends_in_a_pause_lets_its_parent_commit_and_no_more() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Ends(gate.clone())).workflow(Delegates).build().unwrap();
    let parent = engine.start_with::<Delegates>(Begin(4), RunOptions::new().id("p")).await.unwrap();
    everyone_else().await;
    parent.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(parent.status(), RunStatus::Running, "the child's execution is under way");
    gate.let_pass(1);
    assert_eq!(parent.settled().await, RunStatus::Paused);
    let report = parent.report_so_far().await.unwrap();
    assert_eq!((report.log.len(), report.executions("end")), (2, 0));
    assert_eq!(report.children[0].status, RunStatus::Completed);
    parent.unpause().await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(4));
}

/// Starts its child behind a gate.
struct Late(Gate);

#[workflow]
impl Late {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        self.0.pass().await;
        children.run_with::<Ends>(Begin(begin.0), RunOptions::new().id("c")).await
    }
}

// S61
#[tokio::test]
async fn a_child_that_starts_in_a_pause_of_its_parent_is_paused_before_anything_begins() {
    let (gate, open) = (Gate::closed(), Gate::closed());
    open.let_pass(9);
    let engine = Engine::builder().workflow(Ends(open)).workflow(Late(gate.clone())).build().unwrap();
    let parent = engine.start_with::<Late>(Begin(1), RunOptions::new().id("p")).await.unwrap();
    everyone_else().await;
    parent.pause(Pause::AfterRunning).await.unwrap();
    gate.let_pass(1);
    assert_eq!(parent.settled().await, RunStatus::Paused);
    let child = engine.attach::<Ends>("p/delegate-x1.c").await.unwrap();
    assert_eq!(
        (child.status(), child.report_so_far().await.unwrap().executions("end")),
        (RunStatus::Paused, 0)
    );
    parent.unpause().await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(1));
}

/// Notes when its run is paused and unpaused.
#[derive(Debug, Clone, Default)]
struct Told(Seen);

impl Observer for Told {
    fn observe(&self, observation: &Observation) {
        match observation.what {
            Observed::RunPaused => self.0.add("paused"),
            Observed::RunUnpaused => self.0.add("unpaused"),
            Observed::RunWaiting => self.0.add("waits"),
            _ => {}
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

// S61
#[tokio::test]
async fn observers_learn_that_a_run_is_paused_and_unpaused() {
    let told = Told::default();
    let engine = Engine::builder().workflow(Works::new()).observer(told.clone()).build().unwrap();
    let run = engine.start::<Works>(Begin(1)).await.unwrap();
    run.settled().await;
    paused(&run).await;
    run.unpause().await.unwrap();
    run.settled().await;
    assert_eq!(told.0.take(), ["waits", "paused", "unpaused", "waits"]);
}
