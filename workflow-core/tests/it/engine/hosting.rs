//! The engine: its build errors, its runs, and its own end (S1, S21, S31).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use workflow_core::errors::{BuildProblem, ConfigError};
use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::table::TableProblem;
use workflow_core::{ConfigLayers, RunHandle, RunOptions, RunStatus, SendError, StartError};

use crate::fixtures::{
    Alive, Alpha, Begin, Close, Done, Gate, Item, Part, everyone_else, outcomes_of, report_of, started, until,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tagged {
    run: u32,
    number: u32,
}

struct Strict;

#[workflow]
impl Strict {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Tagged> {
        tokio::task::yield_now().await;
        (0..5).map(|number| Tagged { run: begin.0, number }).collect()
    }

    #[step]
    async fn check(&self, tagged: &Tagged, begin: &Begin, context: &RunContext) -> Result<Part, StepError> {
        let count = context.increment("checked", 1).await?;
        tokio::task::yield_now().await;
        if tagged.run != begin.0 || count > 5 {
            return Err(StepError::permanent("another run's event"));
        }
        Ok(Part(tagged.number))
    }

    #[step(precondition = complete)]
    async fn end(&self, tagged: &List<Tagged>, parts: &List<Part>, begin: &Begin) -> Done {
        assert!(parts.len() == 5 && tagged.iter().all(|tagged| tagged.run == begin.0));
        Done(tagged.iter().map(|tagged| tagged.run).max().unwrap())
    }

    #[precondition]
    fn complete(tagged: &List<Tagged>, parts: &List<Part>) -> bool {
        tagged.len() == 5 && parts.len() == 5
    }
}

// S1, S22
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_concurrent_runs_never_see_each_others_events() {
    let engine = Engine::builder().workflow(Strict).build().unwrap();
    let mut runs = Vec::new();
    for number in 0..1_000 {
        runs.push(engine.start::<Strict>(Begin(number)).await.unwrap());
    }
    for (run, number) in runs.iter().zip(0..) {
        assert_eq!(run.outcome().await.unwrap(), Done(number));
    }
}

#[derive(Default)]
struct Level {
    now: AtomicUsize,
    highest: AtomicUsize,
}

struct Levelled(Arc<Level>);

#[workflow]
impl Levelled {
    #[step]
    async fn work(&self, begin: &Begin) -> Done {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.highest.fetch_max(now, Ordering::SeqCst);
        everyone_else().await;
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        Done(begin.0)
    }
}

// S21
#[tokio::test]
async fn an_engine_bounds_the_runs_that_run() {
    let level = Arc::<Level>::default();
    let workflow = Levelled(Arc::clone(&level));
    let engine = Engine::builder().workflow(workflow).max_concurrent_runs(3).build().unwrap();
    let runs = (0..20).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let run = engine.start::<Levelled>(Begin(number)).await.unwrap();
            run.outcome().await.unwrap()
        })
    });
    let runs: Vec<_> = runs.collect();
    for (run, number) in runs.into_iter().zip(0..) {
        assert_eq!(run.await.unwrap(), Done(number));
    }
    assert_eq!(level.highest.load(Ordering::SeqCst), 3);
}

struct Patient(Gate);

#[workflow]
impl Patient {
    #[step]
    async fn work(&self, begin: &Begin) -> Option<Done> {
        if begin.0 == 0 {
            return None;
        }
        self.0.pass().await;
        Some(Done(begin.0))
    }

    #[step]
    async fn end(&self, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }
}

/// A waiting run, and one that has taken its permit and keeps it until the gate opens.
async fn displaced(engine: &Engine) -> (RunHandle<Patient>, RunHandle<Patient>) {
    let waiting = engine.start::<Patient>(Begin(0)).await.unwrap();
    assert_eq!(waiting.settled().await, RunStatus::Waiting);
    let working = engine.start::<Patient>(Begin(1)).await.unwrap();
    everyone_else().await;
    (waiting, working)
}

fn one_place(gate: &Gate) -> Engine {
    Engine::builder().workflow(Patient(gate.clone())).max_concurrent_runs(1).build().unwrap()
}

// S21, S30
#[tokio::test]
async fn a_run_that_waits_for_an_outside_event_holds_no_permit() {
    let gate = Gate::closed();
    let (waiting, working) = displaced(&one_place(&gate)).await;
    assert_eq!((waiting.status(), working.status()), (RunStatus::Waiting, RunStatus::Running));
    gate.let_pass(1);
    assert_eq!(working.outcome().await.unwrap(), Done(1));
    waiting.send(Alpha(2)).await.unwrap();
    assert_eq!(waiting.outcome().await.unwrap(), Done(2));
}

// S21
#[tokio::test]
async fn a_waiting_run_takes_a_permit_again_before_it_handles_a_message() {
    let gate = Gate::closed();
    let (waiting, working) = displaced(&one_place(&gate)).await;
    let sender = waiting.clone();
    let sent = tokio::spawn(async move { sender.send(Alpha(2)).await });
    everyone_else().await;
    assert!(!waiting.status().is_ended());
    gate.let_pass(1);
    assert_eq!(working.outcome().await.unwrap(), Done(1));
    sent.await.unwrap().unwrap();
    assert_eq!(waiting.outcome().await.unwrap(), Done(2));
}

// S21, S31
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_permit_can_be_cancelled() {
    let gate = Gate::closed();
    let (waiting, working) = displaced(&one_place(&gate)).await;
    let sender = waiting.clone();
    let sent = tokio::spawn(async move { sender.send(Alpha(2)).await });
    everyone_else().await;
    let cancelled = tokio::time::timeout(Duration::from_secs(1), waiting.cancel("enough")).await;
    cancelled.expect("a cancel does not wait for a place").unwrap();
    assert!(matches!(waiting.outcome().await, Err(RunError::Cancelled { .. })));
    let _ = sent.await.unwrap();
    assert_eq!(working.status(), RunStatus::Running);
}

// S31
#[tokio::test]
async fn a_cancelled_run_begins_nothing_when_its_permit_comes_with_the_cancel() {
    let gate = Gate::closed();
    let (waiting, working) = displaced(&one_place(&gate)).await;
    let sender = waiting.clone();
    let sent = tokio::spawn(async move { sender.send(Alpha(2)).await });
    everyone_else().await;
    // The permit's holder is woken first, and gives it back before the other run learns of the cancel.
    gate.let_pass(1);
    waiting.cancel("enough").await.unwrap();
    let _ = sent.await.unwrap();
    assert_eq!(working.outcome().await.unwrap(), Done(1));
    let report = waiting.report().await.unwrap();
    assert_eq!(report.status, RunStatus::Cancelled);
    assert_eq!(outcomes_of(&report, "end"), [&ExecutionOutcome::Dropped], "it was due and never began");
}

// S31
#[tokio::test(start_paused = true)]
async fn an_engine_shuts_down_though_a_run_waits_for_a_permit() {
    let engine = one_place(&Gate::closed());
    let (waiting, working) = displaced(&engine).await;
    let sender = waiting.clone();
    let sent = tokio::spawn(async move { sender.send(Alpha(2)).await });
    everyone_else().await;
    let shut_down = engine.cancel_all("the engine is shutting down", Duration::from_secs(1));
    tokio::time::timeout(Duration::from_secs(9), shut_down).await.expect("every run ends");
    assert_eq!(working.status(), RunStatus::Cancelled);
    assert!(waiting.status().is_ended());
    let _ = sent.await.unwrap();
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct OtherDone(String);

struct Other;

#[workflow]
impl Other {
    #[step]
    async fn end(&self, begin: &Begin) -> OtherDone {
        OtherDone(begin.0.to_string())
    }
}

#[tokio::test]
async fn one_engine_hosts_several_workflows() {
    let engine = Engine::builder().workflow(Plain).workflow(Other).build().unwrap();
    let plain = engine.start::<Plain>(Begin(1)).await.unwrap();
    let other = engine.start::<Other>(Begin(1)).await.unwrap();
    assert_eq!(plain.outcome().await.unwrap(), Done(1));
    assert_eq!(other.outcome().await.unwrap(), OtherDone("1".into()));
}

#[tokio::test]
async fn a_workflow_that_is_not_hosted_cannot_be_started() {
    let engine = Engine::builder().workflow(Plain).build().unwrap();
    let error = engine.start::<Other>(Begin(1)).await.unwrap_err();
    assert!(matches!(&error, StartError::UnknownWorkflow { workflow } if &**workflow == "Other"), "{error}");
}

mod twin {
    use workflow_core::prelude::*;

    use crate::fixtures::{Begin, Done};

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Item;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Part;

    pub(super) struct Plain;

    #[workflow]
    impl Plain {
        #[step]
        async fn make(&self, _begin: &Begin) -> Item {
            Item
        }

        #[step]
        async fn end(&self, _item: &Item) -> Done {
            Done(0)
        }
    }
}

struct MakesItem;

#[workflow]
impl MakesItem {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S1
#[test]
fn two_event_types_of_one_name_are_a_build_error_that_names_both() {
    let error = Engine::builder().workflow(MakesItem).workflow(twin::Plain).build().unwrap_err();
    let [BuildProblem::DuplicateEvent { event, types }] = &error.problems[..] else { panic!("{error}") };
    assert_eq!(event, "Item");
    assert!(
        types[0].ends_with("fixtures::Item") && types[1].ends_with("engine::hosting::twin::Item"),
        "{types:?}"
    );
}

struct BothItems;

#[workflow]
impl BothItems {
    #[step]
    async fn make(&self, begin: &Begin) -> (Item, twin::Item) {
        (Item(begin.0), twin::Item)
    }

    #[step]
    async fn end(&self, item: &Item, _twin: &twin::Item) -> Done {
        Done(item.0)
    }
}

// S1
#[test]
fn two_event_types_of_one_name_in_one_workflow_are_a_build_error() {
    let error = Engine::builder().workflow(BothItems).build().unwrap_err();
    assert!(error.to_string().contains("two event types are named `Item`"), "{error}");
}

// S1
#[test]
fn a_build_error_reports_every_problem_at_once() {
    let built = Engine::builder()
        .workflow(Plain)
        .workflow(MakesItem)
        .workflow(twin::Plain)
        .workflow(NeedsConfig)
        .build();
    let error = built.unwrap_err();
    let [
        BuildProblem::DuplicateWorkflow { workflow },
        BuildProblem::DuplicateEvent { .. },
        BuildProblem::Config { .. },
    ] = &error.problems[..]
    else {
        panic!("{error}")
    };
    assert_eq!(workflow, "Plain");
    assert_eq!(error.to_string().lines().filter(|line| line.starts_with("- ")).count(), 3);
}

#[derive(Debug, Deserialize)]
struct Required {
    value: u32,
}

struct NeedsConfig;

#[workflow]
impl NeedsConfig {
    #[step]
    async fn end(&self, _begin: &Begin, required: &Config<Required>) -> Done {
        Done(required.value)
    }
}

struct Mixed;

#[workflow]
impl Mixed {
    #[step]
    async fn make(&self, begin: &Begin) -> (Item, FanOut<Part>) {
        (Item(begin.0), [Part(1)].into_iter().collect())
    }

    #[step(precondition = is_wanted)]
    async fn check(&self, _item: &twin::Item) -> Option<Alpha> {
        None
    }

    #[precondition]
    fn is_wanted(_item: &Item) -> bool {
        true
    }

    #[step]
    async fn end(&self, _parts: Gather<twin::Part>) -> Done {
        Done(0)
    }
}

// S1
#[test]
fn one_type_taken_for_another_of_its_name_is_one_mistake_not_two() {
    let error = Engine::builder().workflow(Mixed).build().unwrap_err();
    let [BuildProblem::Table(table)] = &error.problems[..] else { panic!("{error}") };
    let names: Vec<&str> = table.problems.iter().map(name_of_twins).collect();
    assert_eq!(names, ["Item", "Part"], "{table}");
}

#[track_caller]
fn name_of_twins(problem: &TableProblem) -> &str {
    let TableProblem::DuplicateEvent { event, .. } = problem else { panic!("{problem}") };
    event
}

#[derive(Debug, Deserialize)]
struct Wanted {
    #[expect(dead_code, reason = "only its absence matters")]
    item: u32,
}

struct BrokenTwice;

#[workflow]
impl BrokenTwice {
    #[step]
    async fn make(&self, begin: &Begin, required: &Config<Required>) -> (Item, twin::Item) {
        (Item(begin.0 + required.value), twin::Item)
    }

    #[step(precondition = is_wanted)]
    async fn end(&self, item: &Item, required: &Config<Required>) -> Done {
        Done(item.0 + required.value)
    }

    #[precondition]
    fn is_wanted(_item: &Item, _wanted: &Config<Wanted>) -> bool {
        true
    }
}

// S1
#[test]
fn a_broken_table_hides_neither_missing_nor_unreadable_configuration() {
    let unreadable = ConfigLayers::<Wanted>::new().json_file("/no/such/file.json");
    let built = Engine::builder()
        .workflow(BrokenTwice)
        .workflow(twin::Plain)
        .workflow(Plain)
        .config::<Wanted>(unreadable)
        .build();
    let error = built.unwrap_err();
    let [
        BuildProblem::Table(table),
        BuildProblem::DuplicateWorkflow { .. },
        BuildProblem::ConfigLayer(ConfigError::Unreadable { .. }),
        BuildProblem::Config { workflow, source: ConfigError::Invalid { type_name, .. } },
    ] = &error.problems[..]
    else {
        panic!("{error}")
    };
    assert!(matches!(&table.problems[..], [TableProblem::DuplicateEvent { .. }]), "{table}");
    assert!(workflow == "BrokenTwice" && type_name.ends_with("Required"), "{error}");
}

#[test]
fn a_configuration_without_any_layer_that_a_precondition_takes_is_missed_in_a_broken_table() {
    let error = Engine::builder().workflow(BrokenTwice).build().unwrap_err();
    let missing = error.problems.iter().filter(|problem| matches!(problem, BuildProblem::Config { .. }));
    assert_eq!(missing.count(), 2, "{error}");
}

#[tokio::test]
async fn an_id_is_taken_while_its_run_runs_and_free_afterwards() {
    let engine = Engine::builder().workflow(Patient(Gate::closed())).build().unwrap();
    let start = || engine.start_with::<Patient>(Begin(0), RunOptions::new().id("order-17"));
    let first = start().await.unwrap();
    let error = start().await.unwrap_err();
    assert!(matches!(&error, StartError::DuplicateRun { run } if run.as_str() == "order-17"), "{error}");
    assert_eq!(engine.running(), [first.id().clone()]);
    first.send(Alpha(1)).await.unwrap();
    first.outcome().await.unwrap();
    until(|| engine.running().is_empty()).await;
    assert_eq!(start().await.unwrap().id().as_str(), "order-17");
}

#[tokio::test]
async fn a_report_carries_what_the_run_was_started_with() {
    let engine = Engine::builder().workflow(Plain).build().unwrap();
    let options = RunOptions::new().id("r").thread("t").metadata("tenant", "acme");
    let run = engine.start_with::<Plain>(Begin(1), options).await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!((report.run.as_str(), report.thread.as_str()), ("r", "t"));
    assert_eq!((&*report.workflow, &*report.metadata["tenant"]), ("Plain", "acme"));
}

#[tokio::test]
async fn a_report_is_a_table_for_people_and_json_for_machines() {
    let report = report_of(Plain, 1).await;
    let text = report.to_string();
    assert!(text.contains("of Plain: completed, clean"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("end") && line.contains(" 1 ")), "{text}");
    let json = serde_json::to_value(&*report).unwrap();
    assert_eq!(json["status"], "completed");
    assert_eq!(json["steps"][0]["executions"], 1);
}

// S31
#[tokio::test]
async fn an_engine_that_is_shut_down_has_cancelled_its_runs_and_starts_no_more() {
    let engine = Engine::builder().workflow(Patient(Gate::closed())).build().unwrap();
    let waiting = engine.start::<Patient>(Begin(0)).await.unwrap();
    let working = engine.start::<Patient>(Begin(1)).await.unwrap();
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!((waiting.status(), working.status()), (RunStatus::Cancelled, RunStatus::Cancelled));
    let error = engine.start::<Patient>(Begin(0)).await.unwrap_err();
    assert!(matches!(error, StartError::ShutDown), "{error}");
}

// S21, S31
#[tokio::test]
async fn a_start_that_waits_for_a_permit_is_refused_by_a_shut_down() {
    let engine = one_place(&Gate::closed());
    let working = engine.start::<Patient>(Begin(1)).await.unwrap();
    let starting = engine.clone();
    let start = tokio::spawn(async move { starting.start::<Patient>(Begin(1)).await });
    everyone_else().await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!(working.status(), RunStatus::Cancelled);
    assert!(matches!(start.await.unwrap(), Err(StartError::ShutDown)));
}

#[test]
fn without_a_runtime_nothing_is_started() {
    let engine = Engine::builder().workflow(Plain).build().unwrap();
    let started = engine.start::<Plain>(Begin(1)).now_or_never().expect("there is nothing to wait for");
    assert!(matches!(started, Err(StartError::NoRuntime)));
    assert!(engine.running().is_empty());
}

#[test]
fn the_one_line_form_needs_no_runtime() {
    let outcome = Plain.run(Begin(1)).now_or_never().expect("there is nothing to wait for");
    assert_eq!(outcome.unwrap(), Done(1));
}

struct Asleep(Alive);

#[workflow]
impl Asleep {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Item {
        let _guard = self.0.guard();
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S31, S33
#[test]
fn a_runtime_that_is_shut_down_abandons_its_runs() {
    let alive = Alive::default();
    let doomed = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = doomed.block_on(async {
        let run = started(Asleep(alive.clone()), 0).await;
        until(|| alive.count() == 1).await;
        run
    });
    drop(doomed);
    assert_eq!(alive.count(), 0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(matches!(run.outcome().await, Err(RunError::Detached)));
        assert!(matches!(run.report().await, Err(RunError::Detached)));
        assert!(matches!(run.send(Close).await, Err(SendError::Ended { .. })));
        assert!(matches!(run.cancel("late").await, Err(SendError::Ended { .. })));
        assert!(run.settled().await.is_ended());
    });
}

#[tokio::test]
async fn clones_of_an_engine_are_the_same_engine() {
    let engine = Engine::builder().workflow(Patient(Gate::closed())).build().unwrap();
    let run = engine.clone().start::<Patient>(Begin(0)).await.unwrap();
    assert_eq!(engine.running(), [run.id().clone()]);
}
