//! What a run hands out to the calls of its steps.

use std::any::{Any, TypeId};
use std::sync::Arc;

use super::RunShared;
use super::children::AttemptChildren;
use crate::cancel::Cancellations;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ParentRun, RunId, ThreadId, TraceParent};
use crate::input::{CallContext, EmitError, RunServices, StartedChildren};
use crate::output::{JsonOutputTypes, OutputForm};
use crate::report::Ending;

impl RunServices for RunShared {
    fn id(&self) -> &RunId {
        &self.id
    }

    fn thread(&self) -> &ThreadId {
        Self::thread(self)
    }

    fn workflow(&self) -> &Arc<str> {
        &self.table.name
    }

    fn step_name(&self, step: usize) -> &Arc<str> {
        &self.table.steps[step].name
    }

    fn is_passive(&self, step: usize, slot: usize) -> bool {
        self.table.steps[step].inputs.get(slot).is_some_and(|input| input.passive)
    }

    fn uses_context(&self, step: usize) -> bool {
        self.table.steps[step].inputs.iter().any(|input| input.uses_context)
    }

    fn gathers(&self, call: &CallContext, slot: usize, event: &AnyEvent) -> bool {
        let step = &self.table.steps[call.step];
        let slot = match &step.precondition {
            Some(precondition) if call.is_of_precondition() => {
                precondition.slots.get(slot).copied().flatten()
            }
            _ => Some(slot),
        };
        let input = slot.and_then(|slot| step.inputs.get(slot));
        input.is_some_and(|input| input.gathered.iter().any(|of| self.table.is_of(*of, event.kind())))
    }

    fn json_output(&self, step: usize, event: &str, form: OutputForm) -> Result<JsonOutputTypes, EmitError> {
        self.table.json_output(step, event, form)
    }

    fn ending(&self) -> Option<&Arc<Ending>> {
        self.signals.ending()
    }

    fn redrives_before_end(&self) -> usize {
        self.signals.redrives_before_end()
    }

    fn parent(&self) -> Option<&ParentRun> {
        Self::parent(self)
    }

    fn trace_parent(&self) -> Option<TraceParent> {
        Self::trace_parent(self)
    }

    fn engine(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.common.engine()?)
    }

    fn run_context(self: Arc<Self>) -> RunContext {
        Self::run_context(&self)
    }

    fn thread_context(self: Arc<Self>) -> ThreadContext {
        Self::thread_context(&self)
    }

    fn config(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        Self::config(self, of)
    }

    fn display(&self, step: usize, execution: ExecutionId, attempt: u32) -> Display {
        self.display_for(step, execution, attempt)
    }

    fn cancellations(&self) -> &Cancellations {
        &self.cancellations
    }

    fn children(self: Arc<Self>, call: &CallContext, display: Display) -> Arc<dyn StartedChildren> {
        Arc::new(AttemptChildren::of(self, call, display))
    }
}
