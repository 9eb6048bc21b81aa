//! Processes killed under load (S38–S40): two share a file, which one of them holds at a time. The holder is killed at
//! a random moment, the other takes over, and a new one waits. In the end every run has completed once.
//!
//! A worker is this program, started again with [`worker::FOLDER`] in its environment: then the test acts as a worker.
//! A ledger beside the store, written without buffers, has the workers' actions.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]
#![expect(clippy::print_stderr, reason = "who repeats the kills needs their seed")]

use std::time::Duration;

use crate::kills::Kills;
use crate::worker::{Kind, Role, Worker};

mod clean_up;
mod contexts;
mod doubt;
mod inbox;
mod kills;
mod ledger;
mod load;
mod paused;
mod redriven;
mod verdict;
mod worker;

/// The number of kills: `KILLS=300` makes more than a test needs each time. A few more are made until they tell something.
fn rounds() -> u32 {
    std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

/// The time limit of the whole test, of which it takes a small part.
const DEADLINE: Duration = Duration::from_mins(16);

#[test]
fn runs_complete_once_however_often_their_processes_are_killed() {
    if let Some(role) = Role::given() {
        return worker::work(&role);
    }
    let seed = fastrand::u64(..);
    eprintln!("the moments of the kills are drawn from seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut kills = Kills::new(folder.path(), Kind::Mixed, seed, DEADLINE);
    let rounds = rounds();
    for _ in 0..rounds {
        kills.round();
    }
    // Few kills need luck to hit the moment between the end of a run and the removal of its contexts.
    for _ in 0..10 * rounds {
        if verdict::left(folder.path()) > 0 {
            break;
        }
        kills.round();
    }
    drop(kills);
    Worker::last(folder.path(), Kind::Mixed).finishes(DEADLINE);
    let found = verdict::judge(folder.path());
    eprintln!("{rounds} kills: {found}");
    // Otherwise the test proves nothing: no process was killed during work.
    assert!(found.runs >= u64::from(rounds), "too few runs to say anything: {found}");
    assert!(found.resumed > 0 && found.repeated > 0, "no process was killed while runs were active: {found}");
    assert!(
        found.left > 0,
        "no process was killed between the end of a run and the removal of its contexts: {found}"
    );
}

/// The number of kills of processes with redriven runs: `REDRIVEN_KILLS=100` makes more than a test needs each time.
fn redriven_rounds() -> u32 {
    std::env::var("REDRIVEN_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

// S39
#[test]
fn redriven_runs_lose_and_repeat_nothing_however_often_their_processes_are_killed() {
    let seed = fastrand::u64(..);
    eprintln!("the moments of the kills are drawn from seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut kills = Kills::new(folder.path(), Kind::Redriven, seed, DEADLINE);
    let rounds = redriven_rounds();
    for _ in 0..rounds {
        kills.round();
    }
    drop(kills);
    Worker::last(folder.path(), Kind::Redriven).finishes(DEADLINE);
    let found = redriven::judge(folder.path());
    eprintln!("{rounds} kills: {found:?}");
    assert!(
        found.redrives > 0 && found.resumed > 0,
        "no process was killed while redriven runs ran: {found:?}"
    );
}

/// The number of kills of processes whose runs are paused: `PAUSED_KILLS=100` makes more than a test needs each time.
fn paused_rounds() -> u32 {
    std::env::var("PAUSED_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

// S61
#[test]
fn paused_runs_complete_once_however_often_their_processes_are_killed() {
    let seed = fastrand::u64(..);
    eprintln!("the moments of the kills are drawn from seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut kills = Kills::new(folder.path(), Kind::Paused, seed, DEADLINE);
    let rounds = paused_rounds();
    for _ in 0..rounds {
        kills.round();
    }
    // A machine under load kills some processes before they pause a run.
    for _ in 0..10 * rounds {
        if paused::pauses(folder.path()) >= 2 * rounds as usize {
            break;
        }
        kills.round();
    }
    drop(kills);
    Worker::last(folder.path(), Kind::Paused).finishes(DEADLINE);
    let (found, paused) = (verdict::judge(folder.path()), paused::judge(folder.path()));
    eprintln!("{rounds} kills: {found}; {paused:?}");
    assert!(found.resumed > 0, "no process was killed while runs were active: {found}");
    assert!(paused.pauses > u64::from(rounds), "too few pauses to say anything: {paused:?}");
    assert!(paused.resumed > 0, "no process was killed while runs were paused: {paused:?}");
}
