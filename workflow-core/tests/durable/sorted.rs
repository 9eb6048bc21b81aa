//! The golden journals alone, for `ci/sorted-keys`: a program without `serde_json/preserve_order`, which the tests of the
//! workspace have, since a dependency of `workflow-agent` switches it on. All tests of journals without that feature:
//! `cargo test -p workflow-core --test durable`.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod fixtures;
mod golden;
mod shapes;
mod translated;

mod formats {
    pub(crate) mod recorded;
}
