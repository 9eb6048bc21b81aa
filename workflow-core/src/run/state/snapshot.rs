//! A state as text, line by line, so that two states can be compared. The text has what a journal determines,
//! and nothing else: no start times of attempts, and nothing that the run refused after its end.
//!
//! ```text
//!  live run ─┬─ batches ─▶ RunState ──────────── snapshot ─┐
//!            └─ records ─▶ Replay ─▶ RunState ── snapshot ─┴─▶ equal after every batch
//! ```
//!
//! Invariant: a live run and a replay of its journal write the same text. So each line is derived from
//! batches, in an order that no map decides.
//!
//! Example: a run with one begun execution has a line for the start event, with its JSON, and a line for the running
//! execution. The begin of the execution is absent, since no journal has it.

use std::fmt::Write as _;

use super::children::RecordedChild;
use super::origins::Origins;
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
            // What is open at the end is dropped with the run, now or later, or refused. No journal says which, nor when.
            let is_open_at_end = entry.state == TraceState::Running && self.begins_nothing();
            if is_open_at_end || matches!(entry.state, TraceState::Dropped | TraceState::Refused) {
                let _ = writeln!(text, "trace {execution} #{} dropped", entry.order);
                continue;
            }
            let _ = write!(text, "trace {execution} #{} {:?}", entry.order, entry.state);
            // The end of a running execution is the time of its begin, which is no fact of the journal.
            if entry.state != TraceState::Running {
                let _ = write!(text, " ended at {:?}", entry.ended());
            }
            let _ = write!(text, " emitted {} {}", entry.first_emitted, entry.emitted);
            let _ = write!(text, " {:?}", self.trace.outcome(execution, entry));
            let _ = writeln!(text, " caught {:?}", self.trace.caught_failure(execution));
            for attempt in self.trace.attempts(execution) {
                let FailedAttempt { class, error, retry_in, compacts, redriven } = attempt;
                let how = if *redriven { " redriven" } else { "" };
                let _ =
                    writeln!(text, "attempt of {execution}: {class} {error} {retry_in:?} {compacts}{how}");
            }
        }
        for (due, timer) in self.timers.pending(&self.scheduler) {
            let _ = writeln!(text, "timer {timer:?} due {due:?}");
        }
        for RecordedChild { child, end, .. } in self.children() {
            let _ = writeln!(text, "child {child:?} ended {end:?}");
        }
        for line in self.origins().into_iter().flat_map(Origins::lines) {
            let _ = writeln!(text, "origin {line}");
        }
        for line in self.lives.lines() {
            let _ = writeln!(text, "earlier {line}");
        }
        // A map has no order. The text of an error is compared, since a journal has no more of it.
        let mut failed: Vec<_> = self.failures.executions().iter().collect();
        failed.sort_unstable_by_key(|(execution, _)| **execution);
        for (execution, error) in failed {
            let _ = writeln!(text, "failure of {execution}: {} {error}", error.class());
        }
        self.scheduler.write_snapshot(&mut text);
        text
    }
}
