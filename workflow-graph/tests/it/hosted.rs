//! Many different documents in one engine, replaced while their runs are open. `HOSTED` sets how many: by hand, 3,000.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::{MemoryStore, RunQuery};
use workflow_core::{ResumeError, RunId, RunStatus};
use workflow_graph::{
    Document, GraphError, GraphResult, GraphRun, NodeContext, NodeError, Registry, ScriptedExecutor,
};
use workflow_testkit::VirtualClock;

use super::support::number;

/// The calls of functions and agents, by run and node.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<(RunId, String), u32>>>);

impl Calls {
    fn count(&self, context: &NodeContext) -> Value {
        let key = (context.run().clone(), context.node().to_owned());
        let mut calls = self.0.lock().unwrap();
        let count = calls.entry(key).or_default();
        *count += 1;
        json!({ "n": *count })
    }

    fn registry(&self) -> Registry {
        let (calls, writer) = (self.clone(), json!({"nodes": {"write": [{"data": {"text": "it"}}]}}));
        Registry::new()
            .function("count", move |_: Value, context: NodeContext| {
                std::future::ready(Ok::<_, NodeError>(calls.count(&context)))
            })
            .agents(ScriptedExecutor::from_json(&writer).unwrap())
    }

    /// The nodes that a run has called, each of which was called once.
    fn once(&self, run: &RunId) -> Vec<String> {
        let calls = self.0.lock().unwrap();
        let of_run = calls.iter().filter(|((of, _), _)| of == run);
        of_run
            .map(|((_, node), count)| {
                assert_eq!(*count, 1, "{node} of {run}");
                node.clone()
            })
            .collect()
    }
}

/// Where the gate of a document is.
#[derive(Clone, Copy)]
enum Shape {
    Line,
    Branch,
    Nested,
}

/// A document that is edited.
#[derive(Clone)]
struct Draft {
    name: String,
    shape: Shape,
    first: String,
    gate: String,
    gate_is_human: bool,
    ask: String,
    guidance: String,
    /// A node behind the gate.
    extra: bool,
    last: String,
}

impl Draft {
    fn new(number: usize, random: &mut fastrand::Rng) -> Self {
        Self {
            name: format!("d{number}"),
            shape: [Shape::Line, Shape::Branch, Shape::Nested][random.usize(..3)],
            first: format!("first{}", random.u8(..4)),
            gate: format!("gate{}", random.u8(..4)),
            gate_is_human: true,
            ask: format!("Go on with {number}?"),
            guidance: "Say it.".to_owned(),
            extra: random.bool(),
            last: format!("the end of {number}"),
        }
    }

    fn text(&self) -> String {
        let Self { name, first, gate, ask, guidance, last, .. } = self;
        let meets = if matches!(self.shape, Shape::Nested) { "meet" } else { "write" };
        let (behind, extra) = if self.extra {
            ("extra", format!("\n  extra: {{function: count, next: {meets}}}"))
        } else {
            (meets, String::new())
        };
        let kind = if self.gate_is_human { format!("human: {{ask: \"{ask}\"}}") } else { "value: 1".into() };
        let (next, others) = match self.shape {
            Shape::Line => (gate.clone(), ""),
            Shape::Branch => (
                format!("{{parallel: [{gate}, side], join: write}}"),
                "\n  side: {function: count, next: write}",
            ),
            Shape::Nested => ("{parallel: [inner, side], join: write}".to_owned(), NESTED),
        };
        let others = others.replace("GATE", gate);
        format!(
            "graph: {name}
nodes:
  {first}: {{function: count, next: {next}}}{others}
  {gate}: {{{kind}, next: {behind}}}{extra}
  write:
    agent: Write it.
    reads: []
    ensure: {{all: [write.text == 'it'], retries: 1, guidance: \"{guidance}\"}}
    next: last
  last: {{value: \"{last}, ${{ {first}.n }}\"}}
"
        )
    }

    /// Another document that the open runs of this one fit.
    fn fitting(&self, random: &mut fastrand::Rng) -> Self {
        let mut edited = self.clone();
        match random.u8(..4) {
            0 => "Are you sure?".clone_into(&mut edited.ask),
            1 => "Say it otherwise.".clone_into(&mut edited.guidance),
            2 if !self.extra => edited.extra = true,
            _ => "another end".clone_into(&mut edited.last),
        }
        edited
    }

    /// One that they do not fit, and the name that is missed.
    fn unfitting(&self, random: &mut fastrand::Rng) -> (Self, String) {
        let mut edited = self.clone();
        let missed = match random.u8(..4) {
            0 => {
                (edited.gate, edited.gate_is_human) = ("instead".to_owned(), false);
                &self.gate
            }
            1 => {
                "renamed".clone_into(&mut edited.gate);
                &self.gate
            }
            2 => {
                edited.gate_is_human = false;
                &self.gate
            }
            _ => {
                "renamed".clone_into(&mut edited.first);
                &self.first
            }
        };
        (edited, missed.clone())
    }

    /// The functions that a whole run calls.
    fn calls(&self) -> Vec<String> {
        let mut calls: Vec<&str> = match self.shape {
            Shape::Line => vec![],
            Shape::Branch => vec!["side"],
            Shape::Nested => vec!["side", "inner", "deep"],
        };
        calls.push(&self.first);
        if self.extra {
            calls.push("extra");
        }
        calls.sort_unstable();
        calls.into_iter().map(str::to_owned).collect()
    }

    fn check(&self, result: &GraphResult, is_changed: bool, calls: &Calls, run: &RunId) {
        let text = self.text();
        assert_eq!(result.document_changed, is_changed, "{text}");
        assert_eq!(result.output, format!("{}, 1", self.last), "{text}");
        assert_eq!(result.results.contains_key("extra"), self.extra, "{text}");
        assert_eq!(result.results[&self.gate].data, json!({"word": "yes"}), "{text}");
        assert_eq!(calls.once(run), self.calls(), "{text}");
    }
}

const NESTED: &str = "
  side: {function: count, next: write}
  inner: {function: count, next: {parallel: [GATE, deep], join: meet}}
  deep: {function: count, next: meet}
  meet: {value: 1, next: write}";

/// One engine with all of these documents.
fn hosting(texts: impl Iterator<Item = String>, calls: &Calls, store: &Arc<MemoryStore>) -> Engine {
    let registry = calls.registry();
    let workflows = texts.flat_map(|text| {
        let document = Document::parse(&text, "d.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        document.bind(&registry).unwrap_or_else(|error| panic!("{error}\n{text}"))
    });
    Engine::builder().workflows(workflows).store(store.clone()).clock(VirtualClock::new()).build().unwrap()
}

/// What a store has of a run: its status and its records.
async fn stored(engine: &Engine, run: &RunId) -> (RunStatus, String) {
    let runs = engine.runs(&RunQuery::new().run(run.clone())).await.unwrap();
    (runs[0].run.status, format!("{:?}", engine.history(run).await.unwrap()))
}

/// The documents with which open runs are resumed.
struct Replaced {
    was: Draft,
    is: Draft,
    /// The name that a refusal names.
    missed: Option<String>,
    runs: Vec<RunId>,
}

async fn started(count: usize, calls: &Calls, store: &Arc<MemoryStore>) -> Vec<Replaced> {
    let mut random = fastrand::Rng::with_seed(41);
    let drafts: Vec<Draft> = (0..count).map(|number| Draft::new(number, &mut random)).collect();
    let engine = hosting(drafts.iter().map(Draft::text), calls, store);
    let mut replaced = Vec::new();
    for was in drafts {
        let mut runs = Vec::new();
        for _ in 0..random.usize(1..3) {
            let run = GraphRun::start(&engine, &was.name, json!({})).await.unwrap();
            assert_eq!(run.settled().await, RunStatus::Waiting, "{}", was.text());
            runs.push(run.id().clone());
        }
        let (is, missed) = if random.bool() {
            (was.fitting(&mut random), None)
        } else {
            let (is, missed) = was.unfitting(&mut random);
            (is, Some(missed))
        };
        replaced.push(Replaced { was, is, missed, runs });
    }
    engine.shut_down(Duration::from_secs(5)).await;
    replaced
}

/// Answers the gate of a run, and returns the result.
async fn answered(engine: &Engine, run: &RunId) -> GraphResult {
    let run = GraphRun::attach(engine, run.clone()).await.unwrap();
    let gate = run.gates().await.unwrap().remove(0);
    run.answer(gate.id, json!({"word": "yes"})).await.unwrap();
    run.outcome().await.unwrap()
}

// G2 (S41)
#[tokio::test(start_paused = true)]
async fn open_runs_of_replaced_documents_go_on_or_are_refused_by_name() {
    let (calls, store) = (Calls::default(), Arc::new(MemoryStore::default()));
    let replaced = started(number("HOSTED", 60), &calls, &store).await;

    let engine = hosting(replaced.iter().map(|replaced| replaced.is.text()), &calls, &store);
    let mut unchanged = BTreeMap::new();
    for run in replaced.iter().flat_map(|replaced| &replaced.runs) {
        unchanged.insert(run.clone(), stored(&engine, run).await);
    }
    let resumed = engine.resume_open_runs().await.unwrap();
    let refused: BTreeMap<RunId, ResumeError> = resumed.refused.into_iter().collect();
    for Replaced { is, missed, runs, .. } in &replaced {
        for run in runs {
            let Some(missed) = missed else {
                let result = answered(&engine, run).await;
                is.check(&result, true, &calls, run);
                continue;
            };
            let attached = GraphRun::attach(&engine, run.clone()).await.err();
            let Some(again) = attached else { panic!("{}", is.text()) };
            // The text names nodes, and neither their steps nor their events.
            assert!(!again.to_string().contains(":ask"), "{again}");
            let GraphError::DocumentChanged { difference: again, .. } = again else { panic!("{again}") };
            let ResumeError::Incompatible { difference, .. } = &refused[run] else {
                panic!("{}", refused[run])
            };
            assert_eq!(*difference, again);
            assert!(difference.to_string().contains(missed), "`{missed}`: {difference}");
            assert_eq!(stored(&engine, run).await, unchanged[run]);
        }
    }
    let unfit = || replaced.iter().filter(|replaced| replaced.missed.is_some());
    assert_eq!(refused.len(), unfit().map(|replaced| replaced.runs.len()).sum::<usize>());
    engine.shut_down(Duration::from_secs(5)).await;

    // The old documents are put back.
    let engine = hosting(replaced.iter().map(|replaced| replaced.was.text()), &calls, &store);
    for Replaced { was, runs, .. } in unfit() {
        for run in runs {
            let result = answered(&engine, run).await;
            was.check(&result, false, &calls, run);
        }
    }
}

/// A document whose last but one node has a mistake, until it is mended.
fn mistaken(number: usize, divisor: &str) -> String {
    format!(
        "graph: d{number}
nodes:
  first: {{function: count, next: {{parallel: [a, b], join: meet}}}}
  a: {{function: count, next: meet}}
  b: {{function: count, next: meet}}
  meet: {{function: count, next: wrong}}
  wrong: {{value: \"${{ {number} / {divisor} }}\", next: after}}
  after: {{function: count, next: last}}
  last: {{value: \"${{ wrong }}\"}}
"
    )
}

// G2, G29 (S39, S41)
#[tokio::test(start_paused = true)]
async fn runs_that_failed_by_a_mistake_are_redriven_and_call_nothing_twice() {
    let (calls, store) = (Calls::default(), Arc::new(MemoryStore::default()));
    let numbers = 0..number("HOSTED", 60);
    let engine = hosting(numbers.clone().map(|number| mistaken(number, "input.none")), &calls, &store);
    let mut runs = Vec::new();
    for number in numbers.clone() {
        let run = GraphRun::start(&engine, &format!("d{number}"), json!({"none": 0})).await.unwrap();
        let Err(GraphError::Failed(failure)) = run.outcome().await else { panic!("no mistake") };
        assert_eq!(failure.node.as_deref(), Some("wrong"));
        assert_eq!(calls.once(run.id()), ["a", "b", "first", "meet"]);
        runs.push(run.id().clone());
    }
    engine.shut_down(Duration::from_secs(5)).await;

    // Every other document is mended first.
    let halves = |number: usize| if number.is_multiple_of(2) { "2" } else { "input.none" };
    let engine = hosting(numbers.clone().map(|number| mistaken(number, halves(number))), &calls, &store);
    for (number, run) in runs.iter().enumerate() {
        let redriven = GraphRun::redrive(&engine, run.clone()).await.unwrap();
        assert_eq!(redriven.outcome().await.is_ok(), number.is_multiple_of(2));
    }
    engine.shut_down(Duration::from_secs(5)).await;

    let engine = hosting(numbers.map(|number| mistaken(number, "2")), &calls, &store);
    for (number, run) in runs.iter().enumerate() {
        let run = if number.is_multiple_of(2) {
            GraphRun::attach(&engine, run.clone()).await.unwrap()
        } else {
            GraphRun::redrive(&engine, run.clone()).await.unwrap()
        };
        let result = run.outcome().await.unwrap();
        assert!(result.document_changed);
        let twice = result.output.as_f64().unwrap() * 2.0 - f64::from(u32::try_from(number).unwrap());
        assert!(twice.abs() < 0.1, "{number}: {:?}", result.output);
        assert_eq!(calls.once(run.id()), ["a", "after", "b", "first", "meet"]);
    }
}
