//! Integration tests.

<<<<<<< HEAD
#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

mod approvals;
mod budget;
mod builtin;
mod chats;
mod macros;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod parts;
#[cfg(feature = "providers")]
mod providers;
mod requests;
mod secrets;
mod spans;
mod tools;
#[cfg(feature = "providers")]
mod validate;
=======
mod projects;
mod smoke;
mod sub_agents;
>>>>>>> agent-t3
