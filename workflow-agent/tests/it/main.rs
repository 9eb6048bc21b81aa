//! Integration tests.
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod approvals;
mod budget;
mod builtin;
mod chats;
mod macros;
mod orders;
mod parts;
#[cfg(feature = "providers")]
mod providers;
mod requests;
mod secrets;
mod spans;
mod tools;
#[cfg(feature = "providers")]
mod validate;
