//! Replay of events that no execution committed: from outside, replies, timers and caught failures. Each
//! event must get the sequence number and the scope that the journal has.

use std::time::SystemTime;

use super::{Replay, ReplayResult, caused};
use crate::event::AnyEvent;
use crate::id::{ScopeId, Seq};
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
        at: SystemTime,
    ) -> ReplayResult {
        if let Cause::Failure(_) | Cause::Execution(_) = cause {
            return self.caught(cause, place);
        }
        // Entries that follow by themselves come before any new event.
        self.complete();
        let index = self.event_named(recorded.name())?;
        let batch = match cause {
            Cause::Reply(request) => {
                if !self.state.scheduler.open_requests().any(|(seq, _)| seq == request) {
                    return Err(format!("{request} got a reply, and would not be open now"));
                }
                Batch::Replied { request, event: self.decoded(recorded, index, Some(request))? }
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
                Batch::Received { event, index }
            }
        };
        let applied = self.apply(batch, at)?;
        let Applied::Logged(entered) = applied else { return Ok(()) };
        match entered.events().first() {
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
