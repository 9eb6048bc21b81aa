//! Typed outputs: a reader has the value of an event that the same process emitted, and the JSON of one that a store had (S57).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use workflow_core::errors::{EventTooLarge, UnfitEvent, UnfitValue};
use workflow_core::prelude::{Engine, StepError};
use workflow_core::signature::{Roles, StepCall};
use workflow_core::store::MemoryStore;
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
use workflow_core::{AnyEvent, InputValue, JsonOutput, RunError, RunOptions, RuntimeWorkflow};
use workflow_testkit::{CrashStore, Scenario, crash_everywhere};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sum {
    total: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<u64>,
}

/// How often a step read the value, and how often the JSON.
#[derive(Debug, Default)]
struct Reads {
    values: AtomicUsize,
    json: AtomicUsize,
}

impl Reads {
    fn sum(&self, event: &AnyEvent) -> Sum {
        assert_eq!(event.typed_output::<u64>(), None);
        let (sum, reads) = match event.typed_output::<Sum>() {
            Some(sum) => (sum.clone(), &self.values),
            None => (Sum::deserialize(event.as_json().unwrap()).unwrap(), &self.json),
        };
        reads.fetch_add(1, Ordering::Relaxed);
        sum
    }

    fn counts(&self) -> [usize; 2] {
        [&self.values, &self.json].map(|reads| reads.load(Ordering::Relaxed))
    }
}

/// Two steps that add, and one that ends: each emits a typed output, and reads that of the one before.
fn sums(reads: &Arc<Reads>) -> RuntimeWorkflow {
    let mut table = DependencyTable::builder("sums").event(EventDef::new("begin", Roles::NONE.start()));
    for (event, roles) in [("one", Roles::NONE), ("two", Roles::NONE), ("done", Roles::NONE.stop())] {
        table = table.event(EventDef::new(event, roles));
    }
    for (from, to) in [("begin", "one"), ("one", "two"), ("two", "done")] {
        let step = StepDef::new(format!("to_{to}")).input(InputDef::one(from));
        table = table.step(step.output(OutputDef::event(to)));
    }
    let reads = Arc::clone(reads);
    RuntimeWorkflow::new(table.build().unwrap(), move |mut call: StepCall| {
        let reads = Arc::clone(&reads);
        async move {
            let mut sum = match call.input(0) {
                InputValue::Event(event) if event.name() == "begin" => Sum { total: 0, parts: Vec::new() },
                InputValue::Event(event) => reads.sum(event),
                other => return Err(StepError::permanent(format!("{other:?}"))),
            };
            sum.parts.push(sum.total + 1);
            sum.total = sum.parts.iter().sum();
            let to = call.step().trim_start_matches("to_").to_owned();
            call.emit(&to, JsonOutput::typed(sum))?;
            call.commit(())
        }
    })
}

fn ended() -> Value {
    json!({"total": 7, "parts": [1, 2, 4]})
}

#[tokio::test]
async fn steps_of_one_process_read_values_and_all_others_json() {
    let reads = Arc::<Reads>::default();
    let engine = Engine::builder().workflows([sums(&reads)]).build().unwrap();
    let run = engine.start_json("sums", "begin", json!(null), RunOptions::new()).await.unwrap();
    let output = run.outcome_any().await.unwrap();
    assert_eq!(reads.counts(), [2, 0]);
    assert_eq!(output.typed_output::<Sum>().unwrap().parts, [1, 2, 4]);
    assert_eq!((output.as_json(), output.to_json().unwrap()), (Some(&ended()), ended()));
    let report = run.report().await.unwrap();
    assert_eq!(serde_json::to_value(&report.log[1].value).unwrap(), json!({"total": 1, "parts": [1]}));
}

// S38
#[tokio::test]
async fn typed_outputs_survive_each_crash_as_json() {
    let reads = Arc::<Reads>::default();
    let seen = Arc::clone(&reads);
    let survived = crash_everywhere(move |store: CrashStore| {
        let scenario = Scenario::runtime(sums(&seen));
        scenario.engine(|engine| engine.store(store)).start_json("begin", json!(null))
    });
    survived.assert(|run| run.outcome().unwrap() == &ended()).await;
    let [values, json] = reads.counts();
    assert!(values > 0 && json > 0, "{values} reads of values, {json} of JSON");
}

#[tokio::test]
async fn a_store_in_memory_hands_json_to_the_next_engine() {
    let (store, reads) = (Arc::new(MemoryStore::default()), Arc::default());
    let engine = || Engine::builder().workflows([sums(&reads)]).store(Arc::clone(&store)).build().unwrap();
    let options = RunOptions::new().id("r");
    let run = engine().start_json("sums", "begin", json!(null), options).await.unwrap();
    run.outcome_any().await.unwrap();
    let output = engine().attach_any("r").await.unwrap().outcome_any().await.unwrap();
    assert!(output.typed_output::<Sum>().is_none());
    assert_eq!(output.as_json(), Some(&ended()));
}

#[derive(Debug, Serialize)]
struct Sums {
    parts: Vec<f64>,
}

/// Fails to serialise.
#[derive(Debug)]
struct Trap;

impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("it is secret"))
    }
}

/// One step, which emits this value.
fn emits<T: Serialize + Send + Sync + 'static>(value: fn() -> T) -> RuntimeWorkflow {
    let table = DependencyTable::builder("emits")
        .event(EventDef::new("begin", Roles::NONE.start()))
        .event(EventDef::new("done", Roles::NONE.stop()))
        .step(StepDef::new("emit").input(InputDef::one("begin")).output(OutputDef::event("done")));
    RuntimeWorkflow::new(table.build().unwrap(), move |mut call: StepCall| {
        let emitted = call.emit("done", JsonOutput::typed(value()));
        std::future::ready(emitted.map_err(StepError::from).and_then(|()| call.commit(())))
    })
}

/// The error of this type with which the step failed.
fn failure<E: std::error::Error + 'static>(error: &RunError) -> &E {
    match error {
        RunError::StepFailed { source, .. } => source.downcast_ref().unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_value_that_does_not_serialise_fails_where_its_json_is_needed() {
    let start = async |engine: &Engine| {
        let run = engine.start_json("emits", "begin", json!(null), RunOptions::new()).await.unwrap();
        run.outcome_any().await
    };
    let builder = || Engine::builder().workflows([emits(|| Trap)]);
    let output = start(&builder().build().unwrap()).await.unwrap();
    assert!(output.typed_output::<Trap>().is_some() && output.as_json().is_none());
    assert!(output.to_json().unwrap_err().to_string().contains("it is secret"));
    let error = start(&builder().store(CrashStore::default()).build().unwrap()).await.unwrap_err();
    let UnfitEvent { event, problem, .. } = failure(&error);
    assert!(&**event == "done" && matches!(problem, UnfitValue::Serialize { .. }), "{problem}");
}

// S52
#[tokio::test]
async fn a_store_refuses_what_json_would_lose_of_a_value() {
    let builder = || Engine::builder().workflows([emits(|| Sums { parts: vec![1.5, f64::NAN] })]);
    let start = async |engine: &Engine| {
        let run = engine.start_json("emits", "begin", json!(null), RunOptions::new()).await.unwrap();
        run.outcome_any().await
    };
    assert!(start(&builder().build().unwrap()).await.is_ok());
    let error = start(&builder().store(CrashStore::default()).build().unwrap()).await.unwrap_err();
    let UnfitEvent { path, problem, .. } = failure(&error);
    assert_eq!((path.as_str(), problem), ("parts[1]", &UnfitValue::NotFinite));
}

#[tokio::test]
async fn typed_outputs_are_bounded_in_size() {
    let engine =
        Engine::builder().workflows([emits(|| "x".repeat(100))]).max_event_bytes(50).build().unwrap();
    let run = engine.start_json("emits", "begin", json!(null), RunOptions::new()).await.unwrap();
    let error = run.outcome_any().await.unwrap_err();
    assert_eq!(failure::<EventTooLarge>(&error).limit, 50);
}
