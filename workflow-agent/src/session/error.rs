//! Failures of sessions.

use std::sync::Arc;

use workflow_core::errors::{ContextError, chain};
use workflow_core::store::StoreError;
use workflow_core::{ResumeError, SendError, StartError};

use crate::agent::PromptError;

/// Why a session refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A run of the session works, and the session refuses messages meanwhile; or 64 messages wait already; or the session
    /// is being copied from another one.
    #[error(
        "session `{session}` is busy: watch and answer `Session::open_run`, or say it with `WhenBusy::Wait` or \
         `WhenBusy::Steer`; later if 64 messages wait already, or if a `fork` is to be repeated first"
    )]
    Busy {
        /// The session.
        session: Arc<str>,
    },
    /// The prompt exceeds a bound.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The engine does not host the agent.
    #[error("the engine does not host agent `{agent}`: add `.agent(…)` to its builder")]
    NotHosted {
        /// The name of the agent.
        agent: Arc<str>,
    },
    /// The run could not be started.
    #[error("the run could not be started: {}", chain(.0))]
    Start(#[source] StartError),
    /// The run that works could not be attached to.
    #[error("the run of the session could not be attached to: {}", chain(.0))]
    Resume(#[source] ResumeError),
    /// The run that works did not take the message.
    #[error("the run of the session did not take the message: {}", chain(.0))]
    Send(#[source] SendError),
    /// The context of the thread failed.
    #[error("the context of the thread failed: {}", chain(.0))]
    Context(#[from] ContextError),
    /// The store of runs failed.
    #[error("the store failed: {}", chain(.0))]
    Store(#[from] StoreError),
    /// There is a session with the id of a fork.
    #[error("there is a session `{session}` already")]
    Exists {
        /// The session.
        session: Arc<str>,
    },
}
