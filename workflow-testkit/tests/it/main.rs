//! The testkit, tested by the scenarios it runs.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod assertions;
mod by_hand;
mod confirmations;
mod conformance;
mod contexts;
mod crashes;
mod drawn;
mod explored_scenarios;
mod faulty;
mod guide;
mod independence;
mod merged_writes;
mod mocks;
mod model;
mod orders;
mod passing_time;
mod runs;
mod script;
mod stand_ins;
mod support;
mod surprises;
mod time_by_hand;
mod timelines;
mod times_of_a_run;
mod transcripts;
mod traps;
mod virtual_time;
