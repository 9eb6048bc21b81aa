//! Integration tests.

mod compaction;
mod conversations;
mod judges;
mod lives;
pub mod pairing;
mod phases;
mod sessions;
mod smoke;
