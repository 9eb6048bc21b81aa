//! The records at the end of a run, and those that continue it: `CleanUpStarted`, `RunEnded`, `RunRedriven` and
//! `CleanUpRedriven`.
//!
//! ```text
//!  ... ─▶ RunEnded                                        the end follows by itself, or from the record
//!  ... ─▶ CleanUpStarted ─▶ clean-up steps ─▶ RunEnded    the end stands in the first of them
//!                                        RunEnded ─▶ RunRedriven ─▶ ...
//!                        RunEnded ─▶ CleanUpRedriven ─▶ clean-up steps ─▶ RunEnded
//! ```
//!
//! A replay has no limits. So where the journal names one that was reached, entries that only the replay would log are
//! taken out again.

use std::sync::Arc;
use std::time::SystemTime;

use super::{Replay, ReplayResult};
use crate::error::Excess;
use crate::id::{Origin, Redriver, RunStatus};
use crate::run::state::{Applied, Batch, CleanUpReopening, CleanUpStart, Reopening, Stop};
use crate::store::{ReachedLimit, Record};

/// The limit that ended a run, and what an execution returned beyond it.
type Reached = (ReachedLimit, Option<Box<Excess>>);

impl Replay {
    /// `RunEnded`: ends the state likewise. `failed` is the step and the error, if a precondition failed.
    pub(super) fn ended(
        &mut self,
        (status, deadline): (RunStatus, Option<SystemTime>),
        failed: Option<(&str, &str)>,
        (origin, at): (Option<&Origin>, SystemTime),
    ) -> ReplayResult {
        self.complete();
        self.ended = Some(status);
        self.end((status, None, deadline), failed, (origin, at))?;
        // The clean-up was stopped, or the journal is older than the clean-up steps of the table.
        if self.state.end().is_some() && !self.state.scheduler.is_over() {
            self.apply(Batch::Stopped(Stop::CleanUpOver), at)?;
        }
        Ok(())
    }

    /// Ends the state as the journal says, unless a batch with a stop event, a failure or a stall has ended it already.
    fn end(
        &mut self,
        (status, limit, deadline): (RunStatus, Option<Reached>, Option<SystemTime>),
        failed: Option<(&str, &str)>,
        (origin, at): (Option<&Origin>, SystemTime),
    ) -> ReplayResult {
        self.complete();
        if self.state.end().is_some() {
            return Ok(());
        }
        if let Some((limit, excess)) = limit {
            self.forget_derived();
            let mut limits = self.state.limits();
            match limit {
                ReachedLimit::Events(events) => limits.events = events,
                ReachedLimit::Executions(executions) => limits.executions = executions,
            }
            self.state.limit(limits);
            return self.apply(Batch::Stopped(Stop::AtLimit(limit, excess)), at).map(|_| ());
        }
        if let Some((step, error)) = failed {
            let step = self.step(step)?;
            return self.precondition_error(step, error, at);
        }
        match status {
            RunStatus::Cancelled => {
                let origin = origin.cloned().map(Arc::new);
                self.apply(origin.map_or(Batch::Stopped(Stop::Cancelled), Batch::Cancelled), at)?;
            }
            RunStatus::TimedOut => {
                self.apply(Batch::Stopped(deadline.map_or(Stop::TimedOut, Stop::DeadlinePassed)), at)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes out the entries that the live run did not log any more, because its log was full.
    fn forget_derived(&mut self) {
        if let Some(from) = self.derived.pop_front() {
            self.derived.clear();
            self.state.retract(Some(from), std::iter::empty());
        }
    }

    /// `CleanUpStarted`: ends the state likewise. Then the clean-up begins with the steps of the journal, in their order.
    /// Steps that the table has lost since do not run.
    pub(super) fn clean_up_started(&mut self, record: &Record) -> ReplayResult {
        let Record::CleanUpStarted {
            status,
            error,
            step,
            limit,
            excess,
            deadline,
            after,
            steps,
            first,
            origin,
            at,
        } = record
        else {
            return Err("no clean-up begins with this record".into());
        };
        let (status, after, first, at) = (*status, *after, *first, *at);
        let failed = step.as_deref().zip(error.as_deref());
        let limit = limit.map(|limit| (limit, excess.clone()));
        self.end((status, limit, *deadline), failed, (origin.as_ref(), at))?;
        if self.state.end().map(RunStatus::from) != Some(status) {
            return Err(format!("the run was {status}, and would not be now"));
        }
        self.complete();
        // What was to begin before the end does not begin any more, and clean-up may take its numbers.
        self.effects.clear();
        self.questions.clear();
        self.retries.clear();
        let steps = steps.iter().filter_map(|step| self.host.table.step_named(step)).collect();
        let (step, error, limit, excess, deadline) = (None, None, None, None, None);
        let start = CleanUpStart { status, step, error, limit, excess, deadline, after, steps, first };
        self.apply(Batch::CleanUpStarted(Box::new(start)), at).map(|_| ())
    }

    /// `RunRedriven`: the run continues after its end. The state queues everything that is open, to begin anew, so
    /// what it queued before is void.
    pub(super) fn redriven(&mut self, by: Redriver, again: &[Arc<str>], at: SystemTime) -> ReplayResult {
        self.complete();
        if self.ended.take().is_none() {
            return Err("the run was redriven, and had not ended".into());
        }
        let known = self.known();
        let unbegun = self.effects.iter().filter(|effect| effect.after > known || self.queued);
        let unbegun = unbegun.filter_map(|effect| effect.begins.execution()).collect();
        self.effects.clear();
        self.questions.clear();
        self.retries.clear();
        // Entries that the journal lacks may wait behind the end, of a run that ended at a limit which a replay does not
        // have. The resume that follows journals them.
        let again = again.iter().filter_map(|step| self.host.table.step_named(step)).collect();
        let redriven = Batch::Redriven(Reopening { by, again, unbegun });
        if matches!(self.state.apply(redriven, self.since_began(at)), Applied::Refused) {
            return Err("the run was redriven, and would have ended for good now".into());
        }
        self.complete();
        Ok(())
    }

    /// `CleanUpRedriven`: clean-up steps run again, and the end stays. Steps that the table has lost since do not run.
    pub(super) fn clean_up_redriven(
        &mut self,
        by: Redriver,
        [steps, again]: [&[Arc<str>]; 2],
        at: SystemTime,
    ) -> ReplayResult {
        self.complete();
        if self.ended.take().is_none() {
            return Err("its clean-up was redriven, and the run had not ended".into());
        }
        self.effects.clear();
        self.questions.clear();
        self.retries.clear();
        let table = &self.host.table;
        let [steps, again] =
            [steps, again].map(|steps| steps.iter().filter_map(|step| table.step_named(step)).collect());
        let redriven = Batch::CleanUpRedriven(Box::new(CleanUpReopening { by, steps, again }));
        if matches!(self.state.apply(redriven, self.since_began(at)), Applied::Refused) {
            return Err("its clean-up was redriven, and would not have begun now".into());
        }
        self.complete();
        Ok(())
    }
}
