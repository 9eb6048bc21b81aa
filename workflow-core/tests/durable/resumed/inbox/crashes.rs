//! Runs with messages survive a crash, and a fault, at each write to the store and each call of the inbox (S62, S67).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Inbox, InboxMessage, MemoryInbox, MemoryStore, Position, Record, Retention,
    RunMessage, RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{Origin, Pause, RunError, RunId, RunOptions, RunStatus, Seq};
use workflow_testkit::VirtualClock;

use super::{Approve, Elapsed, note};
use crate::fixtures::{Begin, Done, Note};

/// Asks, takes notes, and cleans up.
struct Counter;

#[workflow]
impl Counter {
    #[step]
    async fn open(&self, _begin: &Begin) -> (Approve, Timer<Elapsed>) {
        (Approve, Timer::after(Duration::from_hours(9), Elapsed))
    }

    #[step]
    async fn file(&self, _note: &Note) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    #[step]
    async fn elapse(&self, _elapsed: &Elapsed) {}

    #[step]
    async fn close(&self, approved: &Reply<Approve>) -> Done {
        Done(u32::from(**approved))
    }

    #[step(on_end)]
    async fn tidy(&self, _begin: &Begin) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The fault of a process at one of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The process is killed, and makes no call any more.
    Killed,
    /// The call fails, and the process lives.
    Fails,
}

/// A fault, the number of the call before which the others pass, and whether that call takes effect.
#[derive(Debug, Clone, Copy)]
struct Plan {
    fault: Fault,
    after: usize,
    takes_effect: bool,
}

/// The calls of one process.
struct Process {
    plan: Plan,
    /// The calls so far. None counts before the messages are there.
    calls: AtomicUsize,
    counts: AtomicBool,
    is_dead: AtomicBool,
    /// Notified when it is killed.
    killed: Notify,
}

impl Process {
    fn new(plan: Plan, counts: bool) -> Arc<Self> {
        Arc::new(Self {
            plan,
            calls: AtomicUsize::new(0),
            counts: AtomicBool::new(counts),
            is_dead: AtomicBool::new(false),
            killed: Notify::new(),
        })
    }

    fn is_reached(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > self.plan.after
    }

    fn call<T: Send + 'static>(&self, call: impl FnOnce() -> StoreFuture<T>) -> StoreFuture<T> {
        if self.is_dead.load(Ordering::SeqCst) {
            return StoreFuture::new(std::future::pending());
        }
        let is_counted = self.counts.load(Ordering::SeqCst);
        if !is_counted || self.calls.fetch_add(1, Ordering::SeqCst) != self.plan.after {
            return call();
        }
        if self.plan.takes_effect {
            drop(call());
        }
        if self.plan.fault == Fault::Fails {
            return StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other("no route"))));
        }
        self.is_dead.store(true, Ordering::SeqCst);
        self.killed.notify_one();
        StoreFuture::new(std::future::pending())
    }

    /// A call that changes nothing. It does not count.
    fn ask<T: Send + 'static>(&self, call: impl FnOnce() -> StoreFuture<T>) -> StoreFuture<T> {
        if self.is_dead.load(Ordering::SeqCst) { StoreFuture::new(std::future::pending()) } else { call() }
    }
}

/// The store and the inbox of a process.
#[derive(Clone)]
struct Face {
    store: Arc<MemoryStore>,
    inbox: Arc<MemoryInbox>,
    process: Arc<Process>,
}

impl Inbox for Face {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        self.process.call(|| self.inbox.pending(run, at_most))
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        self.process.call(|| self.inbox.settle(run, message, result))
    }
}

impl EventStore for Face {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        self.process.call(|| self.store.append(run, expected, write))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.process.ask(|| self.store.read(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.process.ask(|| self.store.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.process.ask(|| self.store.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.process.ask(|| self.store.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.process.ask(|| self.store.lease(engine, duration))
    }
}

/// The messages to a run, and what becomes of them.
struct Script {
    messages: Vec<RunMessage>,
    /// The ids of those that are refused in any case, and of those that the end may overtake.
    refused: &'static [&'static str],
    may_be_refused: &'static [&'static str],
    ends: RunStatus,
    /// Whether a handle replies too, in the first process.
    replies: bool,
    /// Whether engines unload runs that wait.
    unloads: bool,
}

/// A run `a` and the things that outlive its processes.
struct World<'a> {
    script: &'a Script,
    store: Arc<MemoryStore>,
    inbox: Arc<MemoryInbox>,
    clock: VirtualClock,
}

impl World<'_> {
    fn engine(&self, process: &Arc<Process>) -> Engine {
        let face = Face {
            store: Arc::clone(&self.store),
            inbox: Arc::clone(&self.inbox),
            process: Arc::clone(process),
        };
        let builder = Engine::builder().workflow(Counter).clock(self.clock.clone());
        let builder =
            if self.script.unloads { builder.unload_waiting_after(Duration::ZERO) } else { builder };
        builder.store(face.clone()).inbox(face).build().unwrap()
    }

    /// Begins the run. Its messages come at once, or once no engine has it.
    async fn begin(&self, process: &Arc<Process>, comes_live: bool) {
        let unharmed = Process::new(Plan { fault: Fault::Fails, after: 0, takes_effect: true }, false);
        let engine = self.engine(if comes_live { process } else { &unharmed });
        let run = engine.start_with::<Counter>(Begin(0), RunOptions::new().id("a")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        if !comes_live {
            engine.shut_down(Duration::ZERO).await;
        }
        for (id, message) in self.script.messages.iter().enumerate() {
            self.inbox.put("a", id.to_string(), message.clone()).unwrap();
        }
        process.counts.store(true, Ordering::SeqCst);
        if comes_live {
            engine.notify_inbox(&"a".into());
            if self.script.replies {
                tokio::task::yield_now().await;
                let run = run.any().clone();
                tokio::spawn(async move { run.reply_json(Seq(2), json!(true)).await });
            }
            self.live(&engine, process).await;
        } else {
            self.live(&self.engine(process), process).await;
        }
    }

    /// Drives the run until it has ended or the process is killed.
    async fn live(&self, engine: &Engine, process: &Process) {
        let ends = async {
            loop {
                let Ok(run) = engine.attach_any("a").await else { continue };
                match run.outcome_any().await {
                    Err(RunError::Store { .. } | RunError::Detached | RunError::Conflict { .. }) => {}
                    _ => break,
                }
            }
            // An inbox that fails once the run has ended is asked again when somebody calls.
            while !self.inbox.pending(&"a".into(), 1).await.unwrap().is_empty() {
                engine.notify_inbox(&"a".into());
                tokio::time::sleep(Duration::from_secs(6)).await;
            }
        };
        let lived = async {
            tokio::select! {
                () = process.killed.notified() => {}
                () = ends => {}
            }
        };
        let lived = timeout(Duration::from_hours(1), lived).await;
        if lived.is_err() {
            let records = self.store.read(&"a".into(), Position(0), usize::MAX).await.unwrap();
            let pending = self.inbox.pending(&"a".into(), 99).await.unwrap();
            panic!("after {:?} the run does not end: {records:#?} {pending:#?}", process.plan);
        }
    }

    /// Checks that each message was applied once or refused, as the script says.
    async fn check(&self, plans: &[Plan]) {
        let stored = self.store.runs(&RunQuery::new()).await.unwrap().remove(0);
        assert_eq!(stored.run.status, self.script.ends, "after {plans:?}");
        let records = self.store.read(&"a".into(), Position(0), usize::MAX).await.unwrap();
        let applied: Vec<String> = records.iter().filter_map(id_of).collect();
        let refused: Vec<String> =
            self.inbox.refused().iter().map(|refused| refused.message.id.to_string()).collect();
        let all: BTreeSet<String> = (0..self.script.messages.len()).map(|id| id.to_string()).collect();
        let told: BTreeSet<String> = applied.iter().chain(&refused).cloned().collect();
        let texts = format!("applied {applied:?}, refused {refused:?} after {plans:?}: {records:#?}");
        assert_eq!((told, applied.len() + refused.len()), (all.clone(), all.len()), "{texts}");
        assert!(applied.is_sorted(), "{texts}");
        let Script { refused: must, may_be_refused: may, .. } = self.script;
        assert!(must.iter().all(|id| refused.iter().any(|refused| refused == id)), "{texts}");
        assert!(refused.iter().all(|id| must.iter().chain(*may).any(|may| may == id)), "{texts}");
    }
}

/// The id of the message that a record is about.
fn id_of(record: &Record) -> Option<String> {
    let origin: Option<&Origin> = match record {
        Record::EventLogged { origin, .. }
        | Record::RunPaused { origin, .. }
        | Record::RunUnpaused { origin, .. }
        | Record::CleanUpStarted { origin, .. } => origin.as_ref(),
        _ => None,
    };
    origin?.id.as_deref().map(str::to_owned)
}

/// Lives through these processes, and one without a fault. Returns whether the last fault came.
async fn survives(script: &Script, comes_live: bool, plans: &[Plan]) -> bool {
    let (store, inbox) = (Arc::default(), Arc::default());
    let world = World { script, store, inbox, clock: VirtualClock::new() };
    let processes: Vec<_> = plans
        .iter()
        .copied()
        .chain([Plan { fault: Fault::Fails, after: usize::MAX, takes_effect: true }])
        .enumerate()
        .map(|(place, plan)| Process::new(plan, place > 0))
        .collect();
    world.begin(&processes[0], comes_live).await;
    for process in &processes[1..] {
        world.live(&world.engine(process), process).await;
    }
    world.check(plans).await;
    processes[plans.len() - 1].is_reached()
}

const KINDS: [(Fault, bool); 4] =
    [(Fault::Killed, false), (Fault::Killed, true), (Fault::Fails, false), (Fault::Fails, true)];

/// Tries each fault at each call, and some pairs of them.
async fn survives_everywhere(script: &Script) {
    let plan = |(fault, takes_effect), after| Plan { fault, after, takes_effect };
    for comes_live in [true, false] {
        for (place, kind) in KINDS.into_iter().enumerate() {
            let mut first = 0;
            while survives(script, comes_live, &[plan(kind, first)]).await {
                let second = plan(KINDS[(place + first) % KINDS.len()], (first * 7 + place) % 11);
                survives(script, comes_live, &[plan(kind, first), second]).await;
                first += 1;
            }
            assert!(first > script.messages.len(), "{first} calls");
        }
    }
}

fn reply() -> RunMessage {
    RunMessage::Reply { request: Seq(2), data: json!(true) }
}

fn pause(how: Pause) -> RunMessage {
    RunMessage::Pause { how }
}

fn completed(messages: Vec<RunMessage>) -> Script {
    Script {
        messages,
        refused: &[],
        may_be_refused: &[],
        ends: RunStatus::Completed,
        replies: false,
        unloads: false,
    }
}

// S62, S67
#[tokio::test(start_paused = true)]
async fn events_pauses_and_a_reply_survive() {
    let unfit = RunMessage::Send { event: "Nothing".into(), data: json!(0) };
    let messages = vec![
        note(1),
        pause(Pause::AfterRunning),
        note(2),
        unfit,
        RunMessage::Unpause,
        note(3),
        pause(Pause::Now),
        RunMessage::Unpause,
        reply(),
        note(4),
    ];
    for unloads in [false, true] {
        let messages = messages.clone();
        let script = Script { refused: &["3"], may_be_refused: &["9"], unloads, ..completed(messages) };
        survives_everywhere(&script).await;
    }
}

// S62, S67, S31
#[tokio::test(start_paused = true)]
async fn a_cancel_survives_and_what_comes_behind_is_refused() {
    let cancel = |reason: &str| RunMessage::Cancel { reason: reason.into() };
    let messages = vec![
        note(1),
        pause(Pause::Now),
        note(2),
        cancel("enough"),
        note(3),
        RunMessage::Unpause,
        reply(),
        cancel("again"),
        pause(Pause::AfterRunning),
    ];
    let refused = &["4", "5", "6", "7", "8"];
    survives_everywhere(&Script { refused, ends: RunStatus::Cancelled, ..completed(messages) }).await;
}

// S67, S38: a reply that is refused because of an earlier one finds that in the journal.
#[tokio::test(start_paused = true)]
async fn a_reply_beside_that_of_a_handle_survives() {
    let script = Script { may_be_refused: &["0", "1"], replies: true, ..completed(vec![reply(), note(1)]) };
    survives_everywhere(&script).await;
}
