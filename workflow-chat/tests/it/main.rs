//! Tests of the crate: streamed text, and chat events.

mod fixtures;
mod retried_streams;
mod text_streams;
mod turns;
