//! A scheduler's state in words, in an order that does not depend on how it came to it.

use std::fmt::Write as _;

use super::Scheduler;
use crate::id::ScopeId;

impl Scheduler {
    /// Scopes, readiness, executions, what is asked and awaited, decisions, and how the run stands.
    pub(crate) fn write_snapshot(&self, text: &mut String) {
        let mut scopes = vec![ScopeId::ROOT];
        self.scopes.below(ScopeId::ROOT, &mut scopes);
        for id in scopes {
            if let Some(scope) = self.scopes.get(id) {
                let _ = writeln!(text, "scope {id}: {}", scope.snapshot());
            }
        }
        for (id, execution) in self.executions.numbered() {
            let _ = writeln!(text, "execution {id}: {}", execution.snapshot());
        }
        let _ = writeln!(text, "totals: {:?}", self.executions.counts());
        for (seq, request) in self.awaited.requests() {
            let _ = writeln!(text, "request {seq}: {request:?}");
        }
        for timer in self.awaited.timers() {
            let _ = writeln!(text, "timer {timer:?}");
        }
        let mut groups: Vec<String> = self.groups.iter().map(|group| format!("group {group:?}")).collect();
        groups.sort_unstable();
        text.extend(groups.into_iter().map(|group| group + "\n"));
        text.extend(self.evaluation.questions().into_iter().map(|question| question + "\n"));
        for decision in self.decisions() {
            let _ = writeln!(text, "{decision:?}");
        }
        let (last, waits, degraded, end) = (self.last_seq, self.waits, self.degraded, &self.end);
        let _ = writeln!(text, "last #{last}, waits {waits}, degraded {degraded}, end {end:?}");
    }
}
