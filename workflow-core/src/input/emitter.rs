//! `Emitter<E>`: events sent while a step runs. They are kept until the execution commits, so that a
//! failed one leaves nothing behind (S23).

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::{InputSpec, Slot, StepInput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent};
use crate::output::Emitted;

/// How many events one execution can emit through its emitters.
const MAX_EMITTED: usize = 1 << 16;

/// Emits control events from inside a step, as many as it likes up to 65,536 per execution.
///
/// They enter the log when the execution commits, in the order in which they were emitted and before what
/// the step returns, all in one batch; an execution that fails emits nothing. To show something at
/// once, use [`Display`](crate::Display).
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

/// Why an event could not be emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The execution has ended; its batch is closed.
    #[error("the execution has ended: events can only be emitted while the step runs")]
    Ended,
    /// The bound of events per execution is reached.
    #[error(
        "the execution has emitted {limit} events, which is the most one execution can: split the work over several steps"
    )]
    Full {
        /// How many events one execution can emit.
        limit: usize,
    },
}

impl<E: ControlEvent> Emitter<E> {
    /// Adds an event to what the execution will commit.
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

/// What the emitters of one execution hold; `None` once it has ended.
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
