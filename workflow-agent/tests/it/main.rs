//! Integration tests.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod memory;
