//! One call of a step or precondition: a value per parameter slot, and the identity of the caller.
//!
//! A call owns all that an attempt may leave behind besides its result: emitted events, display items,
//! children, a cancellation. Dropping the call without a commit takes them back, so an attempt that fails,
//! panics or is dropped leaves nothing (S23, S25).
//!
//! ```text
//!  StepCall
//!   ├─ borrowed  values that parameters borrow; dropped first
//!   ├─ frame     slots, caller, and what the step has taken: emitter, display, children, cancellation
//!   └─ batch     the outputs that the step returned
//! ```

use std::any::{Any, TypeId};
use std::iter::{Chain, Enumerate, Take};
use std::slice;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::emitter::EmitBuffer;
use super::{EmitError, Prefix, RunInfo, RunServices, StartedChildren};
use crate::cancel::Cancellation;
use crate::config::Config;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::output::{Emitted, StepOutput};
use crate::panics::discard;

mod injectables;
mod run_time;
mod watch;

pub use injectables::Injectables;
pub use run_time::{InputValue, JsonBranch};
pub use watch::CallWatch;

use injectables::Taken;
pub(super) use watch::Asked;

/// The contents of one slot.
#[derive(Debug, Clone)]
pub(crate) enum SlotValue {
    /// The slot of an injected parameter, which takes no event.
    Injected,
    /// No event: the slot of an optional or a passive input.
    Empty,
    /// One event and its position.
    One(Seq, AnyEvent),
    /// A prefix of the log.
    List(Prefix),
}

/// The contents of all slots, in the order of the parameters. Most steps have at most two.
pub(crate) type SlotValues = SmallVec<[SlotValue; 2]>;

/// The identity of a call: the run, the step, the execution and its attempt.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) run: Arc<dyn RunServices>,
    pub(crate) step: usize,
    pub(crate) execution: ExecutionId,
    pub(crate) attempt: u32,
    pub(crate) scope: ScopeId,
}

impl CallContext {
    pub(crate) fn is_of_precondition(&self) -> bool {
        self.execution == ExecutionId(0)
    }
}

/// One call of a step: its bound events, and the identity of the caller.
///
/// In a typed workflow, generated code fills the step's parameters from the call. A step of a
/// [`RuntimeWorkflow`](crate::RuntimeWorkflow) reads its [inputs](Self::input), [emits](Self::emit) its outputs, and
/// [commits](Self::commit). [`Middleware`](crate::middleware::Middleware) can wrap each call.
#[derive(Debug)]
pub struct StepCall {
    /// Dropped first, so that events and display items of a drop still count as the step's.
    borrowed: BorrowedValues,
    frame: Frame,
    batch: Emitted,
}

/// The inputs of a call, and the side effects of the step besides its return value.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) slots: SlotValues,
    pub(crate) context: CallContext,
    taken: OnceLock<Arc<Taken>>,
}

impl Frame {
    /// Whether the attempt may have begun before.
    pub(crate) fn may_have_begun(&self) -> bool {
        self.taken.get().is_some_and(|taken| taken.may_have_begun)
    }

    /// The end of the idempotency key, where it is not the positions of all inputs.
    pub(crate) fn key(&self) -> Option<&str> {
        self.taken.get()?.key.get().map(|key| &**key)
    }
}

/// A value that a parameter borrows and that is not in the log. The library drops it, since its type is a
/// user's.
#[derive(Debug, Default)]
struct BorrowedValue(Option<Box<dyn Any + Send>>);

/// The borrowed values of all slots. Most steps have at most two.
#[derive(Debug, Default)]
struct BorrowedValues {
    first: [BorrowedValue; 2],
    #[expect(clippy::box_collection, reason = "a vector takes three times the room of a pointer")]
    more: Option<Box<Vec<BorrowedValue>>>,
}

impl BorrowedValue {
    #[inline]
    fn clear(&mut self) {
        if let Some(value) = self.0.take() {
            discard(value);
        }
    }
}

impl BorrowedValues {
    /// Makes room for the values of `slots` slots.
    #[inline]
    fn fit(&mut self, slots: usize) {
        let more = slots.saturating_sub(2);
        if more > 0 && self.more.is_none() {
            self.more = Some(Box::new((0..more).map(|_| BorrowedValue::default()).collect()));
        }
    }

    fn iter_mut(&mut self) -> Chain<slice::IterMut<'_, BorrowedValue>, slice::IterMut<'_, BorrowedValue>> {
        let more = self.more.as_mut().map_or(&mut [][..], |more| &mut more[..]);
        self.first.iter_mut().chain(more)
    }

    #[inline]
    fn clear(&mut self) {
        for borrowed in &mut self.first {
            borrowed.clear();
        }
        if let Some(more) = &mut self.more {
            more.iter_mut().for_each(BorrowedValue::clear);
        }
    }
}

impl Drop for BorrowedValues {
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

    fn taken(&self) -> &Arc<Taken> {
        self.taken.get_or_init(Arc::default)
    }

    /// Notes what is asked for, if somebody watches.
    pub(crate) fn note(&self, asked: Asked) {
        if let Some(taken) = self.taken.get() {
            taken.note(asked);
        }
    }

    fn refuse(&self, error: EmitError) {
        self.taken().refused.get_or_init(|| error.into());
    }

    fn display(&self) -> Display {
        self.taken().display(&self.context)
    }

    fn attempt_children(&self) -> Result<Arc<dyn StartedChildren>, StepError> {
        if self.context.is_of_precondition() {
            return Err(StepError::permanent(Internal::ChildrenOfPrecondition));
        }
        Ok(self.taken().children(&self.context))
    }

    fn engine_parts(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        self.note(Asked::ENGINE);
        self.context.run.engine().ok_or_else(|| StepError::permanent(Internal::NoEngine))
    }

    fn cancellation(&self) -> Cancellation {
        self.taken().cancellation(&self.context)
    }
}

impl StepCall {
    #[inline]
    pub(crate) fn new(slots: SlotValues, context: CallContext) -> Self {
        // Steps of run-time workflows borrow nothing, however many inputs they have.
        let (frame, borrowed) = (Frame::new(slots, context), BorrowedValues::default());
        Self { frame, borrowed, batch: Emitted::default() }
    }

    /// The id of the run.
    pub fn run(&self) -> &RunId {
        self.frame.context.run.id()
    }

    /// The name of the step.
    pub fn step(&self) -> &str {
        self.frame.context.run.step_name(self.frame.context.step)
    }

    /// The index of the step in the table.
    pub(crate) fn step_index(&self) -> usize {
        self.frame.context.step
    }

    /// The id of the execution, which all its attempts share.
    pub fn execution(&self) -> ExecutionId {
        self.frame.note(Asked::NUMBERS);
        self.frame.context.execution
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.frame.context.attempt
    }

    /// The scope in which the execution was evaluated.
    pub fn scope(&self) -> ScopeId {
        self.frame.note(Asked::NUMBERS);
        self.frame.context.scope
    }

    /// The slots of the step's parameters, in order and without `&self`. Each slot can be
    /// [filled](crate::StepInput::fill) as its parameter is.
    pub fn slots(&mut self) -> Slots<'_> {
        self.open().0
    }

    /// Ends the call with the output that a step returned. The execution commits the events of its emitters
    /// and then the output, in this order.
    ///
    /// An output that the step does not declare fails the execution at the commit.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::middleware::{Middleware, Next};
    /// use workflow_core::signature::{Emitted, StepCall};
    /// use futures::future::BoxFuture;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet { name: String }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, greet: &Greet) -> Greeting {
    /// #         Greeting(format!("Hello, {}!", greet.name))
    /// #     }
    /// # }
    ///
    /// /// Answers for one step, without a call of it.
    /// struct Polite;
    ///
    /// impl Middleware for Polite {
    ///     fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
    ///         Box::pin(async move {
    ///             match call.step() {
    ///                 "greet" => call.commit(Greeting("Good day!".into())),
    ///                 _ => next.call(call).await,
    ///             }
    ///         })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).middleware(Polite).build()?;
    /// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
    /// assert_eq!(run.outcome().await?, Greeting("Good day!".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error in the output, if the output is a `Result` with one. The first error of [`emit`](Self::emit), if it
    /// returned one.
    pub fn commit<T: StepOutput>(mut self, output: T) -> Result<Emitted, StepError> {
        output.emit(&mut self.batch)?;
        if let Some(refused) = self.frame.taken.get().and_then(|taken| taken.refused.get()) {
            return Err(EmitError::clone(refused).into());
        }
        Ok(self.committed())
    }

    /// The slots of the parameters, and the place for the output.
    #[doc(hidden)]
    pub fn open(&mut self) -> (Slots<'_>, &mut Emitted) {
        self.borrowed.fit(self.frame.slots.len());
        let borrowed = self.borrowed.iter_mut().take(self.frame.slots.len());
        (Slots { frame: &self.frame, borrowed: borrowed.enumerate() }, &mut self.batch)
    }

    /// The call of an attempt that may have begun before.
    pub(crate) fn of_begun(mut self) -> Self {
        let key = self.frame.taken.get().map(|taken| taken.key.clone()).unwrap_or_default();
        self.frame.taken = OnceLock::from(Arc::new(Taken::of_begun(key)));
        self
    }

    /// Sets the positions that the idempotency key of the execution has (S39).
    #[cold]
    pub(crate) fn set_positions(&self, positions: String) {
        self.frame.taken().key.get_or_init(|| positions.into_boxed_str());
    }

    /// Sets the idempotency key that a method of the workflow made (S84), and takes back the values that it borrowed.
    #[doc(hidden)]
    pub fn set_key(&mut self, key: &str) {
        self.clear_kept();
        // The mark tells it from positions, which executions had before the step had a method.
        self.frame.taken().key.get_or_init(|| format!("={key}").into_boxed_str());
    }

    /// Drops the values that parameters borrow, so that the slots can be filled again.
    pub(crate) fn clear_kept(&mut self) {
        self.borrowed.clear();
    }

    /// Moves the call out, for a precondition that outlives the question.
    #[doc(hidden)]
    pub fn take(&mut self) -> Self {
        let empty = Self::new(SmallVec::new(), self.frame.context.clone());
        std::mem::replace(self, empty)
    }

    /// Ends a successful attempt. Returns its batch: first the events of its emitters, then the output, with
    /// the display items (S7, S23).
    #[doc(hidden)]
    pub fn committed(&mut self) -> Emitted {
        self.borrowed.clear();
        let returned = std::mem::take(&mut self.batch);
        let Some(taken) = self.frame.taken.get() else { return returned };
        let mut emitted = Emitted::default();
        if let Some(buffer) = taken.emitted.get() {
            buffer.close_into(&mut emitted);
        }
        emitted.append(returned);
        emitted.set_display(taken.commit());
        emitted
    }
}

/// The slots that are not filled yet, in the order of the parameters.
#[derive(Debug)]
pub struct Slots<'a> {
    frame: &'a Frame,
    borrowed: Enumerate<Take<Chain<slice::IterMut<'a, BorrowedValue>, slice::IterMut<'a, BorrowedValue>>>>,
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
        let (index, borrowed) = self.borrowed.next()?;
        Some(Slot { frame: self.frame, index, borrowed })
    }
}

/// The slot of one parameter: its event or list, and access to injected values.
#[derive(Debug)]
pub struct Slot<'a> {
    frame: &'a Frame,
    index: usize,
    borrowed: &'a mut BorrowedValue,
}

impl<'a> Slot<'a> {
    /// Stores a value while the step runs, so that its parameter can borrow the value.
    #[expect(clippy::missing_panics_doc, reason = "the value has the type with which it was stored")]
    pub fn keep<T: Send + 'static>(self, value: T) -> &'a mut T {
        let borrowed: &mut (dyn Any + Send) = &mut **self.borrowed.0.insert(Box::new(value));
        borrowed.downcast_mut().expect("the value has the type with which it was stored")
    }

    /// Whether the slot has no event: it belongs to an injected parameter, or to an optional or passive input
    /// without an event.
    pub fn is_empty(&self) -> bool {
        matches!(self.value(), SlotValue::Empty | SlotValue::Injected)
    }

    /// The event in the slot.
    ///
    /// # Errors
    /// If the slot has no single event, since its parameter is injected or takes a list.
    pub fn event(&self) -> Result<&'a AnyEvent, StepError> {
        match self.value() {
            SlotValue::One(_, event) => Ok(event),
            _ => Err(self.mismatch()),
        }
    }

    /// The run, step, execution and attempt.
    pub fn run_info(&self) -> RunInfo {
        RunInfo::of(self.frame)
    }

    /// The context of the run.
    pub fn run_context(&self) -> RunContext {
        Arc::clone(self.run()).run_context()
    }

    /// The context that all runs of a thread share.
    pub fn thread_context(&self) -> ThreadContext {
        Arc::clone(self.run()).thread_context()
    }

    /// The run's configuration of type `C`.
    ///
    /// # Errors
    /// If no parameter in the workflow's table declares `Config<C>`. The engine loads only declared
    /// configurations when a run starts.
    pub fn config<C: Send + Sync + 'static>(&self) -> Result<Config<C>, StepError> {
        let config = self.run().config(TypeId::of::<C>()).and_then(|config| config.downcast().ok());
        config.map(Config::from_arc).ok_or_else(|| {
            StepError::permanent(Internal::UndeclaredConfig { type_name: std::any::type_name::<C>() })
        })
    }

    /// The display of this attempt.
    pub fn display(&self) -> Display {
        self.frame.display()
    }

    /// The children of the attempt, without their type; a precondition has none.
    pub(crate) fn attempt_children(&self) -> Result<Arc<dyn StartedChildren>, StepError> {
        self.frame.attempt_children()
    }

    /// The engine that drives the run, without its type.
    pub(crate) fn engine_parts(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        self.frame.engine_parts()
    }

    /// The cancellation of this execution.
    pub fn cancellation(&self) -> Cancellation {
        self.frame.cancellation()
    }

    /// The payload of the slot's event, if it has a single event of type `T`.
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

    fn run(&self) -> &'a Arc<dyn RunServices> {
        &self.frame.context.run
    }
}
