//! Commits that nothing has to be waited for with, and what follows from them directly: in a chain of steps that is all
//! there is to do, and none of it needs a queue.

use super::scope::Scope;
use super::{Entry, Inputs, Scheduler, Start, Verdict};
use crate::id::{ExecutionId, ScopeId};
use crate::table::{EventIndex, StepIndex};

/// What a commit of one event comes to.
#[derive(Debug)]
pub(crate) struct AtOnce {
    /// What enters the log.
    pub(crate) entry: Entry,
    /// The execution that it triggers, if that is the next thing to be done.
    pub(crate) next: Option<Start>,
}

impl Scheduler {
    /// Commits one event that is logged at once: what comes of [`Fact::ExecutionSucceeded`](super::Fact),
    /// [`Action::Append`](super::Action) and [`Fact::Appended`](super::Fact) where nothing lies between them. `None`, and
    /// nothing is done, if something may.
    pub(crate) fn commit_at_once(&mut self, id: ExecutionId, event: EventIndex) -> Option<AtOnce> {
        let is_free = self.actions.is_empty() && self.appending.is_empty() && !self.refuses();
        let ends = self.last_seq >= self.limits.events || self.table.event(event).roles.is_stop();
        if ends || !is_free {
            return None;
        }
        self.waits = false;
        let (_, scope) = self.end_execution(id)?;
        let entry = self.number(scope, event)?;
        if let Some(step) = self.follower(entry) {
            let next = Some(self.follow(step, entry));
            return Some(AtOnce { entry, next });
        }
        self.logged(entry);
        self.release(scope);
        self.start_waiting();
        Some(AtOnce { entry, next: None })
    }

    /// The step that the event makes run, if nothing else is to be done and nothing is in its way.
    fn follower(&self, entry: Entry) -> Option<StepIndex> {
        let row = self.table.event(entry.event);
        let step = row.direct.filter(|_| !row.roles.is_request())?;
        let is_alone = self.unevaluated.is_empty() && self.cursor.is_none() && self.settling.is_empty();
        let is_leaf = self.scopes.get(entry.scope).is_some_and(Scope::is_leaf);
        let may_start = self.waiting == 0 && self.executed() < self.limits.executions && self.has_room(step);
        (is_alone && is_leaf && may_start).then_some(step)
    }

    /// The event is evaluated. What held its scope open, the execution that has ended, is followed by another.
    fn follow(&mut self, step: StepIndex, trigger: Entry) -> Start {
        let Entry { seq, scope, .. } = trigger;
        self.count(trigger);
        let execution = self.count_execution((step, scope, seq));
        self.decide(step, scope, seq, Verdict::Executed(execution));
        self.run(execution, step, scope);
        Start { execution, step, scope, trigger: seq, inputs: Inputs::TRIGGER }
    }

    /// The execution runs from here on.
    pub(super) fn run(&mut self, id: ExecutionId, step: StepIndex, scope: ScopeId) {
        let place = self.running_in_branches.len();
        if let Some(execution) = self.execution(id) {
            execution.begin(place);
        }
        self.totals[step.get()].running += 1;
        self.running += 1;
        if scope != ScopeId::ROOT {
            self.running_in_branches.push(id);
        }
    }
}
