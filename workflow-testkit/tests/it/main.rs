//! The testkit, tested by the scenarios it runs.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod assertions;
mod conformance;
mod contexts;
mod mocks;
mod model;
mod script;
mod stand_ins;
mod support;
mod transcripts;
mod virtual_time;
