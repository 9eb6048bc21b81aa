//! What arrives at a run: ended executions, answered preconditions, and commands from its handles.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::drive::{Received, Run};
use super::handle::{Command, MakeReply};
use super::in_flight::{Arrived, Due, StepResult};
use super::request::OpenRequest;
use super::spans::Ended;
use crate::error::{SendError, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, Seq};
use crate::observe::Observed;
use crate::retry::NotRetried;
use crate::scheduler::{Cause, Fact, Start};
use crate::table::StepIndex;

impl Run {
    /// Takes in what arrived; says which execution begins with it, if that is the next thing to be done.
    pub(super) fn arrive(&mut self, arrived: Arrived) -> Option<Start> {
        match arrived {
            Arrived::Execution(execution, result) => return self.executed(execution, result),
            Arrived::Check(candidate, answer) => self.answered(candidate, answer),
            Arrived::Dropped => self.dropping -= 1,
            Arrived::Due(Due::Retry(execution)) => self.retry_due(execution),
            Arrived::Due(Due::Timer(at)) => self.timers.rings(at),
            Arrived::Due(Due::Timeout) => self.time_ran_out(),
        }
        None
    }

    /// An execution has returned, or failed.
    pub(super) fn executed(&mut self, execution: ExecutionId, mut result: StepResult) -> Option<Start> {
        if !self.droppable.is_empty() {
            self.droppable.remove(&execution);
        }
        // What was dropped while its result waited here has nothing to say any more.
        if !self.scheduler.is_running(execution) {
            return None;
        }
        let step = self.trace.step_of(execution)?;
        if let Ok(next) = self.commit_at_once(execution, step, &mut result) {
            return next;
        }
        let emissions = result.and_then(|mut emitted| {
            let emissions = self.emissions(step, &emitted).map_err(StepError::from)?;
            emitted.check_events(self.shared.common.event_check())?;
            self.check_timers(&emitted)?;
            Ok((emitted, emissions))
        });
        match emissions {
            Ok((mut emitted, emissions)) => {
                emitted.stand();
                self.trace.returned(execution, self.clock.now);
                self.committing = Some((execution, emitted));
                self.scheduler.apply(Fact::ExecutionSucceeded { execution, emissions });
            }
            Err(error) => {
                let error = self.host.rules().classified(error);
                self.attempt_failed(execution, step, error);
            }
        }
        None
    }

    /// An execution's batch is accepted.
    pub(super) fn note_success(&mut self, execution: ExecutionId) {
        if let Some(step) = self.trace.succeeded(execution) {
            self.tell_success(execution, step);
        }
    }

    #[inline]
    pub(super) fn tell_success(&mut self, execution: ExecutionId, step: StepIndex) {
        self.note_end(execution, step, Ended::Succeeded);
        let name = &self.host.table.step(step).name;
        self.shared.tell(|| Observed::ExecutionSucceeded {
            execution,
            step: name.clone(),
            took: self.trace.took(execution),
        });
    }

    /// Tells spans and metrics of the end of an execution.
    #[inline]
    pub(super) fn note_end(&mut self, execution: ExecutionId, step: StepIndex, ended: Ended<'_>) {
        self.spans.end(execution, ended);
        let took = || self.trace.took(execution);
        self.meter.executed(&self.host.table.step(step).name, ended, took);
    }

    /// The last attempt of an execution failed.
    pub(super) fn failed(
        &mut self,
        execution: ExecutionId,
        step: StepIndex,
        error: StepError,
        not_retried: NotRetried,
    ) {
        self.trace.failed(execution, self.clock.now, &error, not_retried);
        self.note_end(execution, step, Ended::Failed(&error));
        let name = &self.host.table.step(step).name;
        self.shared.tell(|| Observed::ExecutionFailed {
            execution,
            step: name.clone(),
            class: error.class(),
            error: error.to_string(),
            not_retried,
            took: self.trace.took(execution),
        });
        self.record_failure(execution, &error, not_retried);
        let row = self.host.table.step(step);
        if row.failed.is_some() || !row.policy.continue_on_error {
            self.failures.insert(execution, error);
        }
        self.scheduler.apply(Fact::ExecutionFailed { execution });
    }

    pub(super) fn obey(&mut self, command: Command) {
        // A handle that no longer listens has no use for the answer.
        match command {
            Command::Send { event, index, done } => {
                self.receive(Received { event, done: Some(done) }, Fact::EventReceived { event: index });
            }
            Command::Reply { request, make, done } => match self.reply(request, make) {
                Ok(event) => {
                    self.receive(Received { event, done: Some(done) }, Fact::ReplyReceived { request });
                }
                Err(error) => drop(done.send(Err(error))),
            },
            Command::Timers { done } => {
                let _ = done.send(self.view().timers());
            }
            Command::Requests { done } => {
                let _ = done.send(self.open_requests());
            }
            Command::Cancel { reason, done } => {
                // Without an answer the handle waits for the end and is told of it.
                if self.cancel(reason) {
                    let _ = done.send(());
                }
            }
            Command::Explain { done } => {
                let _ = done.send(self.explain());
            }
            Command::Report { done } => {
                let _ = done.send(self.view().report());
            }
        }
    }

    /// Ends the run, if it has not ended and is not about to; says whether it did.
    pub(super) fn cancel(&mut self, reason: Arc<str>) -> bool {
        if self.scheduler.end().is_some() {
            return false;
        }
        self.scheduler.apply(Fact::CancelRequested);
        let is_cancelled = self.scheduler.end().is_some();
        if is_cancelled {
            self.cancel_reason = Some(reason);
        }
        is_cancelled
    }

    /// Takes an event from outside or from a timer; the scheduler's answer is an action of its own.
    pub(super) fn receive(&mut self, received: Received, fact: Fact) {
        self.wake();
        self.receiving.push_back(received);
        self.scheduler.apply(fact);
    }

    /// The reply as an event for the log.
    fn reply(&self, request: Seq, make: MakeReply) -> Result<AnyEvent, SendError> {
        if let Some(end) = self.scheduler.end() {
            return Err(SendError::Ended { run: self.shared.id.clone(), status: end.into() });
        }
        let is_open = self.scheduler.open_requests().any(|(seq, _)| seq == request);
        let asked = self.log.get(request).filter(|_| is_open).ok_or_else(|| self.why_not_open(request))?;
        let reply = make(&asked.event)?;
        reply.check_size(self.shared.common.max_event_bytes).map_err(SendError::TooLarge)?;
        Ok(reply)
    }

    /// O(events since the request): only who replies in vain asks.
    fn why_not_open(&self, request: Seq) -> SendError {
        let since = self.log.since(request).map(|record| record.cause);
        // What is still on its way into the log has closed it too.
        for cause in since.chain(self.journal.iter().flat_map(|journal| journal.entering())) {
            match cause {
                Cause::Reply(seq) if seq == request => return SendError::Answered { request },
                Cause::Expired(seq) if seq == request => return SendError::Expired { request },
                _ => {}
            }
        }
        SendError::NotOpen { request }
    }

    /// What came from outside or from a timer was refused (S33).
    pub(super) fn refuse_received(&mut self) {
        // Without an answer the sender waits for the end, which may still be on its way, and is told of it.
        self.receiving.pop_front();
    }

    fn open_requests(&self) -> Vec<OpenRequest> {
        let timers = self.timers.pending(&self.scheduler);
        let expiries: HashMap<Seq, SystemTime> =
            timers.filter_map(|(due, timer)| Some((timer.request?, due))).collect();
        let requests = self.scheduler.open_requests();
        let open = requests.filter_map(|(seq, _)| {
            let record = self.log.get(seq)?;
            Some(OpenRequest {
                seq,
                event: record.event.clone(),
                asked_at: self.clock.began_at + record.at,
                expires_at: expiries.get(&seq).copied(),
            })
        });
        open.collect()
    }
}
