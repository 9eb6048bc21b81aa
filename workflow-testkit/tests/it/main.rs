//! The testkit, tested by the scenarios it runs.

mod assertions;
mod conformance;
mod contexts;
mod mocks;
mod script;
mod stand_ins;
mod support;
mod transcripts;
mod virtual_time;
