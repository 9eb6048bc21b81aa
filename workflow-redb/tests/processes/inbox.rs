//! Processes that die while they apply the messages of an inbox (S67): before a message is settled and after it, for each
//! message. The next process goes on, and in the end the journal has each act once, in order.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, Inbox, InboxMessage, Position, Record, RunMessage, StoreFuture};
use workflow_core::{Pause, RunId, RunOptions, RunStatus, Seq};
use workflow_redb::RedbStore;

use crate::worker::FOLDER;

/// The settling at which a worker dies, and when: `3 before`.
const DEATH: &str = "WORKFLOW_REDB_WORKER_DIES_AT_SETTLING";

/// The exit code of a worker that has done everything before its death.
const SURVIVED: i32 = 7;

/// The signal of an abort.
const ABORTED: i32 = 6;

/// The test that is a worker in the processes that it starts.
const TEST: &str = "inbox::messages_are_applied_once_wherever_their_process_is_killed";

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Opened;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct MayClose;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(Vec<u64>);

struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn open(&self, _opened: &Opened) -> MayClose {
        MayClose
    }

    #[step]
    async fn close(&self, notes: &FixedList<Note, 3>, _may: &Reply<MayClose>) -> Closed {
        Closed(notes.iter().map(|note| note.0).collect())
    }
}

/// An inbox whose process dies at one of its settlings.
struct Deadly {
    inbox: RedbStore,
    /// How many settlings are left before the last.
    left: AtomicU32,
    /// Whether the last one does not happen.
    is_before: bool,
}

impl Inbox for Deadly {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        self.inbox.pending(run, at_most)
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let is_last = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.is_before {
            dies();
        }
        let settled = self.inbox.settle(run, message, result);
        StoreFuture::new(async move {
            settled.await?;
            if is_last { dies() } else { Ok(()) }
        })
    }
}

/// Ends this process as a kill does: nothing is flushed, and nothing is dropped.
fn dies() -> ! {
    std::process::abort()
}

fn note(number: u64) -> RunMessage {
    RunMessage::Send { event: "Note".into(), data: number.into() }
}

/// The messages, in their order, and whether the run takes them.
fn messages(request: Seq) -> Vec<(&'static str, RunMessage, bool)> {
    vec![
        ("note-1", note(1), true),
        ("unfit", RunMessage::Send { event: "Note".into(), data: json!("one") }, false),
        ("pause", RunMessage::Pause { how: Pause::AfterRunning }, true),
        ("note-2", note(2), true),
        ("unpause", RunMessage::Unpause, true),
        ("note-3", note(3), true),
        ("unknown", RunMessage::Reply { request: Seq(99), data: true.into() }, false),
        ("reply", RunMessage::Reply { request, data: true.into() }, true),
    ]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Leaves a waiting run in the file, and its messages.
fn begin(file: &Path) -> Seq {
    let runtime = runtime();
    let request = runtime.block_on(async {
        let store = RedbStore::open(file).unwrap();
        let engine = Engine::builder().workflow(Desk).store(store.clone()).build().unwrap();
        let run = engine.start_with::<Desk>(Opened, RunOptions::new().id("desk-1")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        let request = run.requests().await.unwrap()[0].seq();
        engine.shut_down(Duration::ZERO).await;
        for (id, message, _) in messages(request) {
            let message = InboxMessage::new(id, message, SystemTime::now());
            store.put_message("desk-1", message).await.unwrap();
        }
        request
    });
    runtime.shutdown_timeout(Duration::from_mins(1));
    request
}

/// The worker: applies the messages until it dies, or the run has ended.
fn works(folder: &Path, death: &str) {
    let (at, when) = death.split_once(' ').unwrap();
    let runtime = runtime();
    runtime.block_on(async {
        let store = RedbStore::open(folder.join("runs.redb")).unwrap();
        let left = AtomicU32::new(at.parse().unwrap());
        let deadly = Deadly { inbox: store.clone(), left, is_before: when == "before" };
        // Each of these processes is killed: that is no fault of what it executes.
        let engine = Engine::builder().workflow(Desk).max_interrupted_attempts(u32::MAX);
        let engine = engine.store(store.clone()).inbox(Arc::new(deadly)).build().unwrap();
        let has_ended = engine.resume_open_runs().await.unwrap().runs.is_empty();
        let run = engine.attach::<Desk>("desk-1").await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Closed(vec![1, 2, 3]));
        // No engine takes up a run that has ended, which the reply may have done before it was settled.
        while !has_ended && !store.pending(&"desk-1".into(), 1).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    std::process::exit(SURVIVED);
}

/// The ids of the acts in the journal, in its order.
fn acts(records: &[Record]) -> Vec<String> {
    let origin = |record: &Record| match record {
        Record::EventLogged { origin, .. }
        | Record::RunPaused { origin, .. }
        | Record::RunUnpaused { origin, .. } => origin.as_ref().and_then(|origin| origin.id.clone()),
        _ => None,
    };
    records.iter().filter_map(origin).map(|id| id.to_string()).collect()
}

/// Starts workers that die in turns at these settlings, until one survives. Returns how many died.
fn dies_in_turns(folder: &Path, deaths: &[&str]) -> u32 {
    let mut died = 0;
    for death in deaths.iter().cycle() {
        let mut worker = Command::new(std::env::current_exe().unwrap());
        worker.args(["--exact", TEST, "--nocapture"]).env(FOLDER, folder).env(DEATH, death);
        let ended = worker.output().unwrap();
        match (ended.status.code(), ended.status.signal()) {
            (Some(SURVIVED), _) => return died,
            (None, Some(ABORTED)) => died += 1,
            _ => panic!("{:?}: {}", ended.status, String::from_utf8_lossy(&ended.stderr)),
        }
        assert!(died < 100, "the workers do not get on");
    }
    died
}

// S67
#[test]
fn messages_are_applied_once_wherever_their_process_is_killed() {
    if let Ok(death) = std::env::var(DEATH) {
        return works(std::env::var_os(FOLDER).unwrap().as_ref(), &death);
    }
    // At every settling: first before it, and in the next process after it.
    for deaths in [&["1 before", "1 after"][..], &["2 before"], &["1 after"], &["3 after", "2 before"]] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.redb");
        let messages = messages(begin(&file));
        let died = dies_in_turns(folder.path(), deaths);
        assert!(died > 1, "no process died: {deaths:?}");
        let store = RedbStore::open(&file).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let run = RunId::from("desk-1");
        let records = runtime.block_on(store.read(&run, Position(0), usize::MAX)).unwrap();
        let (taken, refused): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(_, _, is_taken)| *is_taken);
        let taken: Vec<_> = taken.iter().map(|(id, ..)| *id).collect();
        assert_eq!(acts(&records), taken, "{deaths:?}");
        let found = runtime.block_on(store.refused_messages()).unwrap();
        let found: Vec<_> = found.iter().map(|refused| refused.message.id.to_string()).collect();
        assert_eq!(found, refused.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), "{deaths:?}");
        let left = runtime.block_on(store.pending(&run, 2)).unwrap();
        assert!(left.iter().all(|message| &*message.id == "reply") && left.len() < 2, "{left:?}");
        assert!(runtime.block_on(store.check()).unwrap().is_sound());
    }
}
