//! Messages that wait in an inbox for their runs (S67).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::Notify;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Inbox, InboxMessage, MemoryInbox, MemoryStore, Position, Record, RunMessage,
    RunQuery, StoreFuture, Write,
};
use workflow_core::{AnyRun, Clock, EngineBuilder, Origin, Pause, RunId, RunOptions, RunStatus, Seq};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Note, until};

mod crashes;
mod outages;
mod refusals;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Elapsed;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(bool);

/// Keeps a record of what its steps do.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<Vec<String>>>);

impl Desk {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[workflow]
impl Desk {
    #[step]
    async fn open(&self, _begin: &Begin) -> (Approve, Timer<Elapsed>) {
        self.note("open");
        (Approve, Timer::after(Duration::from_mins(1), Elapsed))
    }

    #[step]
    async fn file(&self, note: &Note) {
        self.note(format!("note {}", note.0));
    }

    #[step]
    async fn elapse(&self, _elapsed: &Elapsed) {
        self.note("elapsed");
    }

    #[step]
    async fn close(&self, approved: &Reply<Approve>) -> Closed {
        self.note("close");
        Closed(**approved)
    }
}

fn note(number: u32) -> RunMessage {
    RunMessage::Send { event: "Note".into(), data: json!(number) }
}

/// The things that outlive an engine.
struct World {
    store: Arc<MemoryStore>,
    inbox: Arc<MemoryInbox>,
    desk: Desk,
    clock: VirtualClock,
}

impl World {
    fn new() -> Self {
        let (store, inbox) = (Arc::default(), Arc::default());
        Self { store, inbox, desk: Desk::default(), clock: VirtualClock::new() }
    }

    fn builder(&self) -> EngineBuilder {
        let builder = Engine::builder().workflow(self.desk.clone()).clock(self.clock.clone());
        builder.store(Arc::clone(&self.store)).inbox(Arc::clone(&self.inbox))
    }

    fn engine(&self) -> Engine {
        self.builder().build().unwrap()
    }

    /// The run `a`, which waits and has no engine.
    async fn waiting() -> Self {
        let world = Self::new();
        let engine = world.engine();
        let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        engine.shut_down(Duration::ZERO).await;
        world
    }

    /// The run `a`, in which a note is due as soon as an engine takes it up.
    async fn due() -> Self {
        let world = Self::waiting().await;
        let write = Record::EventLogged {
            seq: Seq(3),
            scope: workflow_core::ScopeId::ROOT,
            cause: workflow_core::scheduler::Cause::Outside,
            event: workflow_core::store::RecordedEvent::new(workflow_core::AnyEvent::new(Note(9))),
            origin: None,
            at: SystemTime::UNIX_EPOCH,
        };
        let stored = world.store.runs(&RunQuery::new()).await.unwrap().remove(0);
        let write = Write { records: vec![write], run: stored.run.running_again() };
        world.store.append(&"a".into(), stored.end, write).await.unwrap();
        world
    }

    fn put(&self, id: &str, message: RunMessage) {
        self.inbox.put("a", id, message).unwrap();
    }

    async fn pending(&self) -> usize {
        self.inbox.pending(&"a".into(), 100).await.unwrap().len()
    }

    async fn records(&self) -> Vec<Record> {
        self.store.read(&"a".into(), Position(0), usize::MAX).await.unwrap()
    }

    /// The events from outside and their ids, in the order of the journal.
    async fn journaled(&self) -> Vec<(String, Option<String>)> {
        let records = self.records().await;
        let events = records.iter().filter_map(|record| match record {
            Record::EventLogged { event, origin: Some(origin), .. } => {
                Some((event.name().to_owned(), origin.id.as_deref().map(str::to_owned)))
            }
            Record::RunPaused { origin: Some(origin), .. } => {
                Some(("pause".into(), origin.id.as_deref().map(str::to_owned)))
            }
            Record::RunUnpaused { origin: Some(origin), .. } => {
                Some(("unpause".into(), origin.id.as_deref().map(str::to_owned)))
            }
            _ => None,
        });
        events.collect()
    }

    /// Waits until the inbox has nothing for the run.
    async fn drained(&self) {
        until(async || self.pending().await == 0).await;
    }

    /// The same stores, as a process that is killed now leaves them.
    async fn killed(&self) -> Self {
        let left = Self { desk: self.desk.clone(), clock: self.clock.clone(), ..Self::new() };
        for stored in self.store.runs(&RunQuery::new()).await.unwrap() {
            let records = self.store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
            left.store.append(&stored.id, Position(0), Write { records, run: stored.run }).await.unwrap();
        }
        for message in self.inbox.pending(&"a".into(), 100).await.unwrap() {
            left.inbox.put_message("a", message).unwrap();
        }
        left
    }
}

fn ids(journaled: &[(String, Option<String>)]) -> Vec<String> {
    journaled.iter().map(|(what, id)| format!("{what} {}", id.as_deref().unwrap_or("-"))).collect()
}

// S67
#[tokio::test(start_paused = true)]
async fn messages_are_applied_in_order_when_a_run_is_taken_up() {
    let world = World::waiting().await;
    world.put("1", note(1));
    world.put("2", RunMessage::Pause { how: Pause::AfterRunning });
    world.put("3", note(2));
    world.put("4", RunMessage::Unpause);
    world.put("5", RunMessage::Reply { request: Seq(2), data: json!(true) });
    world.put("6", note(3));
    let engine = world.engine();
    let run = engine.attach::<Desk>("a").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Closed(true));
    world.drained().await;
    let journaled = ids(&world.journaled().await);
    assert_eq!(journaled, ["Note 1", "pause 2", "Note 3", "unpause 4", "Approve.reply 5", "Note 6"]);
    assert!(world.inbox.refused().is_empty());
    assert!(!engine.notify_inbox(&"a".into()), "it has ended");
}

// S67
#[tokio::test(start_paused = true)]
async fn messages_reach_a_run_that_is_here_or_unloaded() {
    for idle in [None, Some(Duration::ZERO)] {
        let world = World::new();
        let mut builder = world.builder();
        if let Some(idle) = idle {
            builder = builder.unload_waiting_after(idle);
        }
        let engine = builder.build().unwrap();
        let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a")).await.unwrap();
        run.settled().await;
        for (id, number) in [("1", 1), ("2", 2)] {
            world.put(id, note(number));
            assert!(engine.notify_inbox(&"a".into()));
        }
        world.drained().await;
        world.put("3", RunMessage::Cancel { reason: "enough".into() });
        assert!(engine.notify_inbox(&"a".into()));
        assert_eq!(run.report().await.unwrap().cancelled_by, Some(Origin::new().id("3")));
        world.drained().await;
        assert_eq!(ids(&world.journaled().await), ["Note 1", "Note 2"]);
        assert!(!engine.notify_inbox(&"nobody".into()));
    }
}

// S67: nothing begins before, so a cancelled run does nothing more.
#[tokio::test(start_paused = true)]
async fn a_run_begins_nothing_before_its_messages() {
    let world = World::due().await;
    world.put("1", RunMessage::Cancel { reason: "enough".into() });
    let run = world.engine().attach::<Desk>("a").await.unwrap();
    assert!(run.outcome().await.unwrap_err().to_string().contains("enough"));
    assert_eq!(world.desk.notes(), ["open"]);
}

/// An inbox that does not answer after some calls, and notes when that happens.
struct Stuck {
    inbox: Arc<MemoryInbox>,
    left: AtomicUsize,
    /// Whether the call is made before the answer is lost.
    after: bool,
    reached: Arc<Notify>,
}

impl Stuck {
    fn call<T: Send + 'static>(&self, call: impl FnOnce() -> StoreFuture<T>) -> StoreFuture<T> {
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            if self.after {
                drop(call());
            }
            self.reached.notify_one();
            return StoreFuture::new(std::future::pending());
        }
        self.left.store(left - 1, Ordering::SeqCst);
        call()
    }
}

impl Inbox for Stuck {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        self.call(|| self.inbox.pending(run, at_most))
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        self.call(|| self.inbox.settle(run, message, result))
    }
}

// S67, S62: a process that is killed at any point between applying and settling repeats nothing.
#[tokio::test(start_paused = true)]
async fn a_killed_process_repeats_no_message() {
    let messages = || {
        [
            note(1),
            RunMessage::Pause { how: Pause::AfterRunning },
            note(2),
            RunMessage::Unpause,
            RunMessage::Send { event: "Nothing".into(), data: json!(0) },
            RunMessage::Reply { request: Seq(2), data: json!(false) },
        ]
    };
    for calls in 0.. {
        let mut was_stuck = false;
        for after in [false, true] {
            let world = World::waiting().await;
            for (id, message) in messages().into_iter().enumerate() {
                world.put(&id.to_string(), message);
            }
            let is_stuck = Arc::new(Notify::new());
            let stuck = Stuck {
                inbox: Arc::clone(&world.inbox),
                left: AtomicUsize::new(calls),
                after,
                reached: Arc::clone(&is_stuck),
            };
            let first = Engine::builder().workflow(world.desk.clone()).clock(world.clock.clone());
            let first = first.store(Arc::clone(&world.store)).inbox(stuck).build().unwrap();
            let run = first.attach::<Desk>("a").await.unwrap();
            tokio::select! {
                () = is_stuck.notified() => was_stuck = true,
                _ = run.outcome(), if calls > messages().len() => {}
            }
            let left = world.killed().await;
            let engine = left.engine();
            let run = engine.attach::<Desk>("a").await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Closed(false), "after {calls} calls");
            left.drained().await;
            let journaled = ids(&left.journaled().await);
            assert_eq!(
                journaled,
                ["Note 0", "pause 1", "Note 2", "unpause 3", "Approve.reply 5"],
                "after {calls} calls"
            );
            let refused = left.inbox.refused().len() + world.inbox.refused().len();
            assert!((1..=2).contains(&refused), "{refused} after {calls} calls");
        }
        if !was_stuck {
            break;
        }
    }
}

// S67
#[tokio::test(start_paused = true)]
async fn refused_messages_are_settled_with_the_reason_and_hold_nothing_up() {
    let world = World::waiting().await;
    world.put("1", RunMessage::Send { event: "Elapsed".into(), data: json!(null) });
    world.put("2", RunMessage::Send { event: "Note".into(), data: json!("one") });
    world.put("3", RunMessage::Reply { request: Seq(9), data: json!(true) });
    world.put("4", RunMessage::Reply { request: Seq(2), data: json!("yes") });
    world.put(&"x".repeat(300), note(4));
    world.put("6", note(5));
    world.put("7", RunMessage::Cancel { reason: "enough".into() });
    world.put("8", note(6));
    let run = world.engine().attach::<Desk>("a").await.unwrap();
    run.outcome().await.unwrap_err();
    world.drained().await;
    let refused = world.inbox.refused();
    let reasons: Vec<_> = refused.iter().map(|refused| &refused.reason[..]).collect();
    assert_eq!(
        refused.iter().map(|refused| refused.message.id.len()).collect::<Vec<_>>(),
        [1, 1, 1, 1, 300, 1]
    );
    assert!(reasons[0].contains("`Note`"), "the events that fit: {reasons:?}");
    assert!(reasons[5].contains("ended") || reasons[5].contains("cancelled"), "{reasons:?}");
    assert_eq!(ids(&world.journaled().await), ["Note 6"]);
}

// S67, S32: an overdue timer comes behind the messages that the inbox took before it was due, and before the others.
#[tokio::test(start_paused = true)]
async fn an_overdue_timer_keeps_its_place_among_the_messages() {
    let world = World::waiting().await;
    let start = world.clock.now();
    for (id, seconds) in [("1", 10), ("2", 59), ("3", 61), ("4", 90)] {
        let at = start + Duration::from_secs(seconds);
        let message = InboxMessage::new(id, note(id.parse().unwrap()), at);
        world.inbox.put_message("a", message).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    let engine = world.engine();
    let run = engine.attach_any("a").await.unwrap();
    world.drained().await;
    run.settled().await;
    let records = world.records().await;
    let events = records.iter().filter_map(|record| match record {
        Record::EventLogged { event, .. } if ["Note", "Elapsed"].contains(&event.name()) => {
            Some((event.name().to_owned(), event.to_json().unwrap()))
        }
        _ => None,
    });
    let events: Vec<(String, Value)> = events.collect();
    let in_order = [
        ("Note", json!(1)),
        ("Note", json!(2)),
        ("Elapsed", json!(null)),
        ("Note", json!(3)),
        ("Note", json!(4)),
    ];
    assert_eq!(events, in_order.map(|(name, data)| (name.to_owned(), data)));
}

/// An inbox into which a client puts a message as each of these is settled, before or after that.
struct Busy {
    inbox: Arc<MemoryInbox>,
    before: Mutex<Vec<InboxMessage>>,
    after: Mutex<Vec<InboxMessage>>,
}

impl Inbox for Busy {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        self.inbox.pending(run, at_most)
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let put = |queue: &Mutex<Vec<InboxMessage>>| {
            if let Some(next) = queue.lock().unwrap().pop() {
                self.inbox.put(run.clone(), next.id, next.message).unwrap();
            }
        };
        if !self.before.lock().unwrap().is_empty() {
            // The client withdraws the message, and puts another one in with its id.
            drop(self.inbox.settle(run, message, Ok(())));
            put(&self.before);
        }
        let settled = self.inbox.settle(run, message, result);
        put(&self.after);
        settled
    }
}

async fn applied(
    before: Vec<InboxMessage>,
    after: Vec<InboxMessage>,
    first: RunMessage,
) -> (World, Duration) {
    let (world, began) = (World::waiting().await, tokio::time::Instant::now());
    world.put("1", first);
    let inbox =
        Busy { inbox: Arc::clone(&world.inbox), before: Mutex::new(before), after: Mutex::new(after) };
    let builder = Engine::builder().workflow(world.desk.clone()).clock(world.clock.clone());
    let engine = builder.store(Arc::clone(&world.store)).inbox(inbox).build().unwrap();
    let _run = engine.attach::<Desk>("a").await.unwrap();
    world.drained().await;
    (world, began.elapsed())
}

// S67
#[tokio::test(start_paused = true)]
async fn a_message_that_takes_the_place_of_another_is_not_settled_with_it() {
    let right = InboxMessage::new("1", note(7), SystemTime::UNIX_EPOCH);
    let wrong = RunMessage::Send { event: "Note".into(), data: json!("seven") };
    let (world, _) = applied(vec![right], Vec::new(), wrong).await;
    assert_eq!(world.journaled().await, [("Note".to_owned(), Some("1".to_owned()))]);
}

// S67, S62: a client that repeats a message after it was settled makes nobody wait.
#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_is_settled_again() {
    let again = InboxMessage::new("1", note(7), SystemTime::UNIX_EPOCH);
    let (world, waited) = applied(Vec::new(), vec![again.clone(), again], note(7)).await;
    assert_eq!(world.journaled().await, [("Note".to_owned(), Some("1".to_owned()))]);
    assert_eq!(waited, Duration::ZERO);
}

// S67: an orphan's messages are applied by the engine that claims it.
#[tokio::test(start_paused = true)]
async fn the_messages_of_an_orphan_wait_for_its_next_engine() {
    let world = World::waiting().await;
    let gone = EngineId::generate();
    let stored = world.store.runs(&RunQuery::new()).await.unwrap().remove(0);
    let write = Write {
        records: vec![Record::RunKept { at: SystemTime::UNIX_EPOCH }],
        run: stored.run.owned_by(Some(gone)),
    };
    world.store.append(&"a".into(), stored.end, write).await.unwrap();
    world.put("1", RunMessage::Reply { request: Seq(2), data: json!(true) });
    let engine = world.builder().lease(Duration::from_secs(30)).build().unwrap();
    engine.resume_open_runs().await.unwrap();
    let run: AnyRun = engine.attach_any("a").await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!(true));
    engine.shut_down(Duration::ZERO).await;
}

// S67: the children that a resumed parent asks for again read their inboxes too.
struct Office;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Work;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Worked(bool);

/// The child of the run `parent`.
const CHILD: &str = "parent/ask-x1.a";

#[workflow]
impl Office {
    #[step]
    async fn ask(&self, _work: &Work, children: &Children) -> Result<Worked, StepError> {
        let Closed(approved) = children.run_with::<Desk>(Begin(0), RunOptions::new().id("a")).await?;
        Ok(Worked(approved))
    }
}

#[tokio::test(start_paused = true)]
async fn an_awaited_child_reads_its_inbox_when_its_parent_asks_for_it() {
    let world = World::new();
    let host = |world: &World| world.builder().workflow(Office).build().unwrap();
    let engine = host(&world);
    let _run = engine.start_with::<Office>(Work, RunOptions::new().id("parent")).await.unwrap();
    let child = loop {
        match engine.find(&CHILD.into()) {
            Some(child) => break child,
            None => tokio::task::yield_now().await,
        }
    };
    child.settled().await;
    engine.shut_down(Duration::ZERO).await;
    world.inbox.put(CHILD, "1", RunMessage::Reply { request: Seq(2), data: json!(true) }).unwrap();
    let engine = host(&world);
    engine.resume_open_runs().await.unwrap();
    let outcome = engine.attach::<Office>("parent").await.unwrap().outcome().await.unwrap();
    assert_eq!(outcome, Worked(true));
}
