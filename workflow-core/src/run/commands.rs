//! The commands of handles, as a run carries them out.
//!
//! ```text
//! handle ─ mailbox ─▶ handle_command ─┬─▶ batch ─▶ the store has it ─▶ answer
//!                                     ├─▶ question ─▶ the store has what its answer says ─▶ answer
//!                                     └─▶ known by its origin: answered like the first time
//! ```

use std::sync::Arc;

use tokio::sync::oneshot;

use super::any_run::{Command, MakeReply, ReplyTarget};
use super::child_store_failure::failure_of;
use super::commit::Committer;
use super::driver::{Driver, open_requests, why_not_open};
use super::state::Batch;
use crate::event::AnyEvent;
use crate::id::{Origin, RunStatus, Seq};
use crate::outcome::SendError;
use crate::table::EventIndex;

impl Driver {
    pub(super) fn handle_command(&mut self, command: Command) {
        match command {
            Command::By(by) => {
                let (origin, command) = *by;
                if self.committer.state.knows(&origin) {
                    self.repeat(origin, command);
                } else {
                    self.handle_command_of(command, Some(origin));
                }
            }
            command => self.handle_command_of(command, None),
        }
    }

    /// Answers a command whose act the journal has, or will have before the answer (S62).
    fn repeat(&mut self, origin: Arc<Origin>, command: Command) {
        let again = move |command| Command::By(Box::new((origin, command)));
        let committer = &mut self.committer;
        match command {
            Command::Send { event, index, done } => {
                let again = move |done| again(Command::Send { event, index, done });
                committer.answer_when_written(done, Ok(()), again);
            }
            Command::Reply { to, make, done } => {
                let again = move |done| again(Command::Reply { to, make, done });
                committer.answer_when_written(done, Ok(()), again);
            }
            Command::Cancel { reason, done } => {
                let ends = committer.state.end().is_some();
                let again = move |done| again(Command::Cancel { reason, done });
                committer.answer_when_written(done, ends, again);
            }
            Command::Pause { how, done } => {
                let again = move |done| again(Command::Pause { how, done });
                committer.answer_when_written(done, Ok(()), again);
            }
            Command::Unpause { done } => {
                committer.answer_when_written(done, Ok(()), move |done| again(Command::Unpause { done }));
            }
            // The others ask, and have no origin.
            _ => {}
        }
    }

    fn handle_command_of(&mut self, command: Command, origin: Option<Arc<Origin>>) {
        // A handle that no longer listens has no use for the answer.
        match command {
            // The run has ended and cleans up: senders need not wait until that is over.
            Command::Send { done, .. } if self.committer.state.scheduler.cleans_up() => {
                let _ = done.send(Err(ended(&self.committer)));
            }
            Command::Send { event, index, done } => {
                self.commit_in_turn(Batch::Received { event, index, origin }, Some(done));
            }
            Command::Reply { to, make, done } => match asked(&self.committer, to) {
                Ok((request, asked)) => match reply(&self.committer, request, asked, make) {
                    Ok(event) => {
                        self.commit_in_turn(Batch::Replied { request, event, origin }, Some(done));
                        // Before what follows from the reply is shown.
                        self.tell_requests();
                    }
                    Err(error) => drop(done.send(Err(error))),
                },
                // The store may lack the batch that closed the request.
                Err(error) => self.committer.answer_when_written(done, Err(error), move |done| {
                    let command = Command::Reply { to, make, done };
                    match origin {
                        Some(origin) => Command::By(Box::new((origin, command))),
                        None => command,
                    }
                }),
            },
            Command::Pause { how, done } => self.pause(how, origin, done),
            Command::Unpause { done } => self.unpause(origin, done),
            Command::Keep { done } => self.keep(done),
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
                if self.cancel(reason, origin) {
                    let _ = done.send(true);
                }
            }
            Command::RetryNow { done } => {
                let ended = self.end_delays();
                self.committer.answer_when_written(done, ended, |done| Command::RetryNow { done });
            }
            Command::Explain { done } => {
                self.record_children_and_ends();
                let explanation = self.view().explain();
                self.committer.answer_when_written(done, explanation, |done| Command::Explain { done });
            }
            Command::Report { done } => {
                self.record_children_and_ends();
                let report = self.view().report();
                self.committer.answer_when_written(done, report, |done| Command::Report { done });
            }
            // An origin stands around one of the others.
            Command::By(_) => {}
        }
    }

    /// Writes that the engine keeps the run, if the engine lost its lease and has it again, and answers once the store has
    /// that.
    #[cold]
    fn keep(&mut self, done: oneshot::Sender<()>) {
        self.committer.note_listed();
        let Committer { journal, state, clock, .. } = &mut self.committer;
        if let (Some(journal), Some(guard)) = (journal, self.admission.lease_guard_mut())
            && guard.keep(journal, clock.stamp())
        {
            // `RunKept` is in the journal and is no batch.
            state.skip(1);
        }
        self.committer.answer_when_written(done, (), |done| Command::Keep { done });
    }
}

/// The refusal of a message to a run that has ended, cleans up, or stops here.
pub(super) fn ended(committer: &Committer) -> SendError {
    let run = committer.shared.id.clone();
    if let Some(source) = committer.journal_error().as_ref().and_then(failure_of) {
        return SendError::Stopped { run, source };
    }
    let status = committer.state.end().map_or(RunStatus::Failed, RunStatus::from);
    SendError::Ended { run, status }
}

/// The open request that the reply is for, with its number.
fn asked(committer: &Committer, to: ReplyTarget) -> Result<(Seq, &AnyEvent), SendError> {
    let Committer { state, clock, .. } = committer;
    if state.end().is_some() {
        return Err(ended(committer));
    }
    let request = match to {
        ReplyTarget::At(request) => request,
        ReplyTarget::OnlyOf(index, read_for) => only_open(committer, index, read_for)?,
    };
    let is_open = state.scheduler.open_requests().any(|(seq, _)| seq == request);
    let asked = state.log.get(request).filter(|_| is_open);
    let asked = asked.ok_or_else(|| why_not_open(state, request, clock.began_at))?;
    Ok((request, &asked.event))
}

/// The only open request of this type; with a number, only that one.
fn only_open(committer: &Committer, index: EventIndex, number: Option<Seq>) -> Result<Seq, SendError> {
    let Committer { state, clock, .. } = committer;
    let open = state.scheduler.open_requests().filter(|(_, event)| *event == index);
    let open: Vec<Seq> = open.map(|(seq, _)| seq).collect();
    let asked = || Arc::clone(&state.table().event(index).name);
    match (&open[..], number) {
        (open, Some(number)) if !open.contains(&number) => Err(why_not_open(state, number, clock.began_at)),
        ([only], _) => Ok(*only),
        ([], _) => {
            // O(events), on this error path only.
            let latest = state.log.records().filter(|(_, record)| record.index == index).last();
            Err(latest.map_or_else(
                || SendError::NotAsked { asked: asked() },
                |(seq, _)| why_not_open(state, seq, clock.began_at),
            ))
        }
        (several, _) => Err(SendError::several(asked(), several.iter().copied())),
    }
}

/// The reply to this request as an event for the log.
fn reply(
    committer: &Committer,
    request: Seq,
    asked: &AnyEvent,
    make: MakeReply,
) -> Result<AnyEvent, SendError> {
    let reply = make(request, asked)?;
    reply.check_size(committer.shared.common.settings.events.most_bytes)?;
    Ok(reply)
}
