//! The timers of a run, as its handles see them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::id::{ScopeId, Seq, TimerId};

/// A pending timer, as [`AnyRun::timers`](crate::AnyRun::timers) lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingTimer {
    /// The id of the timer.
    pub timer: TimerId,
    /// The step that set it.
    pub step: Arc<str>,
    /// The wire name of the event that enters the log when it fires.
    pub event: Arc<str>,
    /// The scope of that event.
    pub scope: ScopeId,
    /// The sequence number of the request, if the timer expires one.
    pub request: Option<Seq>,
    /// When the timer is due, by the engine's clock.
    #[serde(serialize_with = "crate::json::rfc3339::serialize")]
    pub due: SystemTime,
    /// The due time from the moment at which the first event entered the log; 0 if it was due before.
    pub after: Duration,
}

impl fmt::Display for PendingTimer {
    /// Without a date, because the caller knows the reader's calendar and time zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timer, step, event, after, .. } = self;
        match self.request {
            Some(request) => write!(f, "{request} of `{step}` expires")?,
            None => write!(f, "timer {timer} of `{step}` fires `{event}`")?,
        }
        write!(f, " {after:?} after the run began")
    }
}
