//! The store, tested through its public API: on real files, and on a disk whose power can be cut.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod checks;
mod command;
mod committing;
mod conformance;
mod disk;
mod engine;
mod file_format;
mod fixtures;
mod maintenance;
mod opening;
mod power_cut;
