//! Steps one after the other: where an execution returns at once, and what it returns makes the next one begin or ends the
//! run, nothing of it goes through a queue, and neither does what the run begins with. What is done, and in which order,
//! is the same.

use std::task::Context;

use super::drive::{Received, Run};
use super::in_flight::StepResult;
use crate::id::ExecutionId;
use crate::output::Emitted;
use crate::scheduler::{AtOnce, Cause, Fact, Start, Wanted};
use crate::table::{OutputRow, StepIndex};

/// What an execution that follows another handles: what that returned, its batch, and the start.
const HOP: usize = 3;

/// What an execution returned is not to be committed at once.
#[derive(Debug)]
pub(super) struct NotAtOnce;

impl Run {
    /// Begins an execution, and what follows from it directly, as long as that handles no more than `most`, from which it
    /// is subtracted.
    pub(super) fn start_on(&mut self, start: Start, most: &mut usize, cx: &mut Context<'_>) {
        let mut next = Some(start);
        while let Some(start) = next.take() {
            let (execution, step) = (start.execution, start.step);
            let Some(mut result) = self.start(start, cx) else { return };
            if *most < HOP || !self.is_undisturbed() {
                return self.returned(execution, result);
            }
            *most -= HOP;
            next = match self.commit_at_once(execution, step, &mut result) {
                Ok(next) => next,
                Err(NotAtOnce) => self.executed(execution, result),
            };
        }
    }

    /// What the run begins with enters the log, and what follows from it directly begins.
    pub(super) fn take_first(&mut self, most: &mut usize, cx: &mut Context<'_>) {
        let Some((event, index)) = self.first.take() else { return };
        // What was sent before the run got anywhere comes next, and its time may have run out.
        let is_alone = self.in_flight.is_empty() && !self.shared.has_news();
        let at_once = if is_alone { self.scheduler.receive_at_once(index) } else { None };
        match at_once {
            Some(AtOnce { entry, next }) => {
                self.append_event(entry, event, Cause::Outside);
                if let Some(start) = next {
                    self.perform_or_hold(Wanted::Start(start), most, cx);
                }
            }
            None => self.receive(Received { event, done: None }, Fact::EventReceived { event: index }),
        }
    }

    /// Whether nothing that came meanwhile is to be taken in before what was just returned.
    fn is_undisturbed(&self) -> bool {
        self.arrived.is_empty()
            && self.held.is_empty()
            && self.dropping == 0
            && self.journal.is_none()
            && self.timers.has_none()
            && !self.shared.cancel_note.is_unread()
            && self.scheduler.is_done()
    }

    /// One event and nothing else, which nothing has to be waited for with, enters the log; says which execution begins
    /// with it, if one does. Any other batch stays as it is.
    pub(super) fn commit_at_once(
        &mut self,
        execution: ExecutionId,
        step: StepIndex,
        result: &mut StepResult,
    ) -> Result<Option<Start>, NotAtOnce> {
        let Ok(emitted) = result else { return Err(NotAtOnce) };
        let AtOnce { entry, next } = self.at_once(execution, step, emitted).ok_or(NotAtOnce)?;
        let event = emitted.take_single().ok_or(NotAtOnce)?;
        emitted.stand();
        self.trace.committed(execution, self.clock.now, entry.seq);
        self.tell_success(execution, step);
        self.append_event(entry, event, Cause::Execution(execution));
        Ok(next)
    }

    fn at_once(&mut self, execution: ExecutionId, step: StepIndex, emitted: &Emitted) -> Option<AtOnce> {
        let event = emitted.single().filter(|_| self.journal.is_none())?;
        let table = &self.host.table;
        let type_id = Some(event.known_type().type_id);
        let declares = |row: &&OutputRow| {
            table.event(row.event).type_id == type_id && !row.timed && row.fan_out.is_none()
        };
        let index = table.step(step).outputs.iter().find(declares)?.event;
        // What is too large is a failure.
        event.check_size(self.shared.common.max_event_bytes).ok()?;
        self.scheduler.commit_at_once(execution, index)
    }
}
