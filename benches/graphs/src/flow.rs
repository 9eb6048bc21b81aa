//! The chain by graph-flow: a task for each node, with a context of JSON values, executed without a store of sessions.

use std::sync::Arc;

use async_trait::async_trait;
use graph_flow::{Context, Graph, GraphBuilder, NextAction, Result, Session, Task, TaskResult};
use serde::{Deserialize, Serialize};

use crate::NODES;

#[derive(Serialize, Deserialize)]
struct Number {
    number: u64,
}

/// Adds one to the result of the node before it, and leaves a result of its own.
struct Add {
    id: String,
    read: String,
    next: NextAction,
}

#[async_trait]
impl Task for Add {
    fn id(&self) -> &str {
        &self.id
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let number = context.get::<Number>(&self.read).map_or(0, |read| read.number);
        context.set(&self.id, Number { number: number + 1 })?;
        Ok(TaskResult::new(None, self.next.clone()))
    }
}

fn id(node: u64) -> String {
    format!("n{node}")
}

/// The graph.
pub(crate) fn graph() -> Arc<Graph> {
    let mut graph = GraphBuilder::new("chain");
    for node in 0..NODES {
        let read = if node == 0 { "input".to_owned() } else { id(node - 1) };
        let is_last = node + 1 == NODES;
        let next = if is_last { NextAction::End } else { NextAction::ContinueAndExecute };
        graph = graph.add_task(Arc::new(Add { id: id(node), read, next }));
    }
    for node in 1..NODES {
        graph = graph.add_edge(id(node - 1), id(node));
    }
    Arc::new(graph.build().expect("it is sound"))
}

/// One walk.
pub(crate) async fn run(graph: &Graph) -> u64 {
    let mut session = Session::new_from_task("chain".to_owned(), "n0");
    session.context.set("input", Number { number: 0 }).expect("it is JSON");
    graph.execute_session(&mut session).await.expect("it completes");
    session.context.get::<Number>(&id(NODES - 1)).map_or(0, |last| last.number)
}
