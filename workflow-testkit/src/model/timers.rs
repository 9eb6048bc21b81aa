//! Timers. A batch sets a timer, which is pending while its scope is open and keeps that scope busy until it fires
//! (S30, S47). The timer of an expiring request is pending while the request is open (S32).

use workflow_core::report::TimerId;
use workflow_core::scheduler::Cause;
use workflow_core::{ExecutionId, Seq};

use super::Model;
use super::line::{Line, TimerLine};

/// A timer of a batch.
#[derive(Debug)]
pub(super) struct Timer {
    line: TimerLine,
    /// Whether its batch was confirmed while its scope was open.
    is_set: bool,
    has_fired: bool,
}

impl Model {
    /// The numbers of the timers that are pending.
    pub fn pending_timers(&self) -> Vec<u64> {
        self.pending().map(|timer| timer.line.timer).collect()
    }

    pub(super) fn pending_scopes(&self) -> Vec<u32> {
        self.pending().map(|timer| timer.line.scope).collect()
    }

    fn pending(&self) -> impl Iterator<Item = &Timer> {
        let open = self.open_requests();
        self.timers.iter().filter(move |timer| {
            let TimerLine { scope, request, .. } = timer.line;
            let is_wanted = request.is_none_or(|request| open.contains(&request));
            timer.is_set && !timer.has_fired && self.is_open(scope) && is_wanted
        })
    }

    pub(super) fn number_timer(
        &mut self,
        execution: u64,
        scope: u32,
        event: usize,
        request: Option<u64>,
    ) -> TimerLine {
        let timer = self.timers.len() as u64 + 1;
        let line = TimerLine { timer, execution, scope, event, request };
        self.timers.push(Timer { line, is_set: false, has_fired: false });
        line
    }

    /// Sets a timer whose batch is in the log.
    pub(super) fn set_timer(&mut self, timer: u64) {
        let scope = self.timer(timer).line.scope;
        let is_open = self.is_open(scope);
        self.timer(timer).is_set = is_open;
    }

    /// Fires a timer.
    pub(super) fn fire(&mut self, timer: u64) {
        if self.is_closed() || !self.pending_timers().contains(&timer) {
            self.out.push_back(Line::RefusesReceived);
            return;
        }
        self.timer(timer).has_fired = true;
        let TimerLine { execution, scope, event, request, .. } = self.timer(timer).line;
        self.closed.extend(request);
        let cause = match request {
            Some(request) => Cause::Expired(Seq(request)),
            None => Cause::Timer { timer: TimerId(timer), execution: ExecutionId(execution) },
        };
        self.append_one(cause, scope, event);
    }

    fn timer(&mut self, timer: u64) -> &mut Timer {
        &mut self.timers[usize::try_from(timer).expect("timers are few") - 1]
    }
}
