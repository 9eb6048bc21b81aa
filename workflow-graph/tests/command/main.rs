//! The command, as a process: its output, its exit codes, and runs that outlive it.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;
mod documents;
mod runs;
mod questions;
mod stored;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod terminal;
