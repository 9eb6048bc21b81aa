//! The golden journals alone, for `ci/preserve-order`: a program that switches on `serde_json/preserve_order`, and that
//! compiles no more than they need. All tests of journals with that feature:
//! `cargo test -p workflow-core-tests --features serde_json/preserve_order --test durable`.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod fixtures;
mod golden;
mod shapes;
mod translated;

mod formats {
    pub(crate) mod recorded;
}
