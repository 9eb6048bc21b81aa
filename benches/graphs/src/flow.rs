//! The chain by graph-flow: a task for each node, with a context of JSON values. Once as one call that keeps nothing but the
//! context, and once by its `FlowRunner`, which saves the session behind each task, so that a walk can go on there: in its
//! own memory of sessions, which shares the context, and in a store that keeps sessions as JSON, as a store on disk must.

use std::sync::Arc;

use async_trait::async_trait;
use graph_flow::{
    Context, ExecutionStatus, FlowRunner, Graph, GraphBuilder, GraphError, InMemorySessionStorage,
    NextAction, Result, Session, SessionStorage, Task, TaskResult,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

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

/// The graph. It goes on from task to task in one call, or ends the call behind each.
fn graph(on: &NextAction) -> Arc<Graph> {
    let mut graph = GraphBuilder::new("chain");
    for node in 0..NODES {
        let read = if node == 0 { "input".to_owned() } else { id(node - 1) };
        let is_last = node + 1 == NODES;
        let next = if is_last { NextAction::End } else { on.clone() };
        graph = graph.add_task(Arc::new(Add { id: id(node), read, next }));
    }
    for node in 1..NODES {
        graph = graph.add_edge(id(node - 1), id(node));
    }
    Arc::new(graph.build().expect("it is sound"))
}

fn session() -> Session {
    let session = Session::new_from_task("chain".to_owned(), "n0");
    session.context.set("input", Number { number: 0 }).expect("it is JSON");
    session
}

fn result(session: &Session) -> u64 {
    session.context.get::<Number>(&id(NODES - 1)).map_or(0, |last| last.number)
}

/// The graph for walks in one call.
pub(crate) fn at_once() -> Arc<Graph> {
    graph(&NextAction::ContinueAndExecute)
}

/// One walk in one call.
pub(crate) async fn run(graph: &Graph) -> u64 {
    let mut session = session();
    graph.execute_session(&mut session).await.expect("it completes");
    result(&session)
}

/// Walks that save the session behind each task.
pub(crate) struct Saved {
    runner: FlowRunner,
    sessions: Arc<dyn SessionStorage>,
}

impl Saved {
    /// In graph-flow's memory of sessions.
    pub(crate) fn in_memory() -> Self {
        Self::of(Arc::new(InMemorySessionStorage::new()))
    }

    /// As JSON.
    pub(crate) fn as_json() -> Self {
        Self::of(Arc::new(Json::default()))
    }

    fn of(sessions: Arc<dyn SessionStorage>) -> Self {
        Self { runner: FlowRunner::new(graph(&NextAction::Continue), sessions.clone()), sessions }
    }

    /// One walk.
    pub(crate) async fn run(&self) -> u64 {
        self.sessions.save(session()).await.expect("it is saved");
        loop {
            let step = self.runner.run("chain").await.expect("it goes on");
            if matches!(step.status, ExecutionStatus::Completed) {
                break;
            }
        }
        let session = self.sessions.get("chain").await.expect("it is read").expect("it was saved");
        self.sessions.delete("chain").await.expect("it is removed");
        result(&session)
    }
}

/// The text of the session.
#[derive(Default)]
struct Json(Mutex<Option<Vec<u8>>>);

#[async_trait]
impl SessionStorage for Json {
    async fn save(&self, session: Session) -> Result<()> {
        let text =
            serde_json::to_vec(&session).map_err(|error| GraphError::StorageError(error.to_string()))?;
        *self.0.lock().await = Some(text);
        Ok(())
    }

    async fn get(&self, _: &str) -> Result<Option<Session>> {
        let text = self.0.lock().await;
        let session = text.as_deref().map(serde_json::from_slice).transpose();
        session.map_err(|error| GraphError::StorageError(error.to_string()))
    }

    async fn delete(&self, _: &str) -> Result<()> {
        *self.0.lock().await = None;
        Ok(())
    }
}
