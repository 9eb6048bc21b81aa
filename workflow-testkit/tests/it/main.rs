//! The testkit, tested by the scenarios it runs.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod sendable;
mod support;

/// Scenarios: settings, stand-ins, assertions, transcripts.
mod scenarios {
    mod assertions;
    mod by_hand;
    mod contexts;
    mod guide;
    mod mocks;
    mod run_time;
    pub(crate) mod runs;
    mod script;
    mod stand_ins;
    mod timelines;
    mod transcripts;
}

/// Virtual time.
mod time {
    mod passing_time;
    mod time_by_hand;
    mod times_of_a_run;
    mod virtual_time;
}

/// Explorations of orders, and the model.
mod exploring {
    mod drawn;
    mod explored_scenarios;
    pub(crate) mod independence;
    mod model;
    pub(crate) mod orders;
    mod run_time;
    mod pauses;
    mod surprises;
    mod traps;
}

/// Crashes, stores that go wrong, and the conformance suites.
mod stores {
    mod confirmations;
    mod conformance;
    mod crashes;
    mod faulty;
    mod merged_writes;
}
