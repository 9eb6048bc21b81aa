//! Integration tests.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod approvals;
mod budget;
mod builtin;
mod chats;
mod compaction;
mod conversations;
mod judges;
mod lives;
mod macros;
mod pairing;
mod parts;
mod phases;
#[cfg(feature = "providers")]
mod providers;
mod requests;
mod secrets;
mod sessions;
mod spans;
mod tools;
#[cfg(feature = "providers")]
mod validate;
