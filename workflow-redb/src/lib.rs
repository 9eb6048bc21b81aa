//! Journals and contexts of [`workflow-core`](workflow_core) in one file.
//!
//! ```
//! use workflow_core::prelude::*;
//! use workflow_redb::RedbStore;
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! #[event(start)]
//! struct Greet { name: String }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! #[event(stop)]
//! struct Greeting(String);
//!
//! struct Greeter;
//!
//! #[workflow]
//! impl Greeter {
//!     #[step]
//!     async fn greet(&self, greet: &Greet) -> Greeting {
//!         Greeting(format!("Hello, {}!", greet.name))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("runs.redb");
//! let store = RedbStore::open(&path)?;
//! let engine = Engine::builder().workflow(Greeter).store(store.clone()).contexts(store).build()?;
//! # let _ = engine;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//! - **One file**, written by [redb](https://docs.rs/redb) in pure Rust. It is open in one place at a time: a second
//!   handle, in this process or another, gets [`OpenError::InUse`].
//! - **Crash-safe**: what was answered is on disk ([`Durability::Sync`], the default), and a batch is there as a whole or
//!   not at all. After a crash the file mends itself when it is opened, which takes as long as reading it.
//! - **Commits are shared**: one thread writes, and what waits for it is committed together, across runs, with one
//!   `fsync`. An append that is refused refuses nothing but itself. The more runs write at once, the less each costs.
//! - **Reading is cheap**: but for its latest batches, the records of a run are one range of keys, and so are pages of
//!   runs and contexts. Reads happen on tokio's blocking threads, see what was committed, and wait for nobody who writes.
//! - **The format is documented**, byte by byte and with a version: [`format`](mod@format).
//! - **Bounds**: 1 GiB for a call that writes, such as the JSON of a batch with its keys, beyond which it is refused with
//!   [`WorkError::TooLarge`]; a queue of 1,024 calls that write; commits of at most 1,024 calls and 16 MiB, unless one call
//!   has more; pages of records, and of values of a context, that end behind 16 MiB.
//!
//! After an error of the disk, such as a full one, the call fails with `Unavailable`, whose source is a [`WorkError`]
//! that names file and cause. The store closes the file and opens it again, and if that fails, tries again with each call
//! that writes.
//!
//! # When a sync fails
//! After a failed `fsync` the system may take for written what is not on disk, and later calls of `fsync` succeed. So the
//! store writes the file anew before anything else: to `runs.redb.rewrite` beside `runs.redb`, which then takes its name.
//! That needs room for a second file and the right to create it; until it succeeds, calls fail with
//! [`WorkError::NotReopened`], whose source is [`OpenError::NotRewritten`]. A mark beside the file, `runs.redb.unsynced`,
//! makes another process do the same before it uses the file. Do not remove the mark by hand. If not even the mark can be
//! made, the error says so: then keep the store open until it works again, or restart the machine. The new file has
//! mode, owner and group of the old one as far as the process may set them, and no extended attributes. A file with
//! several names (hard links) is not rewritten, and the error says so; a symbolic link is followed.
//!
//! # What it costs
//! A commit calls `fsync` once, whether it is of one batch or of many, and writes the pages that changed: batches lie in
//! the order in which they come, and are moved to the other records of their runs later, 32 of a run at once, so that
//! batches of many runs share pages; where a commit is of up to three, they are put there at once. To read a run of `n` records takes O(`n`).
//! `cargo bench -p workflow-benches --bench durable` measures it beside redb itself and beside decoding the same records;
//! the guide of the project on durability has the ratios.
//!
//! # Maintenance
//! [`retain`](workflow_core::EventStore::retain) removes runs that ended, [`RedbStore::compact`] makes the file smaller,
//! [`RedbStore::snapshot`] copies the store while it is used, [`StoreFile::check`] verifies a file. The command
//! `workflow-redb` shows what is in a file, without the program that wrote it, and never changes it:
//!
//! ```text
//! workflow-redb runs.redb list
//! workflow-redb runs.redb show order-17
//! workflow-redb runs.redb explain order-17
//! workflow-redb runs.redb graph order-17 > order-17.mmd
//! workflow-redb runs.redb export order-17 > order-17.jsonl
//! workflow-redb runs.redb check
//! ```

// Fixtures that unit tests share with the others name the crate.
#[cfg(test)]
extern crate self as workflow_redb;

#[cfg(test)]
#[path = "../tests/it/disk.rs"]
#[expect(dead_code, reason = "others use the rest")]
mod disk;
#[cfg(test)]
#[path = "../tests/it/fixtures.rs"]
#[expect(dead_code, reason = "others use the rest")]
mod fixtures;

mod builder;
mod check;
mod closing;
mod committer;
mod contexts;
mod error;
mod file;
mod files;
pub mod format;
mod journal;
mod opened;
mod overlay;
mod queue;
mod recent;
mod retention;
mod rewrite;
mod shared;
mod snapshot;
mod store;
mod store_file;
mod tables;

pub use builder::{Durability, RedbStoreBuilder};
pub use check::{Problem, Report};
pub use error::{OpenError, WorkError};
pub use store::RedbStore;
pub use store_file::StoreFile;
pub use workflow_core::Retention;
