//! The testkit, tested by the scenarios it runs.

mod assertions;
mod contexts;
mod script;
mod support;
mod transcripts;
mod virtual_time;
