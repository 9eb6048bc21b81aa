//! The store, tested through its public API: on real files, and on a disk whose power can be cut.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod checks;
mod command;
mod committing;
mod conformance;
mod contexts;
mod crashes;
mod disk;
mod engine;
mod explained;
mod file_format;
mod fixtures;
mod large;
#[cfg(target_os = "linux")]
mod limited;
mod maintenance;
mod nested;
mod opening;
#[cfg(target_os = "linux")]
mod permissions;
mod power_cut;
mod reopening;
#[cfg(unix)]
mod rewriting;
#[cfg(target_os = "linux")]
mod room;
