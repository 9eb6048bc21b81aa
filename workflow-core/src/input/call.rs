//! What one call of a step or precondition is given: a value per parameter slot, and who is calling.

use std::any::Any;
use std::iter::{Chain, Enumerate, Take};
use std::slice;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::emitter::EmitBuffer;
use super::{Prefix, RunInfo};
use crate::cancel::{Cancellation, Lease};
use crate::children::{Brood, Children};
use crate::config::Config;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::output::{Emitted, StepOutput};
use crate::panics::discard;
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

/// What stands in the slots of a call. Most steps have two parameters at most.
pub(crate) type SlotValues = SmallVec<[SlotValue; 2]>;

/// Who is calling: the run, the execution and its step.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) run: Arc<RunShared>,
    pub(crate) step: usize,
    pub(crate) execution: ExecutionId,
    pub(crate) attempt: u32,
    pub(crate) scope: ScopeId,
}

/// One call of a step: what its parameters were bound to, and who is calling.
///
/// Generated code fills the step's parameters from it; [`Middleware`](crate::Middleware) stands around it.
#[derive(Debug)]
pub struct StepCall {
    /// Dropped first: what its dropping shows or emits counts as done by the step.
    kept: KeptValues,
    frame: Frame,
    batch: Emitted,
}

/// What a call was given, and what has come of it besides what the step returns.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) slots: SlotValues,
    pub(crate) context: CallContext,
    taken: OnceLock<Box<Taken>>,
}

/// What a step was given besides events, by name. Most are given none of it.
#[derive(Debug, Default)]
struct Taken {
    emitted: OnceLock<Arc<EmitBuffer>>,
    display: OnceLock<Display>,
    children: OnceLock<Arc<Brood>>,
    cancellation: OnceLock<Lease>,
}

/// What a parameter borrows that is not in the log: a value of users' code, which the library drops.
#[derive(Debug, Default)]
struct Kept(Option<Box<dyn Any + Send>>);

/// Those of all slots. Most steps have two parameters at most.
#[derive(Debug, Default)]
struct KeptValues {
    first: [Kept; 2],
    #[expect(clippy::box_collection, reason = "a vector takes three times the room of a pointer to it")]
    more: Option<Box<Vec<Kept>>>,
}

impl Kept {
    #[inline]
    fn clear(&mut self) {
        if let Some(value) = self.0.take() {
            discard(value);
        }
    }
}

impl KeptValues {
    /// Of so many slots.
    #[inline]
    fn of(slots: usize) -> Self {
        let more = slots.saturating_sub(2);
        let more = (more > 0).then(|| Box::new((0..more).map(|_| Kept::default()).collect()));
        Self { first: [Kept(None), Kept(None)], more }
    }

    fn iter_mut(&mut self) -> Chain<slice::IterMut<'_, Kept>, slice::IterMut<'_, Kept>> {
        let more = self.more.as_mut().map_or(&mut [][..], |more| &mut more[..]);
        self.first.iter_mut().chain(more)
    }

    #[inline]
    fn clear(&mut self) {
        for kept in &mut self.first {
            kept.clear();
        }
        if let Some(more) = &mut self.more {
            more.iter_mut().for_each(Kept::clear);
        }
    }
}

impl Drop for KeptValues {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

impl Frame {
    #[inline]
    fn new(slots: SlotValues, context: CallContext) -> Self {
        Self { slots, context, taken: OnceLock::new() }
    }

    fn taken(&self) -> &Taken {
        self.taken.get_or_init(Box::default)
    }
}

impl Drop for Frame {
    /// An attempt that did not commit takes back what it showed (S25), and no child outlives who waits for it.
    fn drop(&mut self) {
        let Some(mut taken) = self.taken.take() else { return };
        if let Some(children) = taken.children.take() {
            children.end();
        }
        if let Some(display) = taken.display.take() {
            display.retract();
        }
        if let Some(buffer) = taken.emitted.get() {
            buffer.close_into(&mut Emitted::default());
        }
        if let Some(lease) = &taken.cancellation.take() {
            self.context.run.cancellations.end(lease);
        }
    }
}

impl StepCall {
    #[inline]
    pub(crate) fn new(slots: SlotValues, context: CallContext) -> Self {
        let kept = KeptValues::of(slots.len());
        let frame = Frame::new(slots, context);
        Self { frame, kept, batch: Emitted::default() }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.frame.context.run.id
    }

    /// The step's name.
    pub fn step(&self) -> &str {
        &self.frame.context.run.table.steps[self.frame.context.step].name
    }

    /// The step's row.
    pub(crate) fn step_index(&self) -> usize {
        self.frame.context.step
    }

    /// The execution: the same for each attempt of it.
    pub fn execution(&self) -> ExecutionId {
        self.frame.context.execution
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.frame.context.attempt
    }

    /// The scope that the execution was evaluated in.
    pub fn scope(&self) -> ScopeId {
        self.frame.context.scope
    }

    /// The slots of the step's parameters, in their order and without `&self`; each can be
    /// [filled](crate::StepInput::fill) as the parameter is.
    pub fn slots(&mut self) -> Slots<'_> {
        self.open().0
    }

    /// Ends the call with what a step returned: what its emitters hold and then the output, in that order, are
    /// what the execution commits. An output that the step does not declare fails the execution when it
    /// comes to the commit.
    ///
    /// # Errors
    /// The error of an output that is one.
    pub fn commit<T: StepOutput>(mut self, output: T) -> Result<Emitted, StepError> {
        output.emit(&mut self.batch)?;
        Ok(self.committed())
    }

    /// The slots of its parameters, and where what it returns is put.
    #[doc(hidden)]
    pub fn open(&mut self) -> (Slots<'_>, &mut Emitted) {
        let kept = self.kept.iter_mut().take(self.frame.slots.len());
        (Slots { frame: &self.frame, kept: kept.enumerate() }, &mut self.batch)
    }

    /// Gives up what parameters borrowed that were filled before, so that they can be filled again.
    pub(crate) fn clear_kept(&mut self) {
        self.kept.clear();
    }

    /// The call itself, for a precondition that outlives the question.
    #[doc(hidden)]
    pub fn take(&mut self) -> Self {
        let empty = Self::new(SmallVec::new(), self.frame.context.clone());
        std::mem::replace(self, empty)
    }

    /// Ends an attempt that succeeded: what it showed goes with what it leaves in the log, which is what its emitters
    /// hold, then what it returned, in that order (S7, S23).
    #[doc(hidden)]
    pub fn committed(&mut self) -> Emitted {
        self.kept.clear();
        let returned = std::mem::take(&mut self.batch);
        let Some(taken) = self.frame.taken.get_mut() else { return returned };
        let mut emitted = Emitted::default();
        if let Some(buffer) = taken.emitted.get() {
            buffer.close_into(&mut emitted);
        }
        emitted.append(returned);
        emitted.showed(taken.display.take());
        emitted
    }
}

/// The slots of a call that are still to be filled, in the order of its parameters.
#[derive(Debug)]
pub struct Slots<'a> {
    frame: &'a Frame,
    kept: Enumerate<Take<Chain<slice::IterMut<'a, Kept>, slice::IterMut<'a, Kept>>>>,
}

impl<'a> Slots<'a> {
    #[inline]
    pub(crate) fn take(&mut self) -> Slot<'a> {
        self.next().expect("a call has a slot for each of its parameters")
    }
}

impl<'a> Iterator for Slots<'a> {
    type Item = Slot<'a>;

    fn next(&mut self) -> Option<Slot<'a>> {
        let (index, kept) = self.kept.next()?;
        Some(Slot { frame: self.frame, index, kept })
    }
}

/// The slot of one parameter: the event or list bound to it, and what can be injected.
#[derive(Debug)]
pub struct Slot<'a> {
    frame: &'a Frame,
    index: usize,
    kept: &'a mut Kept,
}

impl<'a> Slot<'a> {
    /// Keeps a value for as long as the step runs, for its parameter to borrow.
    #[expect(clippy::missing_panics_doc, reason = "it is read as what it was put there as")]
    pub fn keep<T: Send + 'static>(self, value: T) -> &'a mut T {
        let kept: &mut (dyn Any + Send) = &mut **self.kept.0.insert(Box::new(value));
        kept.downcast_mut().expect("it is read as what it was put there as")
    }

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
        RunInfo::of(self.frame)
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
        let CallContext { step, execution, attempt, .. } = self.frame.context;
        let display = || self.run().display_for(step, execution, attempt);
        self.frame.taken().display.get_or_init(display).clone()
    }

    /// The execution's child runs.
    ///
    /// # Errors
    /// If a precondition is filled: it runs no children.
    pub fn children(&self) -> Result<Children, StepError> {
        let context = &self.frame.context;
        if context.execution == ExecutionId(0) {
            return Err(StepError::permanent(Internal::ChildrenOfPrecondition));
        }
        let brood = || Arc::new(Brood::of(context, self.display()));
        Ok(Children::new(Arc::clone(self.frame.taken().children.get_or_init(brood))))
    }

    /// The execution's cancellation.
    pub fn cancellation(&self) -> Cancellation {
        let execution = self.frame.context.execution;
        let lease = || self.run().cancellations.lease(execution);
        self.frame.taken().cancellation.get_or_init(lease).cancellation()
    }

    /// The value of the event bound to the slot, if there is one and it is a `T`.
    pub(crate) fn payload_ref<T: Any>(&self) -> Option<&'a T> {
        match self.value() {
            SlotValue::One(_, event) => event.payload_ref(),
            _ => None,
        }
    }

    pub(crate) fn prefix(&self) -> Result<&'a Prefix, StepError> {
        match self.value() {
            SlotValue::List(prefix) => Ok(prefix),
            _ => Err(self.mismatch()),
        }
    }

    pub(crate) fn emit_buffer(&self) -> &'a Arc<EmitBuffer> {
        self.frame.taken().emitted.get_or_init(|| Arc::new(EmitBuffer::default()))
    }

    pub(crate) fn mismatch(&self) -> StepError {
        StepError::permanent(Internal::SlotMismatch { slot: self.index })
    }

    #[inline]
    fn value(&self) -> &'a SlotValue {
        self.frame.slots.get(self.index).unwrap_or(&SlotValue::Empty)
    }

    fn run(&self) -> &'a Arc<RunShared> {
        &self.frame.context.run
    }
}
