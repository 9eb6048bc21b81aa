//! Workflows and events by name, with JSON, for front ends that know no types (S56).

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_core::errors::UnfitValue;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, MemoryStore, RunQuery};
use workflow_core::{ResumeError, RunOptions, RunStatus, SendError, StartError};

use crate::fixtures::{Begin, Done, everyone_else};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    cents: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Paid {
    cents: u32,
}

/// Panics when it is read.
#[derive(Debug, Clone, Serialize, Event)]
#[event(external)]
struct Trap;

impl<'de> serde::Deserialize<'de> for Trap {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it snaps")
    }
}

/// An external event that the step emits and none takes.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Reminder;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped {
    change: u32,
}

/// An external event that ends a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, external)]
struct Withdrawn;

struct Shop;

#[workflow(output = Ended)]
impl Shop {
    #[step]
    async fn ship(&self, order: &Order, paid: &Paid) -> Ended {
        let price: u32 = order.lines.iter().map(|line| line.cents).sum();
        Ended::Shipped(Shipped { change: paid.cents - price })
    }

    #[step]
    async fn remind(&self, _order: &Order) -> Reminder {
        Reminder
    }

    #[step]
    async fn snap(&self, _trap: &Trap) {}
}

#[derive(Debug, Clone, PartialEq, EventSet)]
enum Ended {
    Shipped(Shipped),
    Withdrawn(Withdrawn),
}

/// Runs or starts a child by the names in its fields.
struct Delegates {
    workflow: &'static str,
    event: &'static str,
    data: Value,
}

#[workflow]
impl Delegates {
    #[step]
    async fn run(&self, _begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let options = RunOptions::new().id("child");
        let ended = children.run_json(self.workflow, self.event, &self.data, options).await?;
        Ok(Done(ended.downcast_ref::<Done>().map_or(0, |done| done.0)))
    }
}

/// Starts a child by name, and looks at it.
struct Starts;

#[workflow]
impl Starts {
    #[step]
    async fn start(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        let child = children.start_json("Plain", "Begin", begin, RunOptions::new()).await?;
        assert_eq!(child.workflow(), "Plain");
        let ended = child.outcome_any().await?;
        Ok(ended.downcast_ref::<Done>().expect("it is one").clone())
    }
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

fn order() -> Value {
    json!({"lines": [{"cents": 30}, {"cents": 12}]})
}

fn id(id: &str) -> RunOptions {
    RunOptions::new().id(id)
}

// S56
#[tokio::test]
async fn a_run_is_started_addressed_and_ended_by_names() {
    let engine = Engine::builder().workflow(Shop).build().unwrap();
    let run = engine.start_json("Shop", "Order", order(), id("r")).await.unwrap();
    assert_eq!((run.id().as_str(), run.workflow(), run.settled().await), ("r", "Shop", RunStatus::Waiting));
    run.send_json("Paid", json!({"cents": 50})).await.unwrap();
    let stop = run.outcome_any().await.unwrap();
    assert_eq!((stop.name(), stop.to_json().unwrap()), ("Shipped", json!({"change": 8})));
    let ended = run.send_json("Paid", json!({"cents": 50})).await.unwrap_err();
    assert!(matches!(ended, SendError::Ended { .. }), "{ended}");

    let withdrawn = engine.start_json("Shop", "Order", order(), RunOptions::new()).await.unwrap();
    withdrawn.send_json("Withdrawn", ()).await.unwrap();
    assert_eq!(withdrawn.outcome_any().await.unwrap().name(), "Withdrawn");
}

// S56
#[tokio::test]
async fn unfit_json_names_its_path_and_leaves_nothing() {
    for store in [None, Some(Arc::new(MemoryStore::default()))] {
        let engine = Engine::builder().workflow(Shop);
        let engine = match &store {
            Some(store) => engine.store(Arc::clone(store)),
            None => engine,
        };
        let engine = engine.build().unwrap();
        let data = json!({"lines": [{"cents": 30}, {"cents": "a lot"}]});
        let unfit = engine.start_json("Shop", "Order", data, id("r")).await.unwrap_err();
        let StartError::Unfit { event, path, problem: UnfitValue::Read { problem } } = &unfit else {
            panic!("{unfit:?}")
        };
        assert_eq!((&**event, &**path), ("Order", "lines[1].cents"));
        assert!(problem.contains("a lot") && unfit.to_string().contains("at `lines[1].cents`"), "{unfit}");
        assert!(engine.running().is_empty());
        if let Some(store) = &store {
            assert!(store.runs(&RunQuery::new()).await.unwrap().is_empty());
        }

        // Its id is free.
        let run = engine.start_json("Shop", "Order", order(), id("r")).await.unwrap();
        run.settled().await;
        let before = run.report_so_far().await.unwrap().log.len();
        let unfit = run.send_json("Paid", json!({})).await.unwrap_err();
        assert!(
            matches!(&unfit, SendError::Unfit { event, path, .. } if &**event == "Paid" && path.is_empty())
        );
        let snapped = run.send_json("Trap", ()).await.unwrap_err();
        assert!(snapped.to_string().contains("its `Deserialize` panicked: it snaps"), "{snapped}");
        assert_eq!(run.report_so_far().await.unwrap().log.len(), before);
    }
}

// S56
#[tokio::test]
async fn data_that_has_no_json_is_unfit() {
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no ink"))
        }
    }
    let engine = Engine::builder().workflow(Shop).build().unwrap();
    let unfit = engine.start_json("Shop", "Order", Fails, RunOptions::new()).await.unwrap_err();
    assert_eq!(unfit.to_string(), "`Order` cannot be stored: its `Serialize` failed: no ink");
}

// S56
#[tokio::test]
async fn data_that_json_would_change_is_unfit_at_its_place() {
    #[derive(Serialize)]
    struct Estimate {
        lines: [f64; 2],
    }
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let engine = Engine::builder().workflow(Shop).build().unwrap();
    let estimate = Estimate { lines: [1.0, f64::NAN] };
    let unfit = engine.start_json("Shop", "Order", estimate, id("r")).await.unwrap_err();
    let StartError::Unfit { path, problem, .. } = &unfit else { panic!("{unfit:?}") };
    assert_eq!((&**path, problem), ("lines[1]", &UnfitValue::NotFinite));

    let run = engine.start_json("Shop", "Order", order(), id("r")).await.unwrap();
    let unfit = run.send_json("Paid", raw(r#"{"cents": 123456789012345678901234567890}"#)).await.unwrap_err();
    let SendError::Unfit { path, problem, .. } = &unfit else { panic!("{unfit:?}") };
    assert_eq!((&**path, problem), ("cents", &UnfitValue::OutOfRange));
    let unfit = run.send_json("Paid", raw(r#"{"cents": 50, "cents": 60}"#)).await.unwrap_err();
    let SendError::Unfit { problem, .. } = &unfit else { panic!("{unfit:?}") };
    assert_eq!(problem, &UnfitValue::KeyTwice { key: "cents".into() });
    run.send_json("Paid", raw(r#"{"cents": 50}"#)).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!({"change": 8}));
}

// S56
#[tokio::test]
async fn unknown_names_list_those_that_fit() {
    let engine = Engine::builder().workflow(Shop).build().unwrap();
    let unknown = engine.start_json("Stop", "Order", order(), RunOptions::new()).await.unwrap_err();
    assert!(matches!(&unknown, StartError::UnknownWorkflow { workflow } if &**workflow == "Stop"));
    for event in ["Orders", "Paid", "Shipped"] {
        let unknown = engine.start_json("Shop", event, order(), RunOptions::new()).await.unwrap_err();
        let expected = format!("the workflow takes no start event `{event}`: it has `Order`");
        assert_eq!(unknown.to_string(), expected);
    }
    let run = engine.start_json("Shop", "Order", order(), RunOptions::new()).await.unwrap();
    for event in ["Order", "Reminder", "Shipped"] {
        let unknown = run.send_json(event, ()).await.unwrap_err();
        let SendError::UnknownEvent { fitting, .. } = &unknown else { panic!("{unknown:?}") };
        assert_eq!(*fitting, ["Paid", "Trap", "Withdrawn"].map(Arc::from));
    }
}

// S56
#[tokio::test]
async fn a_run_of_any_workflow_is_found_or_attached_to() {
    let store = Arc::new(MemoryStore::default());
    let build =
        || Engine::builder().workflow(Shop).workflow(Plain).store(Arc::clone(&store)).build().unwrap();
    let engine = build();
    assert!(engine.find(&"r".into()).is_none());
    let run = engine.start::<Shop>(Order { lines: Vec::new() }).await.unwrap();
    let found = engine.find(run.id()).expect("the engine drives it");
    assert_eq!((found.workflow(), found.id()), (run.any().workflow(), run.id()));
    found.send_json("Paid", json!({"cents": 1})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Ended::Shipped(Shipped { change: 1 }));
    everyone_else().await;
    assert!(engine.find(run.id()).is_none(), "it has ended");
    let attached = build().attach_any(run.id().clone()).await.unwrap();
    assert_eq!((attached.workflow(), attached.outcome_any().await.unwrap().name()), ("Shop", "Shipped"));
    let unknown = engine.attach_any("nobody").await.unwrap_err();
    assert!(matches!(unknown, ResumeError::UnknownRun { .. }));
}

// S56
#[tokio::test]
async fn an_open_run_is_resumed_by_a_handle_of_any_workflow() {
    let store = Arc::new(MemoryStore::default());
    let build = || Engine::builder().workflow(Shop).store(Arc::clone(&store)).build().unwrap();
    let before = build().start_json("Shop", "Order", order(), id("r")).await.unwrap();
    before.settled().await;
    let run = build().attach_any("r").await.unwrap();
    run.send_json("Paid", json!({"cents": 42})).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!({"change": 0}));
}

// S56
#[tokio::test]
async fn a_step_runs_and_starts_children_by_name() {
    let engine = |workflow, event, data| {
        let parent = Delegates { workflow, event, data };
        Engine::builder().workflow(parent).workflow(Plain).workflow(Starts).build().unwrap()
    };
    let fine = engine("Plain", "Begin", json!(7));
    let run = fine.start::<Delegates>(Begin(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(&*run.report().await.unwrap().children[0].child.workflow, "Plain");
    let started = fine.start::<Starts>(Begin(9)).await.unwrap();
    assert_eq!(started.outcome().await.unwrap(), Done(9));

    for (workflow, event, data, says) in [
        ("Plain", "Begin", json!("seven"), "`Begin` cannot be read: invalid type"),
        ("Plain", "Paid", json!(7), "the workflow takes no start event `Paid`: it has `Begin`"),
        ("Plan", "Begin", json!(7), "the engine does not host workflow `Plan`"),
    ] {
        let run = engine(workflow, event, data).start::<Delegates>(Begin(0)).await.unwrap();
        let error = run.outcome().await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(run.report().await.unwrap().children.is_empty());
    }
}

/// Starts a run that is no child, or sends to it.
struct Addresses;

#[workflow]
impl Addresses {
    #[step]
    async fn address(&self, begin: &Begin, engine: &Engine) -> Result<Done, StepError> {
        let run = engine.start_json("Shop", "Order", order(), id("shop")).await?;
        run.send_json("Paid", json!({"cents": begin.0})).await.map_err(StepError::permanent)?;
        Ok(Done(begin.0))
    }
}

// S6, S56
#[tokio::test]
async fn a_step_takes_the_engine_and_addresses_runs_that_are_no_children() {
    let engine = Engine::builder().workflow(Addresses).workflow(Shop).build().unwrap();
    let run = engine.start::<Addresses>(Begin(50)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(50));
    assert!(run.report().await.unwrap().children.is_empty());
}

/// Counts its runs in the thread's context.
struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn count(&self, begin: &Begin, thread: &ThreadContext) -> Result<Done, StepError> {
        thread.increment("runs", i64::from(begin.0)).await?;
        Ok(Done(begin.0))
    }
}

// S6
#[tokio::test]
async fn a_thread_has_one_context_inside_and_outside_of_runs() {
    let engine = Engine::builder().workflow(Counts).build().unwrap();
    engine.thread_context("t").set("runs", 40_i64).await.unwrap();
    let run = engine.start_with::<Counts>(Begin(2), RunOptions::new().thread("t")).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(engine.thread_context("t").get::<i64>("runs").await.unwrap(), Some(42));
    assert_eq!(engine.thread_context("another").get::<i64>("runs").await.unwrap(), None);
}
