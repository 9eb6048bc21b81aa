//! What one call of a step or precondition is given: a value per parameter slot, and who is calling.

use std::any::TypeId;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::emitter::EmitBuffer;
use super::{Prefix, RunInfo};
use crate::config::Config;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::output::Emitted;
use crate::run::RunShared;

/// What stands in one slot, in the order of the parameters.
#[derive(Debug, Clone)]
pub(crate) enum SlotValue {
    /// An injectable's slot, or an optional input without an event.
    Empty,
    /// One event and its position.
    One(Seq, AnyEvent),
    /// A prefix of the log.
    List(Prefix),
}

/// Who is calling: the run, the execution and its step.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) run: Arc<RunShared>,
    pub(crate) step: usize,
    pub(crate) execution: ExecutionId,
    pub(crate) attempt: u32,
    pub(crate) scope: ScopeId,
}

/// One call of a step or precondition, as the generated code receives it.
#[derive(Debug)]
pub struct StepCall {
    pub(crate) slots: SmallVec<[SlotValue; 4]>,
    pub(crate) context: CallContext,
    emitted: OnceLock<Arc<EmitBuffer>>,
    display: OnceLock<Display>,
    batch: Emitted,
}

impl Drop for StepCall {
    /// An attempt that did not commit takes back what it showed (S25).
    fn drop(&mut self) {
        if let Some(display) = self.display.take() {
            display.retract();
        }
        if let Some(buffer) = self.emitted.get() {
            buffer.close_into(&mut Emitted::default());
        }
    }
}

impl StepCall {
    pub(crate) fn new(slots: SmallVec<[SlotValue; 4]>, context: CallContext) -> Self {
        Self { slots, context, emitted: OnceLock::new(), display: OnceLock::new(), batch: Emitted::default() }
    }

    /// The slot of the parameter at `index`.
    #[doc(hidden)]
    pub fn slot(&self, index: usize) -> Slot<'_> {
        Slot { call: self, index }
    }

    /// Where what the step returned is put: behind what its emitters hold (S7, S23).
    pub(crate) fn batch(&mut self) -> &mut Emitted {
        if let Some(buffer) = self.emitted.get() {
            buffer.close_into(&mut self.batch);
        }
        &mut self.batch
    }

    /// Ends an execution that succeeded: what it showed stays, and this is what it leaves in the log.
    pub(crate) fn committed(mut self) -> Emitted {
        self.display.take();
        std::mem::take(self.batch())
    }
}

/// The slot of one parameter: the event or list bound to it, and what can be injected.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    call: &'a StepCall,
    index: usize,
}

impl<'a> Slot<'a> {
    /// Whether no event is bound: an optional input without an event, or an injectable.
    pub fn is_empty(&self) -> bool {
        matches!(self.value(), SlotValue::Empty)
    }

    /// The event bound to the slot.
    ///
    /// # Errors
    /// If the slot holds no single event: the parameter is an injectable or takes a list.
    pub fn event(&self) -> Result<&'a AnyEvent, StepError> {
        match self.value() {
            SlotValue::One(_, event) => Ok(event),
            _ => Err(self.mismatch()),
        }
    }

    /// Who is executing: run, step, execution and attempt.
    pub fn run_info(&self) -> RunInfo {
        RunInfo::of(self.call)
    }

    /// The run's context.
    pub fn run_context(&self) -> RunContext {
        self.run().run_context()
    }

    /// The context that the runs of one thread share.
    pub fn thread_context(&self) -> ThreadContext {
        self.run().thread_context()
    }

    /// The run's configuration of type `C`.
    ///
    /// # Errors
    /// If no parameter in the workflow's table declares `Config<C>`: only those are made ready at the
    /// start of a run.
    pub fn config<C: Send + Sync + 'static>(&self) -> Result<Config<C>, StepError> {
        self.run().config::<C>().ok_or_else(|| {
            StepError::permanent(Internal::UndeclaredConfig { type_name: std::any::type_name::<C>() })
        })
    }

    /// The execution's display.
    pub fn display(&self) -> Display {
        let CallContext { step, execution, attempt, .. } = self.call.context;
        let display = || self.run().display_for(step, execution, attempt);
        self.call.display.get_or_init(display).clone()
    }

    /// The event bound to the slot, whose value is of this type.
    pub(crate) fn event_of(&self, value: TypeId) -> Result<AnyEvent, StepError> {
        self.event()?.of_type(value).ok_or_else(|| self.mismatch())
    }

    pub(crate) fn prefix(&self) -> Result<&'a Prefix, StepError> {
        match self.value() {
            SlotValue::List(prefix) => Ok(prefix),
            _ => Err(self.mismatch()),
        }
    }

    pub(crate) fn emit_buffer(&self) -> &'a Arc<EmitBuffer> {
        self.call.emitted.get_or_init(|| Arc::new(EmitBuffer::default()))
    }

    #[doc(hidden)]
    pub fn mismatch(&self) -> StepError {
        StepError::permanent(Internal::SlotMismatch { slot: self.index })
    }

    fn value(&self) -> &'a SlotValue {
        self.call.slots.get(self.index).unwrap_or(&SlotValue::Empty)
    }

    fn run(&self) -> &'a Arc<RunShared> {
        &self.call.context.run
    }
}
