//! Checks that nothing begins, and no observer sees an event, before the store has confirmed what they follow from
//! (S38).

use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::{RunId, Seq};

use super::store::CrashStore;

/// Compares observations with confirmations.
pub(super) struct Promises(pub(super) CrashStore);

impl Observer for Promises {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        match what {
            Observed::ExecutionStarted { step, trigger, .. } => {
                self.follows(run, *trigger, || format!("`{step}` began by {trigger}"));
            }
            Observed::PreconditionAnswered { step, trigger, .. } => {
                self.follows(run, *trigger, || {
                    format!("the precondition of `{step}` was asked by {trigger}")
                });
            }
            Observed::EventLogged { seq, event, .. } => {
                self.follows(run, *seq, || format!("observers heard of {seq} {}", event.name()));
            }
            _ => {}
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl Promises {
    fn follows(&self, run: &RunId, from: Seq, what: impl FnOnce() -> String) {
        if !self.0.has_confirmed(run, from) {
            self.0.note_premature(format!("in `{run}` {} before the store had confirmed it", what()));
        }
    }
}
