//! A scheduler's state in words, for comparing two schedulers: the order does not depend on how the state
//! came about.
//!
//! Invariant: the text has the state from which decisions, explanations and reports follow. It leaves out
//! places in memory, the queues, and the order of maps. The caller takes a snapshot when both queues are empty.
//!
//! Example: a live run, and a replay of its journal, write the same text after each batch. The replay check
//! compares the two.

use std::fmt::Write as _;

use super::Scheduler;
use super::board::Board;
use crate::id::ScopeId;

impl Scheduler {
    /// Writes scopes, readiness, executions, open questions, requests and timers, decisions, and the progress
    /// of the run.
    pub(crate) fn write_snapshot(&self, text: &mut String) {
        let Board { scopes: tree, executions, awaited, progress, .. } = &self.board;
        let mut scopes = vec![ScopeId::ROOT];
        tree.below(ScopeId::ROOT, &mut scopes);
        for id in scopes {
            if let Some(scope) = tree.get(id) {
                let _ = writeln!(text, "scope {id}: {}", scope.snapshot());
            }
        }
        for (id, execution) in executions.numbered() {
            let _ = writeln!(text, "execution {id}: {}", execution.snapshot());
        }
        let _ = writeln!(text, "totals: {:?}", executions.counts());
        for (seq, request) in awaited.requests() {
            let _ = writeln!(text, "request {seq}: {request:?}");
        }
        for timer in awaited.timers() {
            let _ = writeln!(text, "timer {timer:?}");
        }
        // The map of groups has no order, so the lines get one here.
        let mut groups: Vec<String> = self.groups.iter().map(|group| format!("group {group:?}")).collect();
        groups.sort_unstable();
        text.extend(groups.into_iter().map(|group| group + "\n"));
        text.extend(self.evaluation.questions().into_iter().map(|question| question + "\n"));
        for decision in self.decisions() {
            let _ = writeln!(text, "{decision:?}");
        }
        if let Some(clean_up) = &self.board.clean_up {
            let _ = writeln!(text, "{clean_up:?}");
        }
        let (last, waits) = (progress.last_seq(), progress.waits);
        let (degraded, end) = (progress.degraded, progress.end());
        let paused = progress.paused;
        let _ =
            writeln!(text, "last {last}, waits {waits}, degraded {degraded}, paused {paused}, end {end:?}");
    }
}
