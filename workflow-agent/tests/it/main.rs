//! Integration tests.

mod smoke;
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod builtin;
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod macros;
#[cfg(feature = "providers")]
mod providers;
#[cfg(feature = "providers")]
mod validate;
