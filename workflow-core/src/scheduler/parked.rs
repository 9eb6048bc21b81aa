//! The state of a scheduler that waits, in little memory: what most have nothing of is left out, and what they have keeps
//! no room for more.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::append::OpenRequest;
use super::execution::{Execution, StepTotals};
use super::scope::Scopes;
use super::seen::{StepState, TopicState};
use super::{Decision, Scheduler, SchedulerLimits};
use crate::id::Seq;
use crate::table::{DependencyTable, Mask};

/// A scheduler that waits, has no branches and no timers, and has nothing on its way.
#[derive(Debug)]
pub(crate) struct ParkedScheduler {
    limits: SchedulerLimits,
    root: ParkedRoot,
    executions: Box<[Execution]>,
    /// By step, how many executions it had and its surplus; none of them runs or waits.
    totals: Box<[(u64, u64)]>,
    requests: Box<[(Seq, OpenRequest)]>,
    decisions: Box<[Decision]>,
    last_seq: u64,
    next_candidate: u64,
    last_timer: u64,
    next_group: u32,
    degraded: bool,
}

/// The only scope of a run.
#[derive(Debug)]
pub(super) struct ParkedRoot {
    pub(super) satisfied: Mask,
    pub(super) topics: Box<[TopicState]>,
    pub(super) steps: Box<[StepState]>,
    pub(super) pending: u32,
    /// The number of the next scope.
    pub(super) next: u32,
}

impl Scheduler {
    /// Whether it can be parked. O(1).
    pub(crate) fn can_park(&self) -> bool {
        let Self {
            table: _,
            limits: _,
            scopes,
            groups,
            actions,
            unevaluated,
            cursor,
            appending,
            candidates,
            executions: _,
            recalled,
            running,
            running_in_branches,
            waiting,
            totals: _,
            requests: _,
            timers,
            settling,
            decisions: _,
            last_seq: _,
            next_candidate: _,
            next_group: _,
            last_timer: _,
            failing,
            stopping,
            waits,
            degraded: _,
            end,
        } = self;
        let is_quiet =
            actions.is_empty() && unevaluated.is_empty() && appending.is_empty() && cursor.is_none();
        let is_plain = groups.is_empty() && running_in_branches.is_empty() && settling.is_empty();
        let is_idle = candidates.is_empty() && *running == 0 && *waiting == 0 && timers.is_empty();
        let goes_on = recalled.is_none() && failing.is_none() && !stopping && end.is_none();
        *waits && is_quiet && is_plain && is_idle && goes_on && scopes.can_park()
    }

    /// Parks what it has come to, if it [can be](Self::can_park); what is left of it is of no use. O(what it has).
    pub(crate) fn park(&mut self) -> ParkedScheduler {
        debug_assert!(self.can_park(), "nothing is lost");
        let requests = std::mem::take(&mut self.requests).into_iter();
        let totals = std::mem::take(&mut self.totals).into_iter();
        ParkedScheduler {
            limits: self.limits,
            root: self.scopes.park(),
            executions: std::mem::take(&mut self.executions).into(),
            totals: totals.map(|totals| (totals.executions, totals.surplus)).collect(),
            requests: requests.map(|(seq, open)| (seq, *open)).collect(),
            decisions: std::mem::take(&mut self.decisions).into(),
            last_seq: self.last_seq,
            next_candidate: self.next_candidate,
            last_timer: self.last_timer,
            next_group: self.next_group,
            degraded: self.degraded,
        }
    }
}

impl ParkedScheduler {
    pub(crate) fn limits(&self) -> SchedulerLimits {
        self.limits
    }

    /// The scheduler as it was.
    pub(crate) fn unpark(self, table: Arc<DependencyTable>) -> Scheduler {
        let requests = self.requests.into_iter().map(|(seq, open)| (seq, Box::new(open)));
        let totals = self.totals.into_iter();
        let totals = totals.map(|(executions, surplus)| StepTotals::at_rest(executions, surplus)).collect();
        Scheduler {
            executions: self.executions.into(),
            requests: requests.collect::<BTreeMap<_, _>>(),
            decisions: self.decisions.into(),
            last_seq: self.last_seq,
            next_candidate: self.next_candidate,
            last_timer: self.last_timer,
            next_group: self.next_group,
            degraded: self.degraded,
            waits: true,
            ..Scheduler::of(Scopes::unpark(self.root), totals, table, self.limits)
        }
    }
}
