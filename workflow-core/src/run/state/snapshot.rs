//! A state as text, line by line, so that two states can be compared. The text has what a journal determines,
//! and nothing else: no start times of attempts, and nothing that the run refused after its end.

use std::fmt::Write as _;

use super::{RunState, TraceState};
use crate::retry::FailedAttempt;

impl RunState {
    /// Everything that follows from the journal, in a fixed order.
    pub(crate) fn snapshot(&self) -> String {
        let mut text = String::new();
        for (seq, record) in self.log.records() {
            let name = &self.table().event(record.index).name;
            let (scope, cause, at) = (record.scope, record.cause, record.at);
            let json = record.event.to_json().map_or_else(|error| error.to_string(), |json| json.to_string());
            let _ = writeln!(text, "log {seq} {name} in {scope} by {cause:?} at {at:?}: {json}");
        }
        for branch in self.log.branches() {
            let _ = writeln!(text, "branch {branch:?}");
        }
        for (execution, entry) in self.trace.numbered() {
            let _ = write!(text, "trace {execution} #{} {:?}", entry.order, entry.state);
            if entry.state != TraceState::Running {
                let _ = write!(text, " ended at {:?}", entry.ended());
            }
            let _ = write!(text, " emitted {} {}", entry.first_emitted, entry.emitted);
            let _ = write!(text, " {:?}", self.trace.outcome(execution, entry));
            let _ = writeln!(text, " caught {:?}", self.trace.caught_failure(execution));
            for FailedAttempt { class, error, retry_in, compacts } in self.trace.attempts(execution) {
                let _ = writeln!(text, "attempt of {execution}: {class} {error} {retry_in:?} {compacts}");
            }
        }
        for (due, timer) in self.timers.pending(&self.scheduler) {
            let _ = writeln!(text, "timer {timer:?} due {due:?}");
        }
        for (child, _) in &self.children {
            let _ = writeln!(text, "child {child:?}");
        }
        let mut failed: Vec<_> = self.failures.executions().iter().collect();
        failed.sort_unstable_by_key(|(execution, _)| **execution);
        for (execution, error) in failed {
            let _ = writeln!(text, "failure of {execution}: {} {error}", error.class());
        }
        self.scheduler.write_snapshot(&mut text);
        text
    }
}
