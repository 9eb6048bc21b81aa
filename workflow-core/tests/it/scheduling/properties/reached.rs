//! The situations that random runs reached: a property without such situations proves nothing.

use std::collections::BTreeMap;

use workflow_core::scheduler::{Cause, End};
use workflow_testkit::model::Line;

/// The number of runs per situation, and of all runs.
#[derive(Debug, Default)]
pub(crate) struct Reached(BTreeMap<&'static str, u32>, u32);

impl Reached {
    pub(crate) fn of<'a>(lines: impl Iterator<Item = &'a Line>, depth: usize) -> Self {
        let mut reached = Self(BTreeMap::new(), 1);
        for name in lines.filter_map(name_of) {
            reached.0.insert(name, 1);
        }
        if depth > 2 {
            reached.0.insert("branches below branches", 1);
        }
        reached
    }

    pub(crate) fn note(&mut self, name: &'static str, came_by: bool) {
        self.0.insert(name, u32::from(came_by));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
        self.1 += other.1;
    }

    /// # Panics
    /// Panics if a smaller share of the runs reached it, or none did.
    pub(crate) fn assert_of_10_000(&self, runs: u32, names: &[&str]) {
        let wanted = (runs * self.1 / 10_000).max(1);
        for name in names {
            let reached = self.0.get(name).copied().unwrap_or(0);
            assert!(reached >= wanted, "only {reached} of {} random runs came by `{name}`: {self:?}", self.1);
        }
    }
}

fn name_of(line: &Line) -> Option<&'static str> {
    Some(match line {
        Line::Asks { .. } => "a question",
        Line::Appends { cause: Cause::Failure(_), entries, .. } if entries[0].scope != 0 => {
            "a caught failure in a branch"
        }
        Line::Appends { cause: Cause::Failure(_), .. } => "a caught failure",
        Line::Gathers { branches, .. } if branches.is_empty() => "an empty gather",
        Line::Gathers { branches, .. } if branches.iter().any(|branch| branch.dropped) => {
            let failed = branches.iter().any(|branch| !branch.failures.is_empty());
            if failed { "a gather with a borne failure" } else { "a gather with a dropped branch" }
        }
        Line::Gathers { branches, .. } if branches.iter().any(|branch| !branch.failures.is_empty()) => {
            "a gather with a failure"
        }
        Line::Gathers { .. } => "a gather",
        Line::Drops { .. } => "a dropped execution",
        Line::RefusesCommit { .. } => "a refused commit",
        Line::RefusesReceived => "a refused arrival",
        Line::Appends { cause: Cause::Timer { .. }, .. } => "a fired timer",
        Line::Appends { cause: Cause::Expired(_), .. } => "an expired request",
        Line::Waits => "waiting",
        Line::CleansUp { end: End::Failed(_), .. } => "a clean-up of a failed run",
        Line::CleansUp { end: End::Stalled, .. } => "a clean-up of a stalled run",
        Line::CleansUp { end: End::Cancelled, .. } => "a clean-up of a cancelled run",
        Line::CleansUp { end: End::TimedOut, .. } => "a clean-up of a run out of time",
        Line::CleansUp { .. } => "a clean-up of another run",
        Line::Ends(End::Completed(_)) => "completed",
        Line::Ends(End::Failed(_)) => "failed",
        Line::Ends(End::PreconditionFailed(_)) => "a failed precondition",
        Line::Ends(End::Stalled) => "stalled",
        Line::Ends(End::TooManyExecutions) => "too many executions",
        Line::Ends(End::TooManyItems(_)) => "too many items",
        Line::Ends(End::Cancelled) => "cancelled",
        Line::Ends(End::TimedOut) => "timed out",
        _ => return None,
    })
}
