//! The one-line form: a workflow, a start event, an output, without an engine of one's own.

use super::Workflow;
use crate::engine::{Engine, Start};
use crate::error::RunError;
use crate::event::StartEvent;
use crate::run::output_of;

/// Runs a workflow in the caller's own task; dropping the future cancels the run.
pub(super) async fn run<W: Workflow, S: StartEvent>(workflow: W, start: S) -> Result<W::Output, RunError> {
    let stop = Engine::run_alone(Engine::builder().host(workflow), Start::of::<W, S>(start)).await?;
    output_of::<W>(&stop)
}
