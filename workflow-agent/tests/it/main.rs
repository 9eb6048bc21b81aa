//! Integration tests.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

mod approvals;
mod approvals_many;
mod budget;
mod builtin;
mod calls;
mod chats;
mod compaction;
mod conversations;
mod crashes;
mod fuzz;
mod graph;
mod hostile;
mod judges;
mod lives;
mod macros;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod orders;
mod pairing;
mod parts;
mod phases;
mod projects;
#[cfg(feature = "providers")]
mod providers;
mod requests;
mod secrets;
mod sendable;
mod sessions;
mod shown;
mod spans;
mod sub_agents;
mod tools;
#[cfg(all(feature = "mcp", feature = "providers"))]
mod traces;
#[cfg(feature = "providers")]
mod validate;
mod windows;
mod written;
