//! Journals, contexts and inboxes of [`workflow-core`](workflow_core) in one file.
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
//! let engine = Engine::builder().workflow(Greeter).store(store).build()?;
//! # let _ = engine;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - **One file**, written by [redb](https://docs.rs/redb) in pure Rust. One store at a time has it open: a second one,
//!   in this process or another, gets [`OpenError::InUse`].
//! - **Crash-safe**: an answered write is on disk ([`Durability::Sync`], the default), and a write is in the file as a
//!   whole or not at all. After a crash the next opening repairs the file, which takes as long as reading it.
//! - **Shared commits**: one thread writes, and commits all waiting calls of all runs with one `fsync`. A refused
//!   append fails no other. The more runs write at once, the less each write costs.
//! - **Damage is found**: each record has a checksum, and each run knows how many records it has. Reading a run with a
//!   changed or missing record is [`Corrupt`](workflow_core::store::StoreError::Corrupt). Records of a file of format 1 have
//!   none until they are moved, or copied by a snapshot.
//! - **Cheap reads**: apart from a run's latest writes, its records are one range of keys, and so are pages of runs and
//!   contexts. Reads run on tokio's blocking threads, see all committed writes, and wait for no writer.
//! - **A documented format**, byte by byte and with a version: [`format`](mod@format).
//! - **Limits**: a writing call, for example the JSON of a write with its keys, has at most 1 GiB; the store refuses a
//!   larger one with [`WorkError::TooLarge`]. The queue holds 1,024 writing calls. A commit has at most 1,024 calls and
//!   16 MiB, unless one call has more. A page of records, or of values of a context, ends after 16 MiB.
//!
//! After an error of the disk, such as a full disk, the call fails with `Unavailable`, and its source is a
//! [`WorkError`] with the file and the cause. The store closes the file and opens it again. If that fails, each writing
//! call tries again.
//!
//! # When a sync fails
//! After a failed `fsync` the system may count pages as written that are not on disk, and later calls of `fsync`
//! succeed. So the store first rewrites the file: it writes `runs.redb.rewrite` beside `runs.redb`, and gives it that
//! name. The rewrite needs room for a second file, and the right to create it. Until it succeeds, calls fail with
//! [`WorkError::NotReopened`], whose source is [`OpenError::NotRewritten`].
//!
//! A mark beside the file, `runs.redb.unsynced`, makes other processes rewrite the file before they use it. Do not
//! remove the mark by hand. If the mark cannot be made, the error says so: then keep the store open until it works
//! again, or restart the machine.
//!
//! The new file has mode, owner and group of the old one as far as the process may set them, and no extended
//! attributes. A file with several names (hard links) is not rewritten, and the error says so. A symbolic link is
//! followed.
//!
//! # Costs
//! A commit calls `fsync` once, for one write or for many, and writes the changed pages. Writes are stored in the order
//! of their commits, so that writes of many runs share pages; the store moves them to their runs' records later, 32 of
//! a run at once. In a commit of up to three writes they go there at once. Reading a run of `n` records takes O(`n`).
//!
//! A page of `n` runs, newest first, reads `n` runs through an index: that of the
//! [thread](workflow_core::store::RunQuery::thread), of the [open](workflow_core::store::RunQuery::open) runs or of the
//! [statuses](workflow_core::store::RunQuery::status), or of the [workflow](workflow_core::store::RunQuery::workflow) of the
//! query, whichever the query has first, or of all runs. Runs in the index that the other filters leave out are read and
//! skipped. In the order of ids, a page reads the runs from its place on, or the open ones only; a page of a thread reads
//! the runs of the thread. Looking one run up reads no other.
//!
//! `cargo bench -p workflow-benches --bench durable` measures this beside redb itself and beside decoding the same
//! records; the project's guide on durability has the ratios.
//!
//! # Maintenance
//! [`retain`](workflow_core::store::EventStore::retain) removes ended runs, [`RedbStore::compact`] shrinks the file,
//! [`RedbStore::snapshot`] copies a store in use, and [`StoreFile::check`] verifies a file. The command `workflow-redb`
//! shows the contents of a file, without the program that wrote it. `compact`, `retain`, `redrive` and messages to runs change the file; the runs find
//! their messages in the [inbox](RedbStore::put_message) when an engine resumes them:
//!
//! ```text
//! workflow-redb runs.redb list --newest-first
//! workflow-redb runs.redb show order-17
//! workflow-redb runs.redb explain order-17
//! workflow-redb runs.redb requests order-17
//! workflow-redb runs.redb graph order-17 > order-17.mmd
//! workflow-redb runs.redb export order-17 > order-17.jsonl
//! workflow-redb runs.redb check
//! workflow-redb runs.redb snapshot backup.redb
//! workflow-redb runs.redb compact
//! workflow-redb runs.redb retain --last 1000 --within 30d --failed
//! workflow-redb runs.redb redrive order-17
//! workflow-redb runs.redb send order-17 Paid '{"by": "ada"}' --id payment-4
//! workflow-redb runs.redb reply order-17 2 true
//! workflow-redb runs.redb cancel order-17 'sold out'
//! workflow-redb runs.redb pause order-17
//! workflow-redb runs.redb unpause order-17
//! workflow-redb runs.redb inbox
//! workflow-redb runs.redb withdraw order-17 payment-4
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
mod inbox;
mod index;
mod journal;
mod listing;
mod opened;
mod overlay;
mod queue;
mod recent;
mod retention;
mod rewrite;
mod seal;
mod shared;
mod snapshot;
mod store;
mod store_file;
mod summary;
mod tables;
mod upgrade;

pub use builder::{Durability, RedbStoreBuilder};
pub use check::{Problem, Report};
pub use error::{InboxError, OpenError, WorkError};
pub use inbox::PendingMessage;
pub use store::RedbStore;
pub use store_file::StoreFile;
pub use workflow_core::store::Retention;

/// The pages of the guide that need this crate, compiled and run with its other examples.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/getting-started.md")]
    struct GettingStarted;
    #[doc = include_str!("../../docs/guide/operate.md")]
    struct Operate;
}
