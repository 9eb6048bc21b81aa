//! Small front ends that need nothing but the public API: a server, a document format, and a worker.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod document;
mod hostile;
mod line_server;
mod worker;
