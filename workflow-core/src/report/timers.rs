//! The timers of a run, as its handles see them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::id::{ScopeId, Seq, TimerId};

/// A timer that is pending: what [`RunHandle::timers`](crate::RunHandle::timers) lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingTimer {
    /// Which.
    pub timer: TimerId,
    /// The step that has set it.
    pub step: Arc<str>,
    /// The wire name of the event that enters the log when it fires.
    pub event: Arc<str>,
    /// The scope that the event will be of.
    pub scope: ScopeId,
    /// For one that closes a request: the request's position.
    pub request: Option<Seq>,
    /// When it is due, by the engine's clock.
    pub due: SystemTime,
    /// The same from when the first event entered the log; 0 if it was due before.
    pub after: Duration,
}

impl fmt::Display for PendingTimer {
    /// Without a date, which is for people to choose a calendar and a place for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timer, step, event, after, .. } = self;
        match self.request {
            Some(request) => write!(f, "{request} of `{step}` expires")?,
            None => write!(f, "timer {timer} of `{step}` fires `{event}`")?,
        }
        write!(f, " {after:?} after the run began")
    }
}
