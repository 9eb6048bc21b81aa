//! Work that blocks a thread or computes for long, outside of the threads that drive runs.

use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::{Dispatch, Span, dispatcher};

use crate::cancel::{Cancellation, CancellationSource};

/// Why work was not done on a blocking thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockingError {
    /// There is no tokio runtime with blocking threads.
    #[error("no tokio runtime: `blocking` does its work on one's threads, so drive the run from within one")]
    NoRuntime,
    /// The runtime was shut down before the work began.
    #[error("the tokio runtime was shut down before the blocking work began")]
    ShutDown,
}

/// Runs blocking or long computing work on a thread of tokio's blocking pool, and returns its result.
///
/// The run continues meanwhile, so the step delays no other.
///
/// The work gets a [`Cancellation`] of its own, which fires when the returned future is dropped. The run drops it with
/// the execution that awaits it: after a cancel, at the run's end, with its branch, or after the step's `timeout`. Work
/// that has not begun by then never begins. Work that has begun and does not check continues to its end, because a
/// thread cannot be stopped; its result is dropped. It keeps its thread of the pool meanwhile, and a runtime that shuts
/// down may wait for it. Nothing of it enters the log.
///
/// The work runs in the tracing span of the future's first poll, the step's own. A panic of the work continues in the
/// step, and is the execution's failure.
///
/// # Errors
/// [`BlockingError::NoRuntime`] outside of a tokio runtime, [`BlockingError::ShutDown`] if it is shut down. An error of
/// the work is part of its result: `blocking(…).await??`.
///
/// ```
/// use workflow_core::{blocking, prelude::*};
/// use workflow_core::errors::Cancelled;
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

/// The returned future: its drop cancels the work.
struct Awaited {
    task: AbortHandle,
    _source: CancellationSource,
}

impl Drop for Awaited {
    /// Takes the work out of the queue if it still waits there.
    fn drop(&mut self) {
        self.task.abort();
    }
}
