//! Documents, expressions and scripts of any content: every one is read or refused, and those that can be bound run to an
//! end, or wait. Nothing panics or runs endlessly.
//!
//! A plain `cargo test` tries some hundred inputs of each target. For a long run of one:
//!
//! ```text
//! BOLERO_RANDOM_ITERATIONS=1000000000 BOLERO_RANDOM_TEST_TIME_MS=900000 \
//!     cargo test --release -p workflow-graph --test fuzz -- readers::
//! ```
//!
//! A failure is reported with a seed, and `BOLERO_RANDOM_SEED=…` repeats it.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod corpus;
mod documents;
mod edits;
mod expressions;
mod readers;
mod runs;
mod watchdog;

use std::time::Duration;

/// The default number of inputs per target.
const INPUTS: usize = 300;

/// The default time limit of a target.
const TIME: Duration = Duration::from_mins(5);

/// Reduces a large number to a valid place.
fn pick(number: u32, count: usize) -> usize {
    usize::try_from(number).unwrap() % count.max(1)
}
