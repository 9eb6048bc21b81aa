//! Tests of the crate: streamed text, and chat events.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod fixtures;
mod retried_streams;
mod sendable;
mod text_streams;
mod turns;
