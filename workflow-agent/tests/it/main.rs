//! Integration tests.
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod builtin;
mod macros;
mod parts;
#[cfg(feature = "providers")]
mod providers;
mod requests;
#[cfg(feature = "providers")]
mod validate;
