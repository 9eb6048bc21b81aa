//! The store, tested through its public API and on real files.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod conformance;
