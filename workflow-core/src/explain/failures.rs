//! Explains why a failure that a step would catch did not happen (S29).

use std::sync::Arc;

use super::WhyNotProduced;
use super::source::Source;
use crate::id::ScopeId;
use crate::table::EventIndex;

impl Source<'_> {
    /// The name under which steps take failures.
    pub(super) fn failure_name(&self) -> Arc<str> {
        let events = &self.table().events;
        let named = events.iter().find(|event| event.roles.is_failure());
        named.map_or_else(|| "StepFailed".into(), |event| Arc::clone(&event.name))
    }

    /// For the events that are failures: which of their steps failed where, and which did not fail.
    pub(super) fn why_not_failed(&self, events: &[EventIndex], scope: ScopeId) -> Vec<WhyNotProduced> {
        let (mut failed, mut others) = (Vec::new(), Vec::new());
        for event in events {
            let Some(step) = self.table().event(*event).fails else { continue };
            let step = Arc::clone(&self.table().step(step).name);
            match self.seen_and_elsewhere(scope, *event) {
                (0, 0) => others.push(step),
                (seen, elsewhere) => failed.push(WhyNotProduced::FailedSome { step, elsewhere, seen }),
            }
        }
        if !others.is_empty() {
            failed.push(WhyNotProduced::NotFailed { steps: others });
        }
        failed
    }
}
