//! The settings of an engine for its runs.

use std::time::Duration;

use super::RunLimits;
use crate::display::DEFAULT_DISPLAY_CAPACITY;
use crate::event::EventCheck;

/// The most commands that wait for a busy run. Further senders wait.
const DEFAULT_MAILBOX_CAPACITY: usize = 64;

/// How long a run of a store waits before the engine unloads it.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many attempts of an execution may be interrupted.
const DEFAULT_INTERRUPTED_ATTEMPTS: u32 = 5;

/// The settings that an engine has for every run.
#[derive(Debug, Clone)]
pub(crate) struct RunSettings {
    /// Limits of the log and of executions.
    pub(crate) limits: RunLimits,
    /// The limit on active time of a run whose own options have none; `None` without a limit.
    pub(crate) timeout: Option<Duration>,
    /// How long a clean-up step may take; `None` for as long as its retries.
    pub(crate) clean_up: Option<Duration>,
    /// The most display items that a run keeps.
    pub(crate) display_capacity: usize,
    /// The most commands that wait for a run.
    pub(crate) mailbox_capacity: usize,
    /// How many attempts of an execution may be interrupted; at least 1.
    pub(crate) interrupted_attempts: u32,
    /// How long a run waits before the engine unloads it; `None` if it never does.
    pub(crate) idle_timeout: Option<Duration>,
    /// The checks that an event must pass to enter a run.
    pub(crate) events: EventCheck,
    /// Whether middleware is around the calls of steps. It may start children.
    pub(crate) has_middleware: bool,
}

impl RunSettings {
    /// The settings for this kind of store. A run without a journal is never unloaded, because its memory is
    /// all that there is of it.
    pub(crate) fn kept(mut self, is_durable: bool, serialises: bool) -> Self {
        self.idle_timeout = self.idle_timeout.filter(|_| is_durable);
        self.events.serialises = serialises;
        self
    }
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            limits: RunLimits::default(),
            timeout: None,
            clean_up: None,
            display_capacity: DEFAULT_DISPLAY_CAPACITY,
            mailbox_capacity: DEFAULT_MAILBOX_CAPACITY,
            interrupted_attempts: DEFAULT_INTERRUPTED_ATTEMPTS,
            idle_timeout: Some(DEFAULT_IDLE_TIMEOUT),
            events: EventCheck { most_bytes: None, serialises: false },
            has_middleware: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_with_journals_are_unloaded() {
        let settings = RunSettings::default();
        assert_eq!(settings.clone().kept(true, true).idle_timeout, Some(DEFAULT_IDLE_TIMEOUT));
        assert_eq!(settings.kept(false, false).idle_timeout, None);
    }

    #[test]
    fn events_are_checked_as_the_store_needs_it() {
        let checks =
            |is_durable, serialises| RunSettings::default().kept(is_durable, serialises).events.serialises;
        assert_eq!((checks(true, true), checks(true, false), checks(false, false)), (true, false, false));
    }
}
