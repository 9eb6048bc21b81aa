//! Passing time as an operation: what may wait for it, and how it passes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::time::Instant;
use workflow_core::explain::Reason;
use workflow_core::report::PendingTimer;
use workflow_core::{ExecutionId, RunStatus, ScopeId, Seq};

use super::{Footprint, IDLE, Op, OpId, Stage};
use crate::explore::gate::Actor;
use crate::script::rests;

/// The number of timers that may fire without an effect while there is no other choice.
const MOST_TIMERS: u32 = 100_000;

/// The same with other choices. A task that sleeps in a loop then counts as asleep for ever, and the exploration says
/// so.
const MOST_TIMERS_AMONG_OTHERS: u32 = 1_000;

/// The effect of passing time.
enum Passed {
    Something,
    /// No timer is left.
    Nothing,
    /// The limit of timers without an effect was reached.
    TooMuch,
}

/// A precondition in evaluation: its step, scope and trigger.
type PendingEvaluation = (Arc<str>, ScopeId, Seq);

/// Signs of progress: operations at the gate, the run's state, active children, log length, and, while the run does not
/// answer, timers that are not due.
type Progress = (u32, RunStatus, usize, Option<usize>, Option<usize>);

impl Stage<'_> {
    /// The passing of time as an operation, if anything besides these may wait for it.
    pub(super) async fn time(&self, others: &[Op]) -> Option<Op> {
        let (calls, timer, asked) = (self.gate.elsewhere(), self.timer().await, self.asked(others).await);
        let (retried, children) = (self.between_attempts(), self.outside.children());
        let outside = !(asked.is_empty() && retried.is_empty() && children.is_empty());
        // Something else keeps the run active, or its deadline will end it.
        let hidden = others.is_empty() && (!rests(self.handle.status()) || self.has_deadline().await);
        if calls.is_none() && timer.is_none() && !outside && !hidden {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (calls, timer.as_ref().map(|timer| timer.timer), self.times).hash(&mut hasher);
        (asked, retried, children).hash(&mut hasher);
        let words = match timer.filter(|_| calls.is_none() && !outside) {
            Some(PendingTimer { request: Some(request), .. }) => format!("{request} expires"),
            Some(timer) => format!("the timer {} for {} fires", timer.timer, timer.event),
            None => "time passes".to_owned(),
        };
        let id = OpId::arrival(Actor::Time(hasher.finish()));
        Some(Op { id, words: words.into(), footprint: Arc::new(Footprint::Everything) })
    }

    /// The run's next timer.
    pub(super) async fn timer(&self) -> Option<PendingTimer> {
        if !self.interest.has_timers() {
            return None;
        }
        self.timers().await.into_iter().next()
    }

    /// Whether the run ends at a deadline.
    async fn has_deadline(&self) -> bool {
        let report = self.ask(async |run| run.report_so_far().await).await;
        report.is_some_and(|report| report.is_ok_and(|report| report.deadline.is_some()))
    }

    /// The executions that wait for their next attempt.
    fn between_attempts(&self) -> BTreeSet<ExecutionId> {
        let mut retried = self.outside.retried();
        retried.retain(|execution| !self.gate.is_called(*execution));
        retried
    }

    /// The unanswered evaluations, if there are more of them than preconditions at the gate.
    async fn asked(&self, others: &[Op]) -> Vec<PendingEvaluation> {
        if !self.interest.has_preconditions() {
            return Vec::new();
        }
        // An error means that the run has ended.
        let explanation = self.ask(async |run| run.explain().await).await;
        let Some(Ok(explanation)) = explanation else { return Vec::new() };
        let unanswered = explanation.steps.iter().flat_map(|step| {
            let asked = step.did_not_run.iter().filter(|why| matches!(why.reason, Reason::Asking { .. }));
            asked.map(|why| (Arc::clone(&step.step), why.scope, why.trigger.seq))
        });
        let unanswered: Vec<PendingEvaluation> = unanswered.collect();
        let at_the_gate = others.iter().filter(|op| op.id.actor == Actor::Unknown).count();
        if unanswered.len() > at_the_gate { unanswered } else { Vec::new() }
    }

    /// Lets time pass until it has an effect; returns whether it had one.
    pub(super) async fn time_passes(&mut self, alone: bool) -> bool {
        let patient = alone || self.timer().await.is_some();
        let passed = self.pass_time(if patient { MOST_TIMERS } else { MOST_TIMERS_AMONG_OTHERS }).await;
        self.times += u64::from(matches!(passed, Passed::Something));
        self.gave_up_on_time |= !alone && matches!(passed, Passed::TooMuch);
        matches!(passed, Passed::Something)
    }

    /// Fires timers until another operation is at the gate, an event in the log, a child at its end, or the run in
    /// another state.
    async fn pass_time(&self, most: u32) -> Passed {
        let before = self.progress().await;
        let until = Instant::now() + IDLE;
        for _ in 0..most {
            if self.quiet.after_time(until).await.is_err() {
                return Passed::Nothing;
            }
            if self.progress().await != before {
                return Passed::Something;
            }
        }
        Passed::TooMuch
    }

    async fn progress(&self) -> Progress {
        // The task that drives the run may itself be stuck.
        let report = self.ask(async |run| tokio::time::timeout(IDLE, run.report_so_far()).await).await;
        let silent = report.is_none();
        let logged = report.and_then(|report| report.ok()?.ok()).map(|report| report.log.len());
        let timers =
            if silent && self.interest.has_timers() { Some(self.timers().await.len()) } else { None };
        (self.gate.came(), self.handle.status(), self.outside.children().len(), logged, timers)
    }
}
