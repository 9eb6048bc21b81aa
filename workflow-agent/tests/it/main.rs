//! Integration tests.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

mod builtin;
mod macros;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
#[cfg(feature = "providers")]
mod providers;
mod smoke;
#[cfg(feature = "providers")]
mod validate;
