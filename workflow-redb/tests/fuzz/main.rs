//! Files and journals that were changed from outside: every reader returns a result or a typed error. It neither panics
//! nor runs endlessly.
//!
//! A plain `cargo test` tries a few hundred inputs of each target. For a long run, with optimised code that still checks
//! for overflow:
//!
//! ```text
//! BOLERO_RANDOM_ITERATIONS=1000000000 BOLERO_RANDOM_TEST_TIME_MS=900000 \
//!     CARGO_PROFILE_DEV_OPT_LEVEL=2 cargo test -p workflow-redb --test fuzz
//! ```
//!
//! A failure is reported with a seed: `BOLERO_RANDOM_SEED=… cargo test -p workflow-redb --test fuzz` repeats it. With
//! `cargo-bolero`, the same targets run under a fuzzer that looks for new paths: `cargo bolero test files::…`.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod entries;
mod files;
#[path = "../it/fixtures.rs"]
#[expect(dead_code, reason = "others use the rest")]
mod fixtures;
mod journals;
mod mutate;
mod shapes;
mod watchdog;

use std::time::Duration;

/// The default number of inputs per target.
const INPUTS: usize = 300;

/// The default time limit of a target.
const TIME: Duration = Duration::from_mins(5);

/// A change of an input: the operation, the place, and the value.
type Edit = (u8, u32, u32, u8);

/// Keeps only a few edits: they leave more of the input valid, and reach further.
fn few(edits: &[Edit]) -> &[Edit] {
    let most =
        edits.first().map_or(0, |(_, _, _, with)| if with % 8 == 0 { 32 } else { 1 + usize::from(with % 4) });
    &edits[..edits.len().min(most)]
}

/// Reduces a large number to a valid place or value.
fn pick(number: u32, count: usize) -> usize {
    usize::try_from(number).unwrap() % count.max(1)
}
