//! Contexts for tests: of an attempt in no graph.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use workflow_core::{Cancellation, Children, Display, DisplayStream, RunContext, RunId};

use super::{Held, NodeContext, Parts, Services};

impl Services {
    /// Of no run.
    pub(crate) fn detached(key: String) -> (Self, DisplayStream) {
        let (display, shown) = Display::detached();
        let services = Self {
            call: None,
            key: key.into(),
            display: display.into(),
            children: Children::detached().into(),
            cancellation: Cancellation::detached().0.into(),
            saved: RunContext::in_memory().into(),
            may_have_saved: AtomicBool::new(false),
        };
        (services, shown)
    }
}

/// The parts of the first attempt of `node`, and the viewer of what it shows.
pub(crate) fn parts(node: &str) -> (Parts, DisplayStream) {
    let (services, shown) = Services::detached(format!("run-1/{node}/1"));
    let parts = Parts {
        run: RunId::new("run-1"),
        node: node.into(),
        iteration: 1,
        attempt: 1,
        item: None,
        input: Held::Made(Arc::new(serde_json::json!({}))),
        results: Vec::new(),
        runs: 0,
        services,
    };
    (parts, shown)
}

/// The context of an attempt of `node` that `runs` others precede.
pub(crate) fn context(node: &str, runs: u32) -> NodeContext {
    NodeContext::new(Parts { runs, ..parts(node).0 })
}
