//! Documents as strangers write them: refusals, and how their problems read.

#![expect(clippy::unwrap_used, reason = "what a test helper cannot do fails its test")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod support;
mod sendable;
mod reading;
mod format;
mod routes;
mod branched;
mod branches;
mod reads;
mod files;
mod script;
mod schema;
mod values;
mod examples;
mod edits;
mod combined;
mod bounds;
mod expected;
mod playing;
mod crashes;
mod walk;
mod starts;
mod joins;
mod each;
mod resume;
mod hosted;
mod large;
mod mended;
mod hive;
mod model;
mod sweny;
mod decisions;
mod questions;
mod calls;
mod observed;
mod below;
mod explained;
