//! The one-line form: a run in memory without an engine of the caller's.

use std::future::Future;

use super::Engine;
use crate::event::StartEvent;
use crate::outcome::RunError;
use crate::run::{Start, UnhostedWorkflow, output_of};
use crate::workflow::Workflow;

/// Runs a workflow in one line. Every [`Workflow`] has it; the [`prelude`](crate::prelude) brings it into scope.
pub trait WorkflowExt: Workflow {
    /// Runs the workflow in memory and returns its output.
    ///
    /// The run lives in the returned future. It needs no engine, no configuration beyond defaults, and no task of its
    /// own. Dropping the future cancels the run. A start event that no step takes does not compile.
    ///
    /// # Errors
    /// [`RunError`] with the reason, if the run did not complete.
    fn run<S: StartEvent>(
        self,
        start: S,
    ) -> impl Future<Output = Result<Self::Output, RunError>> + Send + 'static {
        const { crate::spec::check::all(Self::TABLE) };
        const { crate::spec::check::taken_from_outside::<S>(Self::TABLE) };
        let ended = Engine::run_alone(UnhostedWorkflow::new(self), Start::of::<Self, S>(start));
        async move { output_of::<Self>(&ended.await?) }
    }
}

impl<W: Workflow> WorkflowExt for W {}
