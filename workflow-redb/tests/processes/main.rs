//! Processes that are killed under load (S38–S40): two share a file, which one of them holds at a time. Whoever holds it
//! is killed at a random moment, the other takes over, and a new one waits. In the end every run has completed once.
//!
//! A worker is this program, started again with [`worker::FOLDER`] in its environment: the test does then what a worker
//! does. What workers did is in a ledger beside the store, written past all buffers.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]
#![expect(clippy::print_stderr, reason = "who repeats the kills needs their seed")]

use std::time::Duration;

use crate::kills::Kills;
use crate::worker::{Role, Worker};

mod contexts;
mod kills;
mod ledger;
mod load;
mod verdict;
mod worker;

/// How often a process is killed: `KILLS=300` does it more often than a test needs each time.
fn rounds() -> u32 {
    std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(200)
}

/// How long all of it may take. It takes a small part of that.
const DEADLINE: Duration = Duration::from_mins(16);

#[test]
fn runs_complete_once_however_often_their_processes_are_killed() {
    if let Some(role) = Role::given() {
        return worker::work(&role);
    }
    let seed = fastrand::u64(..);
    eprintln!("the moments of the kills are drawn from seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut kills = Kills::new(folder.path(), seed, DEADLINE);
    let rounds = rounds();
    for _ in 0..rounds {
        kills.round();
    }
    drop(kills);
    Worker::last(folder.path()).finishes(DEADLINE);
    let found = verdict::judge(folder.path());
    eprintln!("{rounds} kills: {found}");
    // Else nothing was shown: nobody was killed while there was work.
    assert!(found.runs >= u64::from(rounds), "too few runs to say anything: {found}");
    assert!(found.resumed > 0 && found.repeated > 0, "nobody was killed while runs went on: {found}");
    assert!(
        found.left > 0,
        "nobody was killed between the end of a run and the removal of its contexts: {found}"
    );
}
