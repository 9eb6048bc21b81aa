//! What a call of a step asks of the run that it belongs to. The run implements it, so that inputs know nothing of runs.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use super::{CallContext, EmitError};
use crate::cancel::Cancellations;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ParentRun, RunId, ThreadId, TraceParent};
use crate::output::{JsonOutputTypes, OutputForm};
use crate::report::Ending;

/// The run of a call: its names, and the injectables that it hands out.
pub(crate) trait RunServices: Any + fmt::Debug + Send + Sync {
    fn id(&self) -> &RunId;

    fn thread(&self) -> &ThreadId;

    /// The name of the run's workflow.
    fn workflow(&self) -> &Arc<str>;

    /// The name of a step, by its place in the table.
    fn step_name(&self, step: usize) -> &Arc<str>;

    /// Whether a parameter of a step is a passive input, by their places in the table.
    fn is_passive(&self, step: usize, slot: usize) -> bool;

    /// Whether a step declares that it uses a context, by its place in the table.
    fn uses_context(&self, step: usize) -> bool;

    /// Whether a parameter of the call gathers events of this type, by its place.
    fn gathers(&self, call: &CallContext, slot: usize, event: &AnyEvent) -> bool;

    /// The types of an output of a step, by the name of its event and its form.
    fn json_output(&self, step: usize, event: &str, form: OutputForm) -> Result<JsonOutputTypes, EmitError>;

    /// Why the run ends, once its clean-up has begun.
    fn ending(&self) -> Option<&Arc<Ending>>;

    /// How many redrives came before the end whose clean-up runs; 0 without one.
    fn redrives_before_end(&self) -> usize;

    fn parent(&self) -> Option<&ParentRun>;

    /// The place of the run in a distributed trace.
    fn trace_parent(&self) -> Option<TraceParent>;

    /// The engine that drives the run, if there is one.
    fn engine(&self) -> Option<Arc<dyn Any + Send + Sync>>;

    fn run_context(self: Arc<Self>) -> RunContext;

    fn thread_context(self: Arc<Self>) -> ThreadContext;

    /// The run's configuration of a type, if a step of its workflow declares one.
    fn config(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>>;

    fn display(&self, step: usize, execution: ExecutionId, attempt: u32) -> Display;

    fn cancellations(&self) -> &Cancellations;

    /// The children of one attempt, which shows what they show on its own display.
    fn children(self: Arc<Self>, call: &CallContext, display: Display) -> Arc<dyn StartedChildren>;
}

/// The children that one attempt started. Their input knows the type behind it.
pub(crate) trait StartedChildren: Any + fmt::Debug + Send + Sync {
    /// The attempt has ended: children that it waited for are cancelled.
    fn end(&self);
}
