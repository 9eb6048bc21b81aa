//! `Emitter<E>`: events sent while a step runs. The buffer keeps them until the execution commits, so that a
//! failed attempt leaves none behind (S23).

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Slot, StepInput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent};
use crate::output::{Emitted, OutputForm};
use crate::spec::InputSpec;
use crate::text::{enumerated, quoted};

/// The most events that one execution can emit through its emitters.
pub(super) const MAX_EMITTED: usize = 1 << 16;

/// Emits control events from inside a step, at most 65,536 per execution.
///
/// The events enter the log when the execution commits, in the order in which they were emitted and before
/// the step's return value, all in one batch. A failed attempt emits nothing. Use [`Display`](crate::Display)
/// to show something at once.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Document { text: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line { text: String }
/// # struct Reader;
/// # impl Reader {
/// async fn split(&self, document: &Document, lines: &Emitter<Line>) -> Result<(), StepError> {
///     for text in document.text.lines() {
///         lines.emit(Line { text: text.into() })?;
///     }
///     Ok(())
/// }
/// # }
/// ```
pub struct Emitter<E> {
    buffer: Arc<EmitBuffer>,
    event: PhantomData<fn(E)>,
}

/// The reasons why an event cannot be emitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The step has returned, so its batch is closed.
    #[error("the execution has ended: events can only be emitted while the step runs")]
    Ended,
    /// The execution has emitted as many events as it may.
    #[error(
        "the execution has emitted {limit} events, which is the most one execution can: split the work over several steps"
    )]
    Full {
        /// The most events that one execution can emit: 65,536.
        limit: usize,
    },
    /// The step of a run-time workflow does not declare the event among its outputs.
    #[error("the step does not declare `{event}`: it emits {}", declared_text(declared))]
    Undeclared {
        /// The name.
        event: Arc<str>,
        /// The names of the step's outputs, sorted.
        declared: Vec<Arc<str>>,
    },
    /// The step of a run-time workflow declares the event, and not in this form.
    #[error("the step does not declare `{event}` as {form}")]
    OtherForm {
        /// The name.
        event: Arc<str>,
        /// The form in which the step emitted it.
        form: OutputForm,
    },
    /// The call is that of a precondition, which emits nothing.
    #[error("a precondition emits nothing: emit `{event}` in the step")]
    OfPrecondition {
        /// The name.
        event: Arc<str>,
    },
    /// The step is a Rust function: it returns its events.
    #[error("`{event}` is a Rust type: the step returns it")]
    RustType {
        /// The name.
        event: Arc<str>,
    },
}

fn declared_text(declared: &[Arc<str>]) -> String {
    if declared.is_empty() { "nothing".to_owned() } else { enumerated(&quoted(declared), "and") }
}

impl<E: ControlEvent> Emitter<E> {
    /// Adds an event to the batch of the execution.
    ///
    /// # Errors
    /// [`EmitError::Ended`] once the step has returned, [`EmitError::Full`] after 65,536 events.
    pub fn emit(&self, event: E) -> Result<(), EmitError> {
        self.buffer.push(AnyEvent::new(event))
    }

    fn bound(slot: &Slot<'_>) -> Self {
        Self { buffer: Arc::clone(slot.emit_buffer()), event: PhantomData }
    }
}

impl<E> Clone for Emitter<E> {
    fn clone(&self) -> Self {
        Self { buffer: Arc::clone(&self.buffer), event: PhantomData }
    }
}

impl<E> fmt::Debug for Emitter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Emitter({})", std::any::type_name::<E>())
    }
}

/// The events of one execution's emitters; `None` once the execution has ended.
pub(crate) struct EmitBuffer(Mutex<Option<Vec<AnyEvent>>>);

impl Default for EmitBuffer {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl EmitBuffer {
    fn push(&self, event: AnyEvent) -> Result<(), EmitError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let events = open.as_mut().ok_or(EmitError::Ended)?;
        if events.len() == MAX_EMITTED {
            return Err(EmitError::Full { limit: MAX_EMITTED });
        }
        events.push(event);
        Ok(())
    }

    pub(crate) fn close_into(&self, emitted: &mut Emitted) {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for event in events.into_iter().flatten() {
            emitted.push(event);
        }
    }
}

impl fmt::Debug for EmitBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmitBuffer")
    }
}

impl<E: ControlEvent> StepInput for Emitter<E> {
    const SPEC: InputSpec = InputSpec::emitter::<E>();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self::bound(&slot))
    }
}

impl<E: ControlEvent> StepInput for &Emitter<E> {
    const SPEC: InputSpec = InputSpec::emitter::<E>();
    type Item<'a> = &'a Emitter<E>;

    fn fill(slot: Slot<'_>) -> Result<&Emitter<E>, StepError> {
        let emitter = Emitter::bound(&slot);
        Ok(slot.keep(emitter))
    }
}
