//! Replay of events that no execution committed: from outside, replies, timers and caught failures. Each
//! event must get the sequence number and the scope that the journal has.
//!
//! ```text
//!  cause in the record        batch                         checked before
//!  Outside                    Received
//!  Reply 4                    Replied, with request 4       request 4 is open
//!  Timer 1                    Fired                         timer 1 is pending
//!  Expired 4                  Fired, the timer of 4         request 4 has a timer
//!  Failure x2                 none: logged with the failure the next derived entry is this one
//!  Execution x2               none: never without its success
//! ```
//!
//! Invariant: the checks come before the batch, so that a contradiction has a message that names its reason.
//! `apply` alone would say only that the run refuses the batch.
//!
//! Example: a reply to a request that a changed step does not emit any more is a contradiction at the
//! position of the reply.

use std::sync::Arc;
use std::time::SystemTime;

use super::{Replay, ReplayResult, caused};
use crate::event::AnyEvent;
use crate::id::{Origin, ScopeId, Seq};
use crate::run::state::{Applied, Batch};
use crate::scheduler::Cause;
use crate::store::RecordedEvent;

impl Replay {
    /// Applies the batch that an `EventLogged` record stands for, and checks the event's place in the log.
    pub(super) fn logged(
        &mut self,
        cause: Cause,
        place: (Seq, ScopeId),
        recorded: &RecordedEvent,
        (origin, at): (Option<&Origin>, SystemTime),
    ) -> ReplayResult {
        if let Cause::Failure(_) | Cause::Execution(_) = cause {
            // Events of a success were read with it, so an `Execution` cause here has no success before it.
            return self.caught(cause, place);
        }
        // Entries that follow by themselves come before any new event.
        self.complete();
        let index = self.event_named(recorded.name())?;
        let origin = origin.cloned().map(Arc::new);
        let batch = match cause {
            Cause::Reply(request) => {
                if !self.state.scheduler.open_requests().any(|(seq, _)| seq == request) {
                    return Err(format!("{request} got a reply, and would not be open now"));
                }
                let event = self.decoded(recorded, index, Some(request))?;
                Batch::Replied { request, event, origin }
            }
            Cause::Timer { timer, .. } => {
                if self.state.scheduler.board().awaited.timer(timer).is_none() {
                    return Err(format!("timer {timer} fired, and would not be pending now"));
                }
                Batch::Fired { timer, event: self.decoded(recorded, index, None)? }
            }
            Cause::Expired(request) => {
                let timer = self.expiry_of(request).map(|entry| entry.timer);
                let timer = timer.ok_or_else(|| format!("{request} expired, and would have no timer now"))?;
                Batch::Fired { timer, event: self.decoded(recorded, index, Some(request))? }
            }
            _ => {
                let event: AnyEvent = self.decoded(recorded, index, None)?;
                Batch::Received { event, index, origin }
            }
        };
        let applied = self.apply(batch, at)?;
        let Applied::Logged(entered) = applied else { return Ok(()) };
        match entered.events().first() {
            // The journal decides the order: another place means that earlier records led elsewhere.
            Some(entry) if (entry.seq, entry.scope, entry.event) == (place.0, place.1, index) => Ok(()),
            _ => Err("it would be logged elsewhere now".into()),
        }
    }

    /// Checks an event that is the failure of an execution: the state has logged it already.
    fn caught(&mut self, cause: Cause, (seq, scope): (Seq, ScopeId)) -> ReplayResult {
        let derived = self.derived.pop_front().and_then(|seq| Some((seq, self.state.log.get(seq)?)));
        match derived {
            Some((at, record)) if at == seq && record.scope == scope && record.cause == cause => Ok(()),
            _ => Err(format!("{}, and would not be logged now", caused(cause))),
        }
    }
}
