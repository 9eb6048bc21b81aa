//! The one-line form: a run in memory without an engine of the caller's.

use std::future::Future;

use super::Workflow;
use crate::engine::{Engine, Start};
use crate::error::RunError;
use crate::event::StartEvent;
use crate::run::{Unhosted, output_of};

/// Runs a workflow in the caller's own task; dropping the future cancels the run.
pub(super) fn run<W: Workflow, S: StartEvent>(
    workflow: W,
    start: S,
) -> impl Future<Output = Result<W::Output, RunError>> + Send + 'static {
    let ended = Engine::run_alone(Unhosted::new(workflow), Start::of::<W, S>(start));
    async move { output_of::<W>(&ended.await?) }
}
