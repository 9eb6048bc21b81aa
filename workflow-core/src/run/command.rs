//! Commands from handles: sends, replies, cancels and questions about the run's state.

use std::collections::HashMap;
use std::time::SystemTime;

use super::RunShared;
use super::driver::Driver;
use super::handle::{Command, MakeReply};
use super::state::{Batch, RunState};
use crate::event::AnyEvent;
use crate::id::Seq;
use crate::outcome::SendError;
use crate::report::OpenRequest;
use crate::scheduler::Cause;

impl Driver {
    pub(super) fn handle_command(&mut self, command: Command) {
        // A handle that no longer listens has no use for the answer.
        match command {
            Command::Send { event, index, done } => {
                self.commit_in_turn(Batch::Received { event, index }, Some(done));
            }
            Command::Reply { request, make, done } => {
                match reply(&self.committer.shared, &self.committer.state, request, make) {
                    Ok(event) => self.commit_in_turn(Batch::Replied { request, event }, Some(done)),
                    Err(error) => drop(done.send(Err(error))),
                }
            }
            Command::Timers { done } => {
                let timers = self.view().timers();
                self.committer.answer_when_written(done, timers, |done| Command::Timers { done });
            }
            Command::Requests { done } => {
                let requests = open_requests(&self.committer.state, self.committer.clock.began_at);
                self.committer.answer_when_written(done, requests, |done| Command::Requests { done });
            }
            Command::Cancel { reason, done } => {
                // A cancel after the end has no answer: the handle waits for the end and reports it.
                if self.cancel(reason) {
                    let _ = done.send(());
                }
            }
            Command::Explain { done } => {
                let explanation = self.view().explain();
                self.committer.answer_when_written(done, explanation, |done| Command::Explain { done });
            }
            Command::Report { done } => {
                let report = self.view().report();
                self.committer.answer_when_written(done, report, |done| Command::Report { done });
            }
        }
    }
}

/// The reply as an event for the log.
fn reply(run: &RunShared, state: &RunState, request: Seq, make: MakeReply) -> Result<AnyEvent, SendError> {
    if let Some(end) = state.end() {
        return Err(SendError::Ended { run: run.id.clone(), status: end.into() });
    }
    let is_open = state.scheduler.open_requests().any(|(seq, _)| seq == request);
    let asked = state.log.get(request).filter(|_| is_open);
    let asked = asked.ok_or_else(|| why_not_open(state, request))?;
    let reply = make(&asked.event)?;
    reply.check_size(run.common.settings.events.most_bytes).map_err(SendError::TooLarge)?;
    Ok(reply)
}

/// The reason why a request takes no reply. O(events since the request), on this error path only.
pub(super) fn why_not_open(state: &RunState, request: Seq) -> SendError {
    for record in state.log.since(request) {
        match record.cause {
            Cause::Reply(seq) if seq == request => return SendError::Answered { request },
            Cause::Expired(seq) if seq == request => return SendError::Expired { request },
            _ => {}
        }
    }
    SendError::NotOpen { request }
}

fn open_requests(state: &RunState, began_at: SystemTime) -> Vec<OpenRequest> {
    let timers = state.timers.pending(&state.scheduler);
    let expiries: HashMap<Seq, SystemTime> =
        timers.filter_map(|(due, timer)| Some((timer.request?, due))).collect();
    let open = state.scheduler.open_requests().filter_map(|(seq, _)| {
        let record = state.log.get(seq)?;
        Some(OpenRequest {
            seq,
            event: record.event.clone(),
            asked_at: began_at + record.at,
            expires_at: expiries.get(&seq).copied(),
        })
    });
    open.collect()
}
