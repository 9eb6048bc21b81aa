//! Cancelling a run by dropping a value. A drop can neither wait nor fail, so it does not go through the run's
//! mailbox, which may be full: it is a signal beside it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::RunHandle;

/// A handle that cancels its run when it is dropped: for a run that only makes sense while somebody waits for it.
/// [`RunHandle::cancel_on_drop`] makes one.
///
/// It can be dropped anywhere, also outside of a runtime and while it unwinds from a panic: it neither waits nor
/// panics, and a run that has ended by then is left as it is. The run notices before it takes in what comes next, and
/// ends as by [`RunHandle::cancel`], unless it ends by itself before.
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
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it cancels the run"]
pub struct CancelGuard<W> {
    handle: RunHandle<W>,
    /// None once it is disarmed.
    reason: Option<Arc<str>>,
}

impl<W> RunHandle<W> {
    /// Makes the handle one that cancels the run when it is dropped, until it is
    /// [disarmed](CancelGuard::disarm). Of several that cancel a run the first gives the reason.
    pub fn cancel_on_drop(self, reason: impl Into<Arc<str>>) -> CancelGuard<W> {
        CancelGuard { handle: self, reason: Some(reason.into()) }
    }
}

impl<W> CancelGuard<W> {
    /// Gives the handle back, whose drop leaves the run alone.
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
