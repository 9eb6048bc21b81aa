//! The chain as a document, hosted by an engine in memory.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;
use workflow_core::prelude::*;
use workflow_graph::{Document, GraphRun, NodeError, Registry};

use crate::NODES;

#[derive(Serialize, Deserialize)]
struct Number {
    number: u64,
}

/// The engine that hosts the chain.
pub(crate) fn engine() -> Engine {
    let mut text = String::from("graph: chain\nlimits: {steps: 100000}\nnodes:\n");
    for node in 0..NODES {
        let read = if node == 0 { "input".to_owned() } else { format!("n{}", node - 1) };
        let next = if node + 1 == NODES { "end".to_owned() } else { format!("n{}", node + 1) };
        writeln!(
            text,
            "  n{node}: {{function: add, with: {{number: '${{ {read}.number }}'}}, next: {next}}}"
        )
        .expect("a text has room");
    }
    let add = async |input: Number, _| Ok::<_, NodeError>(Number { number: input.number + 1 });
    let document = Document::parse(&text, "chain.yaml").expect("it is sound");
    let workflows = document.bind(&Registry::new().function("add", add)).expect("it is bound");
    Engine::builder().workflows(workflows).build().expect("it fits")
}

async fn started(engine: &Engine) -> GraphRun {
    GraphRun::start(engine, "chain", json!({ "number": 0 })).await.expect("it starts")
}

/// One walk, with all results and the trace.
pub(crate) async fn run(engine: &Engine) -> u64 {
    let result = started(engine).await.outcome().await.expect("it ends");
    result.output["number"].as_u64().expect("a number")
}

/// One walk, with the output alone.
pub(crate) async fn walk(engine: &Engine) -> u64 {
    let ended = started(engine).await.run().outcome_any().await.expect("it ends");
    ended.as_json().and_then(|end| end["output"]["number"].as_u64()).unwrap_or_default()
}
