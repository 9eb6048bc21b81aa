//! Clean-up steps of runs at a limit, with children and with branches (S31).

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::store::MemoryStore;
use workflow_core::{Redrive, RunError};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Gate, Part, Seen, everyone_else, outcomes_of, until};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Leaf(u32);

/// Runs for ever by calling itself, and cleans up at its limit.
struct Loops(Seen);

#[workflow]
impl Loops {
    #[step]
    async fn begin(&self, begin: &Begin) -> Leaf {
        Leaf(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Leaf) -> (Leaf, Option<Done>) {
        (Leaf(item.0 + 1), None)
    }

    #[step(on_end = "failed")]
    async fn undo(&self, items: List<Leaf>, info: &RunInfo) {
        self.0.note(format!("{} items, {}", items.len(), info.ending().unwrap().failed().len()));
    }
}

// S31: a run at a limit has executions left for its clean-up.
#[tokio::test(start_paused = true)]
async fn a_run_that_reached_a_limit_cleans_up() {
    let seen = Seen::default();
    let limited = |engine: workflow_core::EngineBuilder| engine.max_executions_per_run(5);
    let run = Scenario::new(Loops(seen.clone())).engine(limited).start(Begin(0)).await;
    assert!(matches!(run.outcome(), Err(RunError::TooManyExecutions { .. })), "{:?}", run.outcome());
    run.assert_cleaned_up(&["undo"]);
    let limited = |engine: workflow_core::EngineBuilder| engine.max_events_per_run(5);
    let run = Scenario::new(Loops(seen.clone())).engine(limited).start(Begin(0)).await;
    assert!(matches!(run.outcome(), Err(RunError::LogFull { .. })), "{:?}", run.outcome());
    run.assert_cleaned_up(&["undo"]);
    assert_eq!(seen.lines(), ["5 items, 0", "4 items, 0"]);
}

/// A child that never ends, and its clean-up.
struct Child(Seen);

#[workflow]
impl Child {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Part {
        Part(1)
    }

    #[step]
    async fn hang(&self, _part: &Part) -> Done {
        self.0.note("hangs");
        std::future::pending().await
    }

    #[step(on_end)]
    async fn undo(&self, _part: &Part, info: &RunInfo) {
        self.0.note(format!("child, {}", info.ending().unwrap()));
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Parental;

struct Parent(Seen);

#[workflow]
impl Parent {
    #[step]
    async fn run_child(&self, _parental: &Parental, children: Children) -> Result<Done, RunError> {
        children.run::<Child>(Begin(1)).await
    }

    #[step(on_end)]
    async fn undo(&self, _parental: &Parental) {
        self.0.note("parent");
    }
}

// S31: children's clean-up is over before the parent's.
#[tokio::test]
async fn children_clean_up_before_their_parent() {
    let seen = Seen::default();
    let engine =
        Engine::builder().workflow(Child(seen.clone())).workflow(Parent(seen.clone())).build().unwrap();
    let run = engine.start::<Parent>(Parental).await.unwrap();
    until(|| !seen.lines().is_empty()).await;
    run.cancel("enough").await.unwrap();
    let lines = seen.lines();
    assert!(lines[1].starts_with("child, cancelled: "), "{lines:?}");
    assert_eq!(lines[2..], ["parent"]);
}

/// Runs a child in its clean-up.
struct Delegates(Seen);

#[workflow]
impl Delegates {
    #[step]
    async fn work(&self, _parental: &Parental) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step(on_end)]
    async fn undo(&self, _parental: &Parental, children: Children) -> Result<(), RunError> {
        let done: Done = children.run::<Helper>(Begin(4)).await?;
        self.0.note(format!("done {}", done.0));
        Ok(())
    }
}

struct Helper;

#[workflow]
impl Helper {
    #[step]
    async fn help(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S31
#[tokio::test(start_paused = true)]
async fn a_clean_up_step_can_run_a_child() {
    let seen = Seen::default();
    let run = Scenario::new(Delegates(seen.clone())).host(Helper).start(Parental).await;
    assert_eq!(seen.lines(), ["done 4"]);
    assert_eq!(run.report().children.len(), 1);
}

/// Whose branches are gathered, and undone as a whole.
struct Branches(Seen);

#[workflow]
impl Branches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Leaf> {
        (0..begin.0).map(Leaf).collect()
    }

    #[step]
    async fn work(&self, item: &Leaf) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: Gather<Part>) -> Result<Done, StepError> {
        Err(StepError::permanent(format!("{} parts", parts.len())))
    }

    #[step(on_end)]
    async fn undo(&self, parts: &Gather<Part>) {
        self.0.note(format!("{} parts", parts.ok().count()));
    }
}

// S31 S48: a gather that a step took is there for clean-up as well.
#[tokio::test(start_paused = true)]
async fn clean_up_takes_a_gather_that_a_step_has_taken() {
    let seen = Seen::default();
    let run = Scenario::new(Branches(seen.clone())).start(Begin(3)).await;
    run.outcome().unwrap_err();
    assert_eq!(seen.lines(), ["3 parts"]);
    run.assert_cleaned_up(&["undo"]);
}

/// Awaits a child that starts another one and waits for ever.
struct Grandparent;

#[workflow]
impl Grandparent {
    #[step]
    async fn run_child(&self, _parental: &Parental, children: Children) -> Result<Done, RunError> {
        children.run::<Starter>(Item(1)).await
    }
}

/// Starts a child and hangs.
struct Starter(Seen);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Item(u32);

#[workflow]
impl Starter {
    #[step]
    async fn start_child(&self, item: &Item, children: Children) -> Result<Done, StepError> {
        children.start::<Patient>(Begin(item.0)).await.map_err(StepError::permanent)?;
        self.0.note("started");
        std::future::pending().await
    }
}

// S31: a run whose children clean up has no permit that they need.
#[tokio::test]
async fn children_clean_up_where_their_parents_have_all_permits() {
    let seen = Seen::default();
    let engine = Engine::builder()
        .workflow(Grandparent)
        .workflow(Starter(seen.clone()))
        .workflow(Patient(seen.clone()))
        .max_concurrent_runs(1)
        .max_concurrent_children(1);
    let engine = engine.build().unwrap();
    let run = engine.start::<Grandparent>(Parental).await.unwrap();
    until(|| !seen.lines().is_empty()).await;
    run.cancel("enough").await.unwrap();
    assert_eq!(seen.lines(), ["started", "undone"]);
}

/// Does nothing before a permit is there, and undoes it.
struct Patient(Seen);

#[workflow]
impl Patient {
    #[step]
    async fn hang(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {
        self.0.note("undone");
    }
}

/// Returns in the same moment in which the run is cancelled.
struct Late {
    gate: Gate,
    with_event: bool,
}

#[workflow]
impl Late {
    #[step(spawn)]
    async fn work(&self, _begin: &Begin) -> Option<Part> {
        self.gate.pass().await;
        self.with_event.then_some(Part(1))
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {}
}

// S28, S31: the journal does not have such a result. A redrive makes the execution again, and knows that it may have begun.
#[tokio::test]
async fn a_result_that_comes_with_the_cancel_is_no_result() {
    for with_event in [true, false] {
        let (gate, store) = (Gate::closed(), Arc::new(MemoryStore::default()));
        let engine =
            Engine::builder().workflow(Late { gate: gate.clone(), with_event }).store(Arc::clone(&store));
        let engine = engine.build().unwrap();
        let run = engine.start::<Late>(Begin(1)).await.unwrap();
        everyone_else().await;
        // The run hears of both at once: of the cancel first, since commands come before results.
        gate.let_pass(1);
        run.cancel("enough").await.unwrap();
        assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
        let report = run.report().await.unwrap();
        let outcomes = outcomes_of(&report, "work");
        let refused = with_event && matches!(outcomes[..], [ExecutionOutcome::Refused]);
        assert!(refused || matches!(outcomes[..], [ExecutionOutcome::Dropped]), "{outcomes:?}");
        gate.let_pass(1);
        let redriven =
            engine.redrive_with::<Late>(run.id().clone(), Redrive::new().despite_clean_up()).await.unwrap();
        let outcome = redriven.outcome().await;
        assert_eq!(outcome.is_ok(), with_event, "{outcome:?}");
    }
}
