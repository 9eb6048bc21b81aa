//! What entered the log: the scheduler is told why, and has to want in the log next what the journal has there.

use std::time::SystemTime;

use super::batch::Logged;
use super::{Replay, Replayed};
use crate::event::AnyEvent;
use crate::id::{ScopeId, Seq};
use crate::run::timers::Setting;
use crate::scheduler::{Action, Cause, Entry, Fact, TimerEntry};

impl Replay<'_> {
    /// An event that no execution committed.
    pub(super) fn event(&mut self, cause: Cause, logged: &Logged<'_>) -> Replayed {
        let Logged { event: recorded, .. } = *logged;
        let event = match cause {
            Cause::Outside => {
                let index = self.event_named(recorded.name())?;
                let event = self.decoded(recorded, index, None)?;
                self.now = self.run.clock.now;
                self.run.scheduler.apply(Fact::EventReceived { event: index });
                event
            }
            Cause::Reply(request) => {
                let is_open =
                    |replay: &Self| replay.run.scheduler.open_requests().any(|(seq, _)| seq == request);
                if !self.until(is_open)? {
                    return Err(format!("somebody replied to {request}, which asks nobody any more"));
                }
                let event = self.decoded(recorded, self.event_named(recorded.name())?, Some(request))?;
                self.run.scheduler.apply(Fact::ReplyReceived { request });
                event
            }
            Cause::Timer { timer, .. } => {
                if !self.until(|replay| replay.run.scheduler.timer(timer).is_some())? {
                    return Err(format!("timer {timer} fired, which nobody has set"));
                }
                let event = self.decoded(recorded, self.event_named(recorded.name())?, None)?;
                self.run.scheduler.apply(Fact::TimerFired { timer });
                event
            }
            Cause::Expired(request) => {
                let closes = |timer: &&TimerEntry| timer.request == Some(request);
                if !self.until(|replay| replay.run.scheduler.timers().any(|timer| closes(&timer)))? {
                    return Err(format!("{request} expired, which never does any more"));
                }
                let timer = self.run.scheduler.timers().find(closes).map(|entry| entry.timer);
                let timer = timer.ok_or("no timer closes the request")?;
                let event = self.decoded(recorded, self.event_named(recorded.name())?, Some(request))?;
                self.run.scheduler.apply(Fact::TimerFired { timer });
                event
            }
            Cause::Failure(execution) => {
                let is_it = |due: &Action| matches!(due, Action::Append { cause: of, .. } if *of == cause);
                if !self.until(|replay| replay.due.front().is_some_and(is_it))? {
                    return Err(format!("the failure of {execution} was caught, and would not be any more"));
                }
                self.run.failed_event(execution).ok_or("nothing has failed")?
            }
            Cause::Execution(execution) => return Err(format!("{execution} emitted before it ended")),
        };
        self.append(cause, &[(logged.seq, logged.scope, event)], Vec::new())
    }

    /// What the scheduler wants in the log next is what the journal has.
    pub(super) fn append(
        &mut self,
        cause: Cause,
        events: &[(Seq, ScopeId, AnyEvent)],
        timers: Vec<(SystemTime, AnyEvent)>,
    ) -> Replayed {
        self.drain()?;
        let (entries, set) = match self.due.pop_front() {
            Some(Action::Append { cause: due, entries, timers }) if due == cause => (entries, timers),
            _ => return Err("something else would be logged now".into()),
        };
        let agree = |(entry, (seq, scope, _)): (&Entry, &(Seq, ScopeId, AnyEvent))| {
            entry.seq == *seq && entry.scope == *scope
        };
        if entries.len() != events.len()
            || !entries.iter().zip(events).all(agree)
            || set.len() != timers.len()
        {
            return Err("it would be logged elsewhere now".into());
        }
        if let Cause::Execution(execution) = cause {
            self.run.trace.succeeded(execution);
            self.run.trace.emitted(execution, &entries);
            self.run.note_branches(execution, &entries);
        }
        if let (Cause::Failure(execution), Some(entry)) = (cause, entries.first()) {
            self.run.trace.caught(execution, entry.seq);
        }
        let run = &mut *self.run;
        for (entry, (_, _, event)) in entries.iter().zip(events) {
            run.log.append(&run.host.table, *entry, event.clone(), cause, run.clock.now);
        }
        let settings = set.into_iter().zip(timers);
        let settings = settings.map(|(entry, (due, event))| Setting { entry, due, event });
        self.unconfirmed.push_back((self.run.clock.now, settings.collect()));
        Ok(())
    }

    /// What a fan-out left behind.
    pub(super) fn gathered(&mut self, seq: Seq, scope: ScopeId, fan_out: &str) -> Replayed {
        let is_due = |replay: &Self| matches!(replay.due.front(), Some(Action::AppendGathered { .. }));
        if !self.until(is_due)? {
            return Err(format!("`{fan_out}` was logged, and would not be now"));
        }
        let Some(Action::AppendGathered { entry, group }) = self.due.pop_front() else { return Ok(()) };
        if (entry.seq, entry.scope) != (seq, scope) {
            return Err(format!("`{fan_out}` was logged, and would be logged elsewhere now"));
        }
        let event = self.run.gathered(&group);
        let run = &mut *self.run;
        run.log.append(&run.host.table, entry, event, Cause::Outside, run.clock.now);
        self.unconfirmed.push_back((self.run.clock.now, Vec::new()));
        Ok(())
    }
}
