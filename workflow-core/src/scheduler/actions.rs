//! The queue of a scheduler's actions: those that the run has not taken yet, in order.
//!
//! ```text
//!  evaluation, groups ── push ──▶ [Free, Start, Wait] ── pop ──▶ RunState::advance       the run
//!  apply ─────────────── report ─▶ Report in front of them ────▶ Scheduler::next_action   users of `Scheduler`
//! ```
//!
//! Invariant: the queue has the order of the decisions. Only [`report`](Actions::report) inserts an entry, in
//! front of the actions that follow from its batch.
//!
//! Example: `Begin` enters, and `fetch` takes it together with `log`. The queue has `Start` of `fetch` and
//! then `Start` of `log`, and the public scheduler returns `Append` of `Begin` before both.

use std::collections::{HashSet, VecDeque};

use smallvec::SmallVec;

use super::candidates::{Candidate, Candidates};
use super::{
    Action, BatchEntries, CandidateId, Cause, End, Entry, ExecutionStart, GroupSummary, LoggedBatch,
    QueuedExecution,
};
use crate::id::{ExecutionId, ScopeId};
use crate::table::DependencyTable;

/// An [`Action`] in its queued form. The common actions are small, and rare ones are boxed.
#[derive(Debug)]
pub(crate) enum QueuedAction {
    /// An execution was created, and its step has room.
    Start(ExecutionStart),
    /// Ask the precondition of the candidate, unless that is dropped meanwhile.
    Ask(CandidateId),
    /// All branches of a fan-out are settled, and the gather has its position in the log. The run makes the event.
    Gathered(Box<(Entry, GroupSummary)>),
    /// A fan-out failed, and its failures are caught or tolerated (S60). The run makes the event, if there is one.
    FanOutFailed(Box<FanOutFailure>),
    /// The branch is closed. The run frees the lists that it stores for this scope.
    Free(ScopeId),
    /// The branch of the execution was dropped. Queued only for executions whose `Start` the run has taken.
    Drop(ExecutionId),
    /// The branch of the execution was dropped while it waited for the concurrency of its step. By another table it may
    /// have begun. Queued only for a redrive.
    DropWaiting(ExecutionId),
    /// Tells the run that questions were dropped with their branches.
    QuestionsDropped,
    /// Nothing is left to do. Queued once, until something arrives.
    Wait,
    /// Reports the effect of a fact to users of the public [`Scheduler`](super::Scheduler). The run ignores
    /// these entries: it takes the effect from the method that it calls.
    Report(Box<Action>),
}

impl QueuedAction {
    /// Turns the entry into the public action; `None` if its candidate is dropped or the entry concerns the
    /// run alone.
    pub(super) fn into_action(self, table: &DependencyTable, candidates: &Candidates) -> Option<Action> {
        Some(match self {
            Self::Start(start) => {
                let row = table.step(start.step);
                start.into_action(row)
            }
            Self::Ask(id) => {
                let Candidate { step, scope, trigger, ref binding, .. } = *candidates.get(id)?;
                Action::AskPrecondition { candidate: id, step, scope, trigger, binding: binding.clone() }
            }
            Self::Gathered(gathered) => {
                let (entry, group) = *gathered;
                Action::AppendGathered { entry, group }
            }
            Self::FanOutFailed(failed) => {
                let (cause, entry) = (Cause::Failure(failed.by), failed.entry?);
                Action::Append { cause, entries: SmallVec::from_buf([entry]), timers: Vec::new() }
            }
            Self::Free(scope) => Action::FreeScope { scope },
            Self::Drop(execution) => Action::DropExecution { execution },
            Self::QuestionsDropped | Self::DropWaiting(_) => return None,
            Self::Wait => Action::Wait,
            Self::Report(action) => *action,
        })
    }
}

/// The failure of a fan-out that is a failure of the execution which opened it (S60).
#[derive(Debug)]
pub(crate) struct FanOutFailure {
    /// The event of the failure; `None` if the run continues without one.
    pub(crate) entry: Option<Entry>,
    /// The execution that opened the fan-out.
    pub(crate) by: ExecutionId,
    /// The executions that failed in its branches.
    pub(crate) failures: Vec<ExecutionId>,
}

/// The queue, first action first.
#[derive(Debug, Default)]
pub(super) struct Actions(VecDeque<QueuedAction>);

impl Actions {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn push(&mut self, action: QueuedAction) {
        self.0.push_back(action);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<QueuedAction> {
        self.0.pop_front()
    }

    /// Reports the effect of a fact.
    pub(super) fn say(&mut self, action: Action) {
        self.push(QueuedAction::Report(Box::new(action)));
    }

    /// Reports a batch. The report precedes the actions that follow from the batch, which are those after the
    /// first `before`. If the batch ended the run, reports that as well, behind them.
    pub(super) fn report(&mut self, before: usize, cause: Cause, entered: LoggedBatch, end: Option<&End>) {
        let next = entered.next();
        let (entries, timers) = match entered {
            LoggedBatch::Nothing => (SmallVec::new(), Vec::new()),
            LoggedBatch::One(entry, _) => (SmallVec::from_buf([entry]), Vec::new()),
            LoggedBatch::Many(entries) => {
                let BatchEntries { events, timers } = *entries;
                (SmallVec::from_vec(events), timers)
            }
        };
        // The end of the run removes actions (`close`), so the queue may be shorter than it was before the
        // fact.
        let following = self.0.split_off(before.min(self.0.len()));
        self.say(Action::Append { cause, entries, timers });
        self.0.extend(following.into_iter().chain(next.map(QueuedAction::Start)));
        if let Some(end @ End::Completed(_)) = end {
            self.say(Action::Finish { end: end.clone() });
        }
    }

    /// Drops all work, since the run ends. Reports stay in the queue, and so do gathers, whose positions are
    /// taken, since a log has no gaps. Drops stay too: the run has begun these executions.
    pub(super) fn close(&mut self) {
        self.0.retain(|queued| {
            let is_logged = matches!(queued, QueuedAction::Gathered(_) | QueuedAction::FanOutFailed(_));
            let is_dropped = matches!(queued, QueuedAction::Drop(_) | QueuedAction::DropWaiting(_));
            is_logged || is_dropped || matches!(queued, QueuedAction::Report(_))
        });
    }

    /// Drops questions whose candidates are dropped.
    pub(super) fn drop_questions(&mut self, candidates: &Candidates) {
        self.0.retain(|queued| !matches!(queued, QueuedAction::Ask(id) if candidates.get(*id).is_none()));
    }

    /// Drops the starts in these scopes and returns their executions.
    /// The run never learns of these executions, so they need no `Drop`.
    pub(super) fn take_starts_in(&mut self, scopes: &HashSet<ScopeId>) -> HashSet<ExecutionId> {
        let mut taken = HashSet::new();
        self.0.retain(|queued| match queued {
            QueuedAction::Start(start) if scopes.contains(&start.scope) => !taken.insert(start.execution),
            _ => true,
        });
        taken
    }

    /// Takes out the starts and the questions that were not taken yet, in order.
    pub(super) fn take_unbegun(&mut self) -> VecDeque<QueuedAction> {
        let begins = |queued: &QueuedAction| matches!(queued, QueuedAction::Start(_) | QueuedAction::Ask(_));
        let (unbegun, others) = std::mem::take(&mut self.0).into_iter().partition(begins);
        self.0 = others;
        unbegun
    }

    /// The executions that were dropped while they waited, and whose drops were not taken yet.
    pub(super) fn dropped_waiting(&self) -> impl Iterator<Item = ExecutionId> {
        self.0.iter().filter_map(|queued| match queued {
            QueuedAction::DropWaiting(execution) => Some(*execution),
            _ => None,
        })
    }

    /// The executions whose start was not taken yet.
    pub(super) fn queued_executions(&self) -> impl Iterator<Item = QueuedExecution> {
        self.0.iter().filter_map(|queued| match queued {
            QueuedAction::Start(start) => Some(QueuedExecution { start: start.clone(), full: None }),
            _ => None,
        })
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;
    use crate::scheduler::Inputs;
    use crate::table::{EventIndex, StepIndex};

    fn start(number: u64, scope: u32) -> QueuedAction {
        let (execution, step) = (ExecutionId(number), StepIndex::at(0));
        let (scope, trigger, inputs) = (ScopeId(scope), Seq(1), Inputs::TRIGGER);
        QueuedAction::Start(ExecutionStart { execution, step, scope, trigger, inputs })
    }

    fn filled() -> Actions {
        let mut actions = Actions::default();
        for action in [start(1, 0), start(2, 1), QueuedAction::Wait] {
            actions.push(action);
        }
        actions
    }

    /// The remaining actions in words.
    fn drained(mut actions: Actions) -> Vec<String> {
        std::iter::from_fn(|| actions.pop())
            .map(|queued| match queued {
                QueuedAction::Start(start) => format!("start {}", start.execution.0),
                QueuedAction::Report(action) => match *action {
                    Action::Append { entries, .. } => format!("append {}", entries.len()),
                    Action::Finish { end } => format!("finish {end:?}"),
                    other => format!("{other:?}"),
                },
                other => format!("{other:?}"),
            })
            .collect()
    }

    fn entry(seq: u64) -> Entry {
        Entry { seq: Seq(seq), scope: ScopeId::ROOT, event: EventIndex::at(0) }
    }

    #[test]
    fn a_batch_is_reported_before_the_actions_that_follow_and_the_end_behind_them() {
        let mut actions = filled();
        let end = End::Completed(Seq(4));
        actions.report(1, Cause::Outside, LoggedBatch::One(entry(4), None), Some(&end));
        let said = ["start 1", "append 1", "start 2", "Wait", "finish Completed(Seq(4))"];
        assert_eq!(drained(actions), said);
    }

    #[test]
    fn an_end_without_a_stop_event_is_not_reported_again() {
        let mut actions = Actions::default();
        actions.report(9, Cause::Outside, LoggedBatch::Nothing, Some(&End::Stalled));
        assert_eq!(drained(actions), ["append 0"]);
    }

    #[test]
    fn a_dropped_scope_removes_its_own_starts_alone() {
        let mut actions = filled();
        let taken = actions.take_starts_in(&HashSet::from([ScopeId(1)]));
        assert_eq!(taken, HashSet::from([ExecutionId(2)]));
        assert!(actions.queued_executions().map(|unbegun| unbegun.start.execution).eq([ExecutionId(1)]));
        assert_eq!(drained(actions), ["start 1", "Wait"]);
    }

    #[test]
    fn an_ended_run_begins_nothing_and_still_reports_what_happened() {
        let mut actions = filled();
        actions.push(QueuedAction::Drop(ExecutionId(9)));
        actions.say(Action::RefuseReceived);
        actions.close();
        assert_eq!(drained(actions), ["Drop(ExecutionId(9))", "RefuseReceived"]);
    }

    #[test]
    fn dropped_questions_are_not_asked() {
        let mut actions = filled();
        actions.push(QueuedAction::Ask(CandidateId(1)));
        actions.drop_questions(&Candidates::default());
        assert_eq!(drained(actions), ["start 1", "start 2", "Wait"]);
    }
}
