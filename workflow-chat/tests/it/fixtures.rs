//! Events and small tools shared by the tests.

use std::sync::Arc;

use tokio::sync::Semaphore;
use workflow_core::RunHandle;
use workflow_core::prelude::*;

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// A control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Another control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// Ends every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// Starts a run on an engine of its own.
pub(crate) async fn started<W: Workflow>(workflow: W, begin: u32) -> RunHandle<W> {
    let engine = Engine::builder().workflow(workflow).build().unwrap();
    engine.start::<W>(Begin(begin)).await.unwrap()
}

/// Blocks steps until a test lets them pass, in order of arrival. Clones share one gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_pass(&self, how_many: usize) {
        self.0.add_permits(how_many);
    }
}

/// Lets every task of a current-thread runtime get as far as it can.
pub(crate) async fn everyone_else() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}
