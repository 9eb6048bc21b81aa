//! A document format: nodes with operations, and edges between them. A run of a document is paused, killed, resumed and
//! answered (S57, S61, S67).
//!
//! ```text
//! start ─▶ net ─────▶ total ─▶ sign (a person) ─▶ end
//!   └────▶ tax ────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, Roles, StepCall};
use workflow_core::store::{MemoryInbox, MemoryStore, RunMessage};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepIndex};
use workflow_core::{Pause, RunOptions, RunStatus, RuntimeWorkflow, StartError, Steps, UnfitJson};

/// The node that starts a run, and the one that ends it.
const START: &str = "start";
const END: &str = "end";

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    nodes: BTreeMap<String, Operation>,
    edges: Vec<(String, String)>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// The sum of the inputs, times this.
    Times(f64),
    /// Asks a person, who may change the sum of the inputs.
    Ask(String),
}

/// A mistake in a document.
#[derive(Debug)]
struct Mistake(String);

impl Document {
    fn read(text: &str) -> Result<RuntimeWorkflow, Mistake> {
        let document: Self = serde_json::from_str(text).map_err(|error| Mistake(error.to_string()))?;
        document.check()?;
        let (table, graph) = (document.table()?, Graph::of(&document));
        Ok(RuntimeWorkflow::new(table, graph))
    }

    fn check(&self) -> Result<(), Mistake> {
        let known = |node: &str| node == START || node == END || self.nodes.contains_key(node);
        for (from, to) in &self.edges {
            let unknown = [from, to].into_iter().find(|node| !known(node));
            if let Some(unknown) = unknown {
                return Err(Mistake(format!("an edge names the node `{unknown}`, which is none")));
            }
            if from == END || to == START {
                return Err(Mistake(format!("no edge leads from `{from}` to `{to}`")));
            }
        }
        Ok(())
    }

    /// The nodes before one, in the order of the edges.
    fn before(&self, node: &str) -> Vec<String> {
        self.edges.iter().filter(|(_, to)| to == node).map(|(from, _)| from.clone()).collect()
    }

    fn asks(&self, node: &str) -> bool {
        matches!(self.nodes.get(node), Some(Operation::Ask(_)))
    }

    /// A step for each node, and for the end. A node takes the events of the nodes before it, and a reply from one that
    /// asks.
    fn table(&self) -> Result<DependencyTable, Mistake> {
        let mut table = DependencyTable::builder(&*self.name)
            .event(EventDef::new(START, Roles::NONE.start()).schema(json!({ "type": "number" })))
            .event(EventDef::new(END, Roles::NONE.stop()));
        for node in self.nodes.keys() {
            let asks = self.asks(node);
            table =
                table.event(EventDef::new(&**node, if asks { Roles::NONE.request() } else { Roles::NONE }));
            if asks {
                table = table.event(EventDef::reply_to(reply_to(node), &**node));
            }
        }
        for node in self.steps() {
            let output = if node == END { END } else { node };
            let named = StepDef::new(format!("make_{node}")).output(OutputDef::event(output));
            let inputs = self.before(node).into_iter().map(|from| {
                if self.asks(&from) { InputDef::reply(reply_to(&from)) } else { InputDef::one(from) }
            });
            table = table.step(inputs.fold(named, StepDef::input));
        }
        table.build().map_err(|error| Mistake(error.to_string()))
    }

    /// The nodes that are steps, in the order of the table.
    fn steps(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str).chain([END])
    }
}

fn reply_to(node: &str) -> String {
    format!("{node}.reply")
}

/// What the steps of a document do.
struct Graph {
    /// The event of each step, its operation, and how many inputs it has.
    steps: Vec<(String, Option<Operation>, usize)>,
}

impl Graph {
    fn of(document: &Document) -> Self {
        let step =
            |node: &str| (node.to_owned(), document.nodes.get(node).cloned(), document.before(node).len());
        Self { steps: document.steps().map(step).collect() }
    }
}

impl Steps for Graph {
    fn call(
        self: Arc<Self>,
        step: StepIndex,
        mut call: StepCall,
    ) -> BoxFuture<'static, Result<Emitted, StepError>> {
        Box::pin(async move {
            let (event, operation, inputs) = &self.steps[step.get()];
            let mut sum = 0.0;
            for place in 0..*inputs {
                let input = call.input(place).json().and_then(Value::as_f64);
                sum += input.ok_or_else(|| StepError::permanent("an input is no number"))?;
            }
            let out = match operation {
                Some(Operation::Times(factor)) => json!(sum * factor),
                Some(Operation::Ask(question)) => json!({ "question": question, "proposed": sum }),
                None => json!(sum),
            };
            call.emit(event, out)?;
            call.commit(())
        })
    }

    fn accept(&self, _event: &str, data: &Value) -> Result<(), UnfitJson> {
        if data.is_number() { Ok(()) } else { Err(UnfitJson::new("", "a number is needed")) }
    }
}

const INVOICE: &str = r#"{
    "name": "invoice",
    "nodes": {
        "net": { "times": 1 }, "tax": { "times": 0.25 }, "total": { "times": 1 }, "sign": { "ask": "Is this right?" }
    },
    "edges": [["start", "net"], ["start", "tax"], ["net", "total"], ["tax", "total"], ["total", "sign"], ["sign", "end"]]
}"#;

fn engine(store: &Arc<MemoryStore>, inbox: &Arc<MemoryInbox>) -> Engine {
    let workflow = Document::read(INVOICE).unwrap_or_else(|Mistake(mistake)| panic!("{mistake}"));
    let builder = Engine::builder().workflows([workflow]).store(Arc::clone(store));
    builder.inbox(Arc::clone(inbox)).build().unwrap()
}

// S57, S61, S67
#[tokio::test]
async fn a_document_is_run_paused_killed_resumed_and_answered() {
    let (store, inbox) = (Arc::<MemoryStore>::default(), Arc::<MemoryInbox>::default());
    let first = engine(&store, &inbox);
    let refused = first.start_json("invoice", START, "much", RunOptions::new()).await.unwrap_err();
    assert!(matches!(refused, StartError::Unfit { .. }), "{refused}");
    let run = first.start_json("invoice", START, 100, RunOptions::new().id("i-1")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let request = run.requests().await.unwrap().remove(0);
    assert_eq!(request.data().unwrap(), json!({ "question": "Is this right?", "proposed": 125.0 }));
    run.pause(Pause::Now).await.unwrap();
    first.shut_down(Duration::ZERO).await;

    // No engine has the run now: the answer and the end of the pause wait for one.
    let reply = RunMessage::Reply { request: request.seq(), data: json!(120) };
    inbox.put("i-1", "answer", reply).unwrap();
    let second = engine(&store, &inbox);
    second.resume_open_runs().await.unwrap();
    let run = second.attach_any("i-1").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    inbox.put("i-1", "go on", RunMessage::Unpause).unwrap();
    assert!(second.notify_inbox(run.id()));
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!(120.0));
    let report = run.report().await.unwrap();
    assert_eq!((report.executions("make_net"), report.executions("make_end")), (1, 1));
    assert!(inbox.refused().is_empty());
}

#[test]
fn mistakes_in_documents_are_found_before_they_run() {
    let mistake = |from: &str, to: &str| match Document::read(&INVOICE.replace(from, to)) {
        Ok(_) => panic!("`{to}` is no mistake"),
        Err(Mistake(mistake)) => mistake,
    };
    assert!(mistake(r#"["sign", "end"]"#, r#"["sing", "end"]"#).contains("`sing`"));
    assert!(mistake(r#"["start", "net"]"#, r#"["end", "net"]"#).contains("`end`"));
    // The table's own checks name what is wrong: nothing takes the total any more, and nothing signs.
    assert!(mistake(r#"["total", "sign"], "#, "").contains("sign"));
    assert!(mistake(r#""times": 1 }"#, r#""plus": 1 }"#).contains("plus"));
}
