//! Cancelling a run by dropping a value. A drop can neither wait nor fail, so it is a signal beside the run's
//! mailbox, which may be full.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::RunHandle;

/// A handle that cancels its run when it is dropped.
///
/// Use it for a run that makes sense only while a caller waits for it. [`RunHandle::cancel_on_drop`] makes
/// one.
///
/// The guard can be dropped anywhere, also outside of a runtime and while a panic unwinds. Dropping it
/// neither waits nor panics, and does nothing to a run that has ended. The run reads the cancel before its
/// next input, and ends as it does by [`AnyRun::cancel`](crate::AnyRun::cancel), unless it ends by itself before.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Open;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(external)]
/// # struct Note;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Closed;
/// # struct Desk;
/// # #[workflow]
/// # impl Desk {
/// #     #[step]
/// #     async fn close(&self, _open: &Open, _note: &Note) -> Closed {
/// #         Closed
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Desk).build()?;
/// let run = engine.start::<Desk>(Open).await?;
///
/// let guard = run.clone().cancel_on_drop("the client hung up");
/// guard.settled().await; // it is a handle too
/// drop(guard);
/// assert_eq!(run.outcome().await.unwrap_err().to_string(), "the run was cancelled: the client hung up");
///
/// let run = engine.start::<Desk>(Open).await?.cancel_on_drop("the client hung up").disarm();
/// run.send(Note).await?; // nothing cancels the run any more
/// assert_eq!(run.outcome().await?, Closed);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it cancels the run"]
pub struct CancelGuard<W> {
    handle: RunHandle<W>,
    /// `None` once the guard is disarmed.
    reason: Option<Arc<str>>,
}

impl<W> RunHandle<W> {
    /// Turns the handle into a guard that cancels the run when it is dropped.
    ///
    /// [`disarm`](CancelGuard::disarm) turns it back. If several callers cancel a run, the first one gives
    /// the reason.
    pub fn cancel_on_drop(self, reason: impl Into<Arc<str>>) -> CancelGuard<W> {
        CancelGuard { handle: self, reason: Some(reason.into()) }
    }
}

impl<W> CancelGuard<W> {
    /// Turns the guard back into a handle, without cancelling the run.
    pub fn disarm(mut self) -> RunHandle<W> {
        self.reason = None;
        self.handle.clone()
    }
}

impl<W> Deref for CancelGuard<W> {
    type Target = RunHandle<W>;

    fn deref(&self) -> &RunHandle<W> {
        &self.handle
    }
}

impl<W> Drop for CancelGuard<W> {
    fn drop(&mut self) {
        if let Some(reason) = &self.reason {
            self.handle.shared.cancel(reason);
        }
    }
}

impl<W> fmt::Debug for CancelGuard<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelGuard").field("handle", &self.handle).field("reason", &self.reason).finish()
    }
}
