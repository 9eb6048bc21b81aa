//! The one-line form: a workflow, a start event, an output, without an engine of one's own.

use super::Workflow;
use crate::engine::Engine;
use crate::error::RunError;
use crate::event::StartEvent;
use crate::run::RunOptions;

/// Runs a workflow in the caller's own task; dropping the future cancels the run.
pub(super) async fn run<W: Workflow, S: StartEvent>(workflow: W, start: S) -> Result<W::Output, RunError> {
    let engine = Engine::builder().host(workflow).build()?;
    let (run, handle) = engine.prepare::<W, S>(start, RunOptions::new()).await?;
    run.await;
    handle.outcome().await
}
