//! Contexts for tests: of an attempt in no graph.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use workflow_core::prelude::*;
use workflow_core::{Children, DisplayStream, RunContext, RunId};

use super::{Held, NodeContext, Parts};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Asked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answered;

struct Probe(Mutex<Option<tokio::sync::oneshot::Sender<Children>>>);

#[workflow]
impl Probe {
    #[step]
    async fn probe(&self, _asked: &Asked, children: &Children) -> Answered {
        let sender = self.0.lock().unwrap().take().unwrap();
        sender.send(children.clone()).unwrap();
        Answered
    }
}

/// Children of an attempt that has ended, so it can start none.
async fn children() -> Children {
    let (sender, received) = tokio::sync::oneshot::channel();
    Probe(Mutex::new(Some(sender))).run(Asked).await.unwrap();
    received.await.unwrap()
}

/// The parts of the first attempt of `node`, and the viewer of what it shows.
pub(crate) async fn parts(node: &str) -> (Parts, DisplayStream) {
    let (display, shown) = workflow_core::Display::detached();
    let (cancellation, _source) = Cancellation::detached();
    let parts = Parts {
        run: RunId::new("run-1"),
        node: node.into(),
        iteration: 1,
        attempt: 1,
        item: None,
        key: format!("run-1/{node}/1"),
        input: Held::Made(Arc::new(serde_json::json!({}))),
        results: HashMap::new(),
        runs: 0,
        display,
        children: children().await,
        cancellation,
        saved: RunContext::in_memory(),
    };
    (parts, shown)
}

/// The context of an attempt of `node` that `runs` others precede.
pub(crate) async fn context(node: &str, runs: u32) -> NodeContext {
    NodeContext::new(Parts { runs, ..parts(node).await.0 })
}
