//! The text that a limit causes: its value, its setting, and what holds its places.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RetryPolicy, RunHandle, RunOptions, WhenFull};
use workflow_testkit::{Scenario, TestRun};

use crate::fixtures::{Begin, Done, Gate, Item, Part, everyone_else};

/// Asserts that a text has all of these.
#[track_caller]
fn names(text: &impl ToString, facts: &[&str]) {
    let text = text.to_string();
    let missing: Vec<_> = facts.iter().filter(|fact| !text.contains(**fact)).collect();
    assert!(missing.is_empty(), "{missing:?} in:\n{text}");
}

fn error<W: Workflow>(run: &TestRun<W>) -> String {
    run.outcome().err().expect("the run fails").to_string()
}

/// The explanation and the report of a run that goes on.
async fn said<W: Workflow>(run: &RunHandle<W>) -> [String; 2] {
    everyone_else().await;
    let explanation = run.explain().await.unwrap().to_string();
    [explanation, run.report_so_far().await.unwrap().to_string()]
}

/// Works on as many items as it is told, each at its gate, two at a time.
struct Works(Gate);

#[workflow]
impl Works {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(concurrency = 2)]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, _parts: FixedList<Part, 9>) -> Done {
        Done(0)
    }
}

// S21
#[tokio::test]
async fn the_executions_of_a_step() {
    let engine = Engine::builder().workflow(Works(Gate::closed())).build().unwrap();
    let run = engine.start::<Works>(Begin(3)).await.unwrap();
    for text in said(&run).await {
        names(&text, &["`work` may run 2 at a time (`concurrency`): x2 and x3 run"]);
    }
}

/// Opens branches, whose executions wait at a gate.
struct Opens(Gate, Option<u32>);

#[workflow]
impl Opens {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items = FanOut::new((0..begin.0).map(Item).collect());
        if let Some(most) = self.1 { items.concurrency(most) } else { items }
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S21
#[tokio::test]
async fn the_executions_of_a_run_at_a_time() {
    let workflow = Opens(Gate::closed(), None);
    let engine = Engine::builder().workflow(workflow).max_concurrent_executions(7).build().unwrap();
    let run = engine.start::<Opens>(Begin(9)).await.unwrap();
    let setting = "the run may have 7 executions at a time (`max_concurrent_executions`)";
    for text in said(&run).await {
        names(&text, &[setting, ": x2, x3, x4, x5, x6 and 2 more run"]);
    }
}

// S50
#[tokio::test]
async fn the_branches_of_a_fan_out_at_a_time() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Opens(gate.clone(), Some(2))).build().unwrap();
    let run = engine.start::<Opens>(Begin(5)).await.unwrap();
    let [explained, _] = said(&run).await;
    let waits = "3 wait for a place (`FanOut::concurrency`) behind the branches of #2 `Item` and #3 `Item`";
    names(&explained, &["all of its 5 branches", waits]);
    gate.let_pass(5);
    assert_eq!(run.outcome().await.unwrap(), Done(5));
    names(&run.explain().await.unwrap(), &["`end` ran once"]);
}

/// Runs at most twice, although it is triggered more often.
struct Twice;

#[workflow]
impl Twice {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(max_executions = 2)]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, _part: &Part) -> Option<Done> {
        None
    }
}

// S19
#[tokio::test]
async fn the_executions_of_a_step_in_a_run() {
    let run = Scenario::new(Twice).start(Begin(3)).await;
    let explained = run.explanation().unwrap().to_string();
    names(&explained, &["not for #4 `Item` of `list`: by its `max_executions` it may run only twice"]);
    names(&error(&run), &["by its `max_executions` it may run only twice", "`work` ran twice"]);
}

/// Never ends.
struct Loops;

#[workflow]
impl Loops {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0 * 100)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Item, Option<Done>) {
        (Item(item.0), None)
    }
}

#[tokio::test]
async fn the_executions_of_a_run() {
    let scenario = Scenario::new(Loops).engine(|engine| engine.max_executions_per_run(50));
    let run = scenario.start(Begin(1)).await;
    names(&error(&run), &["50 executions", "`max_executions_per_run`", "`again`"]);
    let explained = run.explanation().unwrap().to_string();
    names(&explained, &["the run had all 50 executions that it may have (`max_executions_per_run`)"]);
}

#[tokio::test]
async fn the_events_of_a_run() {
    let run = Scenario::new(Loops).engine(|engine| engine.max_events_per_run(40)).start(Begin(1)).await;
    names(&error(&run), &["40 events", "39 of them are `Item`", "`max_events_per_run`"]);
}

/// Fails, with the class of the input.
struct Fails(fn() -> StepError);

#[workflow]
impl Fails {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err((self.0)())
    }
}

// S35
#[tokio::test]
async fn the_retries_of_an_execution() {
    let run = Scenario::new(Fails(|| StepError::tool("blunt"))).start(Begin(1)).await;
    for text in [run.report().to_string(), run.explanation().unwrap().to_string()] {
        names(&text, &["failed twice (tool: blunt)", "its 2 retries are used up (`retry`)"]);
    }
    let budget = RetryPolicy::standard().budget(Duration::from_secs(9));
    let run = Scenario::new(Fails(|| StepError::transient("busy"))).retry(budget).start(Begin(1)).await;
    for text in [run.report().to_string(), run.explanation().unwrap().to_string()] {
        names(&text, &["its retry budget of 9s is used up (`RetryPolicy::budget`)"]);
    }
}

/// Never returns.
struct Hangs;

#[workflow]
impl Hangs {
    #[step(timeout = "20ms", retry = RetryPolicy::none())]
    async fn hang(&self, begin: &Begin) -> Item {
        if begin.0 == 0 { std::future::pending().await } else { Item(1) }
    }

    #[step]
    async fn wait(&self, _item: &Item) -> Done {
        std::future::pending().await
    }
}

#[tokio::test]
async fn the_time_of_an_attempt() {
    let run = Scenario::new(Hangs).start(Begin(0)).await;
    names(&error(&run), &["step `hang` failed", "20ms", "`timeout`"]);
}

// S32
#[tokio::test]
async fn the_active_time_of_a_run() {
    let run = Scenario::new(Hangs)
        .engine(|engine| engine.run_timeout(Duration::from_secs(5)))
        .start(Begin(1))
        .await;
    names(&error(&run), &["5s", "`EngineBuilder::run_timeout`"]);
    names(&run.explanation().unwrap(), &["x2, triggered by #2 `Item` of `hang`: dropped"]);
}

/// Emits, sets timers, or returns much.
struct TooMuch;

#[workflow]
impl TooMuch {
    #[step]
    async fn work(&self, begin: &Begin, items: &Emitter<Item>) -> Result<Option<Done>, StepError> {
        for item in 0..begin.0 {
            items.emit(Item(item))?;
        }
        Ok(None)
    }

    #[step]
    async fn set(&self, _item: &Item) -> Vec<Timer<Part>> {
        (0..10_001).map(|part| Timer::after(Duration::from_secs(1), Part(part))).collect()
    }

    #[step]
    async fn end(&self, _part: &Part) -> Done {
        Done(0)
    }
}

#[tokio::test]
async fn the_events_of_an_emitter_and_the_timers_of_a_run() {
    let run = Scenario::new(TooMuch).start(Begin(65_537)).await;
    names(&error(&run), &["step `work` failed", "65536 events", "split the work"]);
    let run = Scenario::new(TooMuch).start(Begin(1)).await;
    names(&error(&run), &["step `set` failed", "10000 timers of the run are pending"]);
}

#[tokio::test]
async fn the_size_of_an_event() {
    let scenario = || Scenario::new(Loops).engine(|engine| engine.max_event_bytes(2));
    names(
        &error(&scenario().start(Begin(1)).await),
        &["step `begin` failed", "2 bytes", "`max_event_bytes`"],
    );
    let engine = Engine::builder().workflow(Loops).max_event_bytes(2).build().unwrap();
    names(
        &engine.start::<Loops>(Begin(123)).await.unwrap_err(),
        &["`Begin`", "2 bytes", "`max_event_bytes`"],
    );
}

async fn started(engine: &Engine, run: &str) -> RunHandle<Works> {
    engine.start_with::<Works>(Begin(3), RunOptions::new().id(run)).await.unwrap()
}

#[tokio::test]
async fn the_active_runs() {
    let refuse = || Engine::builder().workflow(Works(Gate::closed())).when_full(WhenFull::Refuse);
    let engine = refuse().max_concurrent_runs(2).build().unwrap();
    let _runs = (started(&engine, "a").await, started(&engine, "b").await);
    let full = engine.start::<Works>(Begin(1)).await.unwrap_err();
    names(&full, &["2 permits for runs (`max_concurrent_runs`)", "runs `a` and `b` have them"]);

    let engine = refuse().max_concurrent_runs_of::<Works>(1).build().unwrap();
    let _run = started(&engine, "a").await;
    let full = engine.start::<Works>(Begin(1)).await.unwrap_err();
    names(&full, &["1 permit for runs of `Works` (`max_concurrent_runs_of`)", "run `a` has it"]);
}

#[tokio::test]
async fn a_run_that_has_ended_holds_no_permit() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Opens(gate.clone(), None)).when_full(WhenFull::Refuse);
    let engine = engine.max_concurrent_runs(1).build().unwrap();
    let start = async |id: &str| engine.start_with::<Opens>(Begin(1), RunOptions::new().id(id)).await;
    let first = start("a").await.unwrap();
    names(&start("b").await.unwrap_err(), &["run `a` has it"]);
    gate.let_pass(1);
    first.outcome().await.unwrap();
    everyone_else().await;
    let _second = start("c").await.unwrap();
    names(&start("d").await.unwrap_err(), &["run `c` has it"]);
}

/// Runs a child, which runs a child, and so on.
struct Nests;

#[workflow]
impl Nests {
    #[step]
    async fn nest(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Self>(begin.clone()).await
    }
}

#[tokio::test]
async fn the_depth_of_children() {
    let run = Scenario::new(Nests).engine(|engine| engine.max_child_depth(1)).start(Begin(1)).await;
    names(&error(&run), &["would be 2 deep", "1 deep at most", "`max_child_depth`"]);
}

/// Runs two children at once.
struct Pair;

#[workflow]
impl Pair {
    #[step]
    async fn pair(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        for _ in 0..2 {
            children.start::<Works>(begin.clone()).await?;
        }
        Ok(Done(0))
    }
}

#[tokio::test]
async fn the_active_children() {
    let engine = Engine::builder().workflow(Pair).workflow(Works(Gate::closed())).max_concurrent_children(1);
    let engine = engine.build().unwrap();
    let parent = engine.start::<Pair>(Begin(1)).await.unwrap();
    parent.outcome().await.unwrap();
    let report = parent.report().await.unwrap();
    let [first, second] = [0, 1].map(|child| &report.children[child].child.run);
    let child = engine.attach::<Works>(second.clone()).await.unwrap();
    for text in said(&child).await {
        names(
            &text,
            &["1 permit for child runs (`max_concurrent_children`)", &format!("run `{first}` has it")],
        );
    }
}

#[tokio::test]
async fn limits_of_the_engine_that_cannot_be() {
    let engine = Engine::builder().workflow(Loops).max_concurrent_runs_of::<Nests>(1);
    let engine = engine.store(workflow_core::store::MemoryStore::default()).lease(Duration::from_millis(2));
    names(&engine.build().unwrap_err(), &["`max_concurrent_runs_of`", "`Nests`", "2ms", "`.lease(…)`", "1s"]);
}
