//! Work that blocks a thread or computes for long, off the threads on which runs are driven.

use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::{Dispatch, Span, dispatcher};

use crate::cancel::{Cancellation, CancellationSource};

/// Why work was not done on a thread of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockingError {
    /// There is no tokio runtime, whose threads it would be done on.
    #[error("no tokio runtime: `blocking` does its work on one's threads, so drive the run from within one")]
    NoRuntime,
    /// The runtime was shut down before the work began.
    #[error("the tokio runtime was shut down before the blocking work began")]
    ShutDown,
}

/// Does work that blocks or computes, on a thread of tokio's blocking pool, and returns what came of it. The run goes
/// on meanwhile: a step never keeps others waiting by it.
///
/// The work is given a [`Cancellation`] of its own, which says so when the returned future is dropped, as it is when
/// the execution that awaits it is dropped: the run was cancelled or has ended, its branch was dropped, or the
/// attempt took longer than its step's `timeout`. Work that has not begun by then never begins. Work that has begun and
/// does not ask goes on to its end on its thread, where nobody can stop it, and what it returns is dropped; it keeps its
/// place in tokio's pool, and a runtime that is shut down may wait for it. Nothing of it enters the log.
///
/// It lies in the tracing span in which the future is first polled, the step's own. A panic in it goes on in the step,
/// and is the execution's failure.
///
/// # Errors
/// [`BlockingError::NoRuntime`] outside of a tokio runtime, [`BlockingError::ShutDown`] if it is shut down. An error
/// of the work itself is what it returns: `blocking(…).await??`.
///
/// ```
/// use workflow_core::{Cancelled, blocking, prelude::*};
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct Numbers { up_to: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Sum { sum: u64 }
///
/// struct Adding;
///
/// #[workflow]
/// impl Adding {
///     #[step]
///     async fn add(&self, numbers: &Numbers) -> Result<Sum, StepError> {
///         let up_to = numbers.up_to;
///         let sum = blocking(move |cancellation| {
///             let mut sum = 0;
///             for number in 1..=up_to {
///                 cancellation.check()?;
///                 sum += number;
///             }
///             Ok::<_, Cancelled>(sum)
///         });
///         Ok(Sum { sum: sum.await?? })
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), RunError> {
/// assert_eq!(Adding.run(Numbers { up_to: 100 }).await?, Sum { sum: 5_050 });
/// # Ok(())
/// # }
/// ```
pub async fn blocking<T, F>(work: F) -> Result<T, BlockingError>
where
    F: FnOnce(&Cancellation) -> T + Send + 'static,
    T: Send + 'static,
{
    let runtime = Handle::try_current().map_err(|_| BlockingError::NoRuntime)?;
    let (cancellation, source) = Cancellation::detached();
    let (span, dispatch) = (Span::current(), dispatcher::get_default(Dispatch::clone));
    let task = runtime.spawn_blocking(move || {
        dispatcher::with_default(&dispatch, || span.in_scope(|| work(&cancellation)))
    });
    let _awaited = Awaited { task: task.abort_handle(), _source: source };
    task.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => BlockingError::ShutDown,
    })
}

/// Somebody waits for the work.
struct Awaited {
    task: AbortHandle,
    _source: CancellationSource,
}

impl Drop for Awaited {
    /// Takes the work out of the queue if it still waits there; otherwise this does nothing.
    fn drop(&mut self) {
        self.task.abort();
    }
}
