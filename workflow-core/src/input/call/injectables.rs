//! The injected values of a call: each is made when it is first asked for, and ends with the attempt. A handle gives
//! them to code that the step of a run-time workflow calls.

use std::any::Any;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::super::emitter::EmitBuffer;
use super::super::{EmitError, StartedChildren};
use super::watch::Asked;
use super::{CallContext, CallWatch, Frame, StepCall};
use crate::cancel::{CancelRegistration, Cancellation};
use crate::context::RunContext;
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::input::injected::{Bound, binding, bound, key_text};

/// The attempt goes on.
const OPEN: u8 = 0;
/// It has ended, and its outputs are on their way into the log.
const COMMITTED: u8 = 1;
/// It has ended without outputs.
const DROPPED: u8 = 2;

/// The injected values that a step has taken. Most steps take none of them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) emitted: OnceLock<Arc<EmitBuffer>>,
    display: OnceLock<Display>,
    children: OnceLock<Arc<dyn StartedChildren>>,
    cancellation: OnceLock<CancelRegistration>,
    /// Whether the attempt may have begun before. Here, so that a call that has not needs no room for it.
    pub(super) may_have_begun: bool,
    /// The end of the idempotency key, where it is not the positions of all inputs. Boxed, since few steps have one.
    pub(super) key: OnceLock<Box<str>>,
    /// The first output of a run-time step that was refused. Boxed, since few steps have one.
    pub(super) refused: OnceLock<Box<EmitError>>,
    /// What middleware sees of the injected values that are taken.
    pub(super) watch: OnceLock<CallWatch>,
    /// How the attempt ended. A handle that outlives it may still ask.
    end: AtomicU8,
}

impl Taken {
    pub(super) fn of_begun(key: OnceLock<Box<str>>) -> Self {
        Self { may_have_begun: true, key, ..Self::default() }
    }

    pub(super) fn note(&self, asked: Asked) {
        if let Some(watch) = self.watch.get() {
            watch.note(asked);
        }
    }

    /// The value in `place`, made if it is not there yet. `end` ends one that was made after the end of the attempt: either
    /// the end has seen the value in its place, or the value sees the end.
    fn get<'a, T>(
        &self,
        place: &'a OnceLock<T>,
        make: impl FnOnce() -> T,
        end: impl FnOnce(&T, u8),
    ) -> &'a T {
        let mut is_new = false;
        let value = place.get_or_init(|| {
            is_new = true;
            make()
        });
        if is_new {
            match self.end.load(Ordering::SeqCst) {
                OPEN => {}
                how => end(value, how),
            }
        }
        value
    }

    pub(super) fn display(&self, of: &CallContext) -> Display {
        let display = || of.run.display(of.step, of.execution, of.attempt);
        let end = |display: &Display, how| {
            if how == DROPPED {
                display.retract();
            }
        };
        self.get(&self.display, display, end).clone()
    }

    pub(super) fn children(&self, of: &CallContext) -> Arc<dyn StartedChildren> {
        self.note(Asked::NUMBERS);
        let children = || Arc::clone(&of.run).children(of, self.display(of));
        Arc::clone(self.get(&self.children, children, |children, _| children.end()))
    }

    pub(super) fn cancellation(&self, of: &CallContext) -> Cancellation {
        let cancellations = of.run.cancellations();
        let lease = || cancellations.lease(of.execution);
        self.get(&self.cancellation, lease, |lease, _| cancellations.end(lease)).cancellation()
    }

    /// Notes that the attempt has succeeded. Returns its display, if it has one, which the commit ends.
    pub(super) fn commit(&self) -> Option<Display> {
        self.end.store(COMMITTED, Ordering::SeqCst);
        self.display.get().cloned()
    }

    /// Ends the values. Those of an attempt that was not committed leave nothing (S25).
    pub(super) fn end(&self, of: &CallContext) {
        let before = self.end.compare_exchange(OPEN, DROPPED, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(children) = self.children.get() {
            children.end();
        }
        if let (Ok(_), Some(display)) = (before, self.display.get()) {
            display.retract();
        }
        if let Some(buffer) = self.emitted.get() {
            buffer.close_into(&mut crate::output::Emitted::default());
        }
        if let Some(lease) = self.cancellation.get() {
            of.run.cancellations().end(lease);
        }
    }
}

/// The injectables of an attempt, for code that the step of a run-time workflow calls.
///
/// [`StepCall::injectables`] returns it. Each value is made when it is first asked for, so that an attempt pays for those
/// alone that its code takes. Clones share the values, which end with the attempt. Code that asks only after that receives
/// values that have ended.
///
/// ```
/// use serde_json::{Value, json};
/// use workflow_core::prelude::*;
/// use workflow_core::signature::{Injectables, Roles, StepCall};
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
/// use workflow_core::{RunOptions, RuntimeWorkflow};
///
/// /// A function of a user, which takes what it needs.
/// async fn charge(order: Value, with: Injectables) -> Value {
///     json!({ "order": order, "key": with.idempotency_key() })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let table = DependencyTable::builder("Orders")
///     .event(EventDef::new("Order", Roles::NONE.start()))
///     .event(EventDef::new("Charged", Roles::NONE.stop()))
///     .step(StepDef::new("charge").input(InputDef::one("Order")).output(OutputDef::event("Charged")))
///     .build()?;
/// let orders = RuntimeWorkflow::new(table, |mut call: StepCall| async move {
///     let order = call.input(0).json().cloned().unwrap_or_default();
///     let charged = charge(order, call.injectables()?).await;
///     call.emit("Charged", charged)?;
///     call.commit(())
/// });
/// let engine = Engine::builder().workflows([orders]).build()?;
/// let run = engine.start_json("Orders", "Order", json!(7), RunOptions::new().id("r")).await?;
/// assert_eq!(run.outcome_any().await?.as_json(), Some(&json!({ "order": 7, "key": "r/0/charge/1" })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Injectables {
    context: CallContext,
    taken: Arc<Taken>,
    bound: SmallVec<[Bound; 2]>,
}

impl StepCall {
    /// The injectables of this attempt as a value of their own.
    ///
    /// # Errors
    /// In a precondition, which has no children.
    pub fn injectables(&self) -> Result<Injectables, StepError> {
        let context = self.frame.context.clone();
        if context.is_of_precondition() {
            return Err(StepError::permanent(Internal::ChildrenOfPrecondition));
        }
        Ok(Injectables { context, taken: Arc::clone(self.frame.taken()), bound: bound(&self.frame) })
    }
}

impl Injectables {
    /// The display of the attempt.
    pub fn display(&self) -> Display {
        self.taken.display(&self.context)
    }

    /// The cancellation of the execution.
    pub fn cancellation(&self) -> Cancellation {
        self.taken.cancellation(&self.context)
    }

    /// The children of the attempt, without their type.
    pub(crate) fn attempt_children(&self) -> Arc<dyn StartedChildren> {
        self.taken.children(&self.context)
    }

    /// The engine that drives the run, without its type.
    pub(crate) fn engine_parts(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        self.taken.note(Asked::ENGINE);
        self.context.run.engine().ok_or_else(|| StepError::permanent(Internal::NoEngine))
    }

    /// The context of the run.
    ///
    /// # Errors
    /// If the step's definition does not declare that it [uses a context](crate::table::StepDef::uses_context).
    pub fn run_context(&self) -> Result<RunContext, StepError> {
        self.context.run_context()
    }

    /// Whether this attempt may have begun before, as [`RunInfo::may_have_begun`](crate::RunInfo::may_have_begun) says.
    pub fn may_have_begun(&self) -> bool {
        self.taken.may_have_begun
    }

    /// A text that identifies the execution, as [`RunInfo::idempotency_key`](crate::RunInfo::idempotency_key) says.
    pub fn idempotency_key(&self) -> String {
        self.taken.note(Asked::NUMBERS);
        let run = &self.context.run;
        let set = self.taken.key.get().map(|key| &**key);
        let binding = binding(set, || self.bound.clone(), run.redrives_before_end());
        key_text(run.id(), self.context.scope, run.step_name(self.context.step), &binding)
    }
}

impl CallContext {
    /// The context of the run, if the step declares that it uses one.
    pub(super) fn run_context(&self) -> Result<RunContext, StepError> {
        self.declares_context()?;
        Ok(Arc::clone(&self.run).run_context())
    }

    pub(super) fn declares_context(&self) -> Result<(), StepError> {
        let declares = self.run.uses_context(self.step);
        if declares { Ok(()) } else { Err(StepError::permanent(Internal::UndeclaredContext)) }
    }
}

impl Drop for Frame {
    /// Ends an attempt that was not committed: ends its children and retracts what it displayed (S25).
    #[inline]
    fn drop(&mut self) {
        if let Some(taken) = self.taken.get() {
            taken.end(&self.context);
        }
    }
}
