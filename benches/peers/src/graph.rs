//! graph-flow: a graph of tasks with a context of JSON values, executed without a store of sessions.

use std::sync::Arc;

use async_trait::async_trait;
use graph_flow::fanout::FanOutTask;
use graph_flow::{Context, Graph, GraphBuilder, NextAction, Result, Session, Task, TaskResult};

/// The key of the number that steps pass on.
const KEY: &str = "number";

fn number(context: &Context) -> u64 {
    context.get(KEY).unwrap_or(0)
}

/// A step that counts itself up to a number.
struct Count {
    id: &'static str,
    steps: u64,
}

#[async_trait]
impl Task for Count {
    fn id(&self) -> &str {
        self.id
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let done = number(&context) + 1;
        context.set(KEY, done)?;
        let next = if done == self.steps { NextAction::End } else { NextAction::ContinueAndExecute };
        Ok(TaskResult::new(None, next))
    }
}

/// Two steps that take turns.
pub(crate) fn chain_graph(steps: u64) -> Arc<Graph> {
    let graph = GraphBuilder::new("chain")
        .add_task(Arc::new(Count { id: "tick", steps }))
        .add_task(Arc::new(Count { id: "tock", steps }))
        .add_edge("tick", "tock")
        .add_edge("tock", "tick");
    Arc::new(graph.build().expect("it is sound"))
}

pub(crate) async fn chain(graph: Arc<Graph>) -> u64 {
    let mut session = Session::new_from_task("chain".to_owned(), "tick");
    graph.execute_session(&mut session).await.expect("it completes");
    number(&session.context)
}

/// Squares its number.
struct Square {
    id: String,
    number: u64,
}

#[async_trait]
impl Task for Square {
    fn id(&self) -> &str {
        &self.id
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        context.set(&self.id, self.number * self.number)?;
        Ok(TaskResult::new(None, NextAction::End))
    }
}

/// Adds up the squares.
struct Sum {
    branches: u64,
}

#[async_trait]
impl Task for Sum {
    fn id(&self) -> &str {
        "sum"
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let squares = (0..self.branches).filter_map(|number| context.get::<u64>(&square(number)));
        context.set(KEY, squares.sum::<u64>())?;
        Ok(TaskResult::new(None, NextAction::End))
    }
}

fn square(number: u64) -> String {
    format!("square-{number}")
}

/// The graph fixes the branches and their number before a run.
pub(crate) fn fan_graph(branches: u64) -> Arc<Graph> {
    let branch = |number| Arc::new(Square { id: square(number), number }) as Arc<dyn Task>;
    let squares = FanOutTask::new("squares", (0..branches).map(branch).collect())
        .with_next_action(NextAction::ContinueAndExecute);
    let graph = GraphBuilder::new("fan").add_task(squares).add_task(Arc::new(Sum { branches }));
    Arc::new(graph.add_edge("squares", "sum").build().expect("it is sound"))
}

pub(crate) async fn fan(graph: Arc<Graph>) -> u64 {
    let mut session = Session::new_from_task("fan".to_owned(), "squares");
    graph.execute_session(&mut session).await.expect("it completes");
    number(&session.context)
}

/// Adds one.
struct AddOne {
    id: &'static str,
    next: NextAction,
}

#[async_trait]
impl Task for AddOne {
    fn id(&self) -> &str {
        self.id
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        context.set(KEY, number(&context) + 1)?;
        Ok(TaskResult::new(None, self.next.clone()))
    }
}

/// Three steps, one after the other.
pub(crate) fn three_graph() -> Arc<Graph> {
    let graph = GraphBuilder::new("three")
        .add_task(Arc::new(AddOne { id: "find", next: NextAction::ContinueAndExecute }))
        .add_task(Arc::new(AddOne { id: "weigh", next: NextAction::ContinueAndExecute }))
        .add_task(Arc::new(AddOne { id: "end", next: NextAction::End }))
        .add_edge("find", "weigh")
        .add_edge("weigh", "end");
    Arc::new(graph.build().expect("it is sound"))
}

/// Each run is a session and a task.
pub(crate) async fn runs(graph: Arc<Graph>, runs: u64) -> u64 {
    let run = |number_of_run: u64| {
        let graph = Arc::clone(&graph);
        async move {
            let mut session = Session::new_from_task(number_of_run.to_string(), "find");
            session.context.set(KEY, number_of_run).expect("it is JSON");
            graph.execute_session(&mut session).await.expect("it completes");
            number(&session.context)
        }
    };
    let started: Vec<_> = (0..runs).map(|number| tokio::spawn(run(number))).collect();
    let mut sum = 0;
    for run in started {
        sum += run.await.expect("it does not panic");
    }
    sum
}
