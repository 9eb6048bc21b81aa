//! Engines that stand still at the end of a run while another one goes on with the session, and runs that are cancelled
//! there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_agent::memory::{Episode, Memory, Question, Recalled};
use workflow_core::errors::ContextError;
use workflow_core::store::{
    ContextChange, ContextScope, ContextStore, ContextValue, EngineId, EventStore, Position, Record,
    Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{RunId, ThreadContext};
use workflow_testkit::VirtualClock;

use super::*;
use crate::lives::{Disk, Process, life, moment};

/// A store that stands still at one operation on contexts, counted once the gate is armed.
#[derive(Debug, Clone)]
struct Gated {
    process: Process,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct Gate {
    at: u64,
    /// Whether it stands still behind the operation instead of before.
    behind: bool,
    /// The operations that are done once it goes on; all others fail.
    left: u64,
    is_armed: AtomicBool,
    count: AtomicU64,
    is_reached: AtomicBool,
    opened: tokio::sync::Semaphore,
}

impl Gate {
    fn new(at: u64, behind: bool, left: u64) -> Arc<Self> {
        Arc::new(Self {
            at,
            behind,
            left,
            is_armed: AtomicBool::new(false),
            count: AtomicU64::new(0),
            is_reached: AtomicBool::new(false),
            opened: tokio::sync::Semaphore::new(0),
        })
    }

    /// Stands still until the gate is opened.
    async fn stand(&self) {
        self.is_reached.store(true, SeqCst);
        self.opened.acquire().await.unwrap().forget();
    }
}

impl Gated {
    fn new(disk: &Disk, gate: &Arc<Gate>) -> Self {
        Self { process: disk.healthy(), gate: Arc::clone(gate) }
    }

    fn engine(&self, agent: &Agent) -> Engine {
        let engine = Engine::builder().store(self.clone()).clock(VirtualClock::new());
        engine.agent(agent.clone()).build().unwrap()
    }

    async fn pass<T>(&self, work: impl Future<Output = Result<T, ContextError>>) -> Result<T, ContextError> {
        let gate = &self.gate;
        if !gate.is_armed.load(SeqCst) {
            return work.await;
        }
        let number = gate.count.fetch_add(1, SeqCst);
        if number > gate.at.saturating_add(gate.left) {
            return Err(ContextError::unavailable(std::io::Error::other("the process is at its end")));
        }
        if number != gate.at {
            return work.await;
        }
        if gate.behind {
            let done = work.await;
            gate.stand().await;
            return done;
        }
        gate.stand().await;
        work.await
    }
}

impl EventStore for Gated {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        self.process.append(run, expected, write)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.process.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        EventStore::runs(&self.process, query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.process.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.process.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.process.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        Some(Arc::new(self.clone()))
    }
}

impl ContextStore for Gated {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.pass(self.process.get(scope, key)).boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.pass(self.process.set(scope, key, value)).boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.pass(self.process.update(scope, key, change)).boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        self.pass(self.process.list(scope, after, at_most)).boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        // The end of a run, which is in the journal by then.
        self.process.clear(scope)
    }
}

/// A memory in which a run never gets to its end.
struct Hangs;

impl Memory for Hangs {
    fn recall<'a>(
        &'a self,
        _: &'a Question,
        _: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remember<'a>(
        &'a self,
        _: &'a Episode,
        _: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        std::future::pending().boxed()
    }
}

/// A model that takes its time: the gate is armed meanwhile, so that only the operations at the end of a run count.
fn slow() -> ScriptedModel {
    ScriptedModel::respond(|request| {
        ScriptedReply::text(format!("re: {}", asked(request))).after(Duration::from_millis(50))
    })
}

/// Starts a run that stands still at its end; `None` if it ended before.
async fn stands(session: &Session, model: &ScriptedModel, gate: &Gate) -> Option<AgentRun> {
    let calls = model.requests().len();
    let run = session.say("two").await.unwrap();
    while model.requests().len() == calls {
        moment().await;
    }
    gate.is_armed.store(true, SeqCst);
    let mut outcome = Box::pin(run.outcome());
    loop {
        if gate.is_reached.load(SeqCst) {
            drop(outcome);
            return Some(run);
        }
        if futures::poll!(&mut outcome).is_ready() {
            return None;
        }
        moment().await;
    }
}

async fn goes_on(gate: &Gate) {
    gate.opened.add_permits(1);
    for _ in 0..20 {
        moment().await;
    }
}

/// Checks the questions of a session, that each number of its head is there, and that the next run sees all of them.
async fn has(engine: &Engine, agent: &Agent, model: &ScriptedModel, expected: &[&str], place: &str) {
    let session = session(engine, agent);
    assert_eq!(questions(&session).await, expected, "{place}");
    let context = engine.thread_context("ada");
    let head: serde_json::Value = context.get("agent/session/a.s/head").await.unwrap().unwrap();
    let last = session.exchanges(0, 100).await.unwrap().last().map(|exchange| exchange.number);
    assert_eq!((&head["count"], &head["last"]), (&json!(expected.len()), &json!(last)), "{place}");
    say(&session, "last").await;
    assert_eq!(questions(&session).await, [expected, &["last"]].concat(), "{place}");
    let request = model.requests().pop().unwrap();
    let seen = request.messages.iter().filter(|message| matches!(message, Message::User { .. }));
    let seen: Vec<_> = seen.map(|message| message.text().into_owned()).collect();
    assert_eq!(seen, [expected, &["last"]].concat(), "{place}");
    // Small pages have the same exchanges.
    let mut paged = Vec::new();
    let mut after = 0;
    while let Some(exchange) = session.exchanges(after, 1).await.unwrap().pop() {
        after = exchange.number;
        paged.push(exchange.question().to_string());
    }
    assert_eq!(paged, seen, "{place}");
}

/// Calls this with each operation at the end of a run, until it returns `false`.
fn at_each_operation(mut of: impl FnMut(u64, bool, u64) -> bool) {
    for behind in [false, true] {
        for left in [0, 1, 2, u64::MAX] {
            let stood = (0..1_000).take_while(|at| of(*at, behind, left)).count();
            assert!((4..1_000).contains(&stood), "{stood} operations");
        }
    }
}

/// A40
#[test]
fn a_late_engine_does_not_change_the_exchange_that_the_owner_of_the_run_entered() {
    for later in [false, true] {
        at_each_operation(|at, behind, left| {
            let (disk, gate, model) = (Disk::default(), Gate::new(at, behind, left), echo());
            let slow = slow();
            let late = agent(&slow);
            let owner = agent(&model);
            let place = format!("at {at}, behind {behind}, left {left}, later {later}");
            life(async {
                let engine = disk.healthy().engine(&owner);
                say(&session(&engine, &owner), "one").await;
                let stalled = Gated::new(&disk, &gate).engine(&late);
                let Some(_run) = stands(&session(&stalled, &late), &slow, &gate).await else { return false };
                let run = session(&engine, &owner).open_run().await.unwrap().expect("it is open");
                assert_eq!(run.outcome().await.unwrap().text(), "re: two", "{place}");
                let mut expected = vec!["one", "two"];
                if later {
                    say(&session(&engine, &owner), "three").await;
                    expected.push("three");
                }
                goes_on(&gate).await;
                has(&engine, &owner, &model, &expected, &place).await;
                true
            })
        });
    }
}

/// A40
#[test]
fn a_late_engine_does_not_add_the_exchange_of_a_run_that_was_cancelled() {
    for later in [false, true] {
        at_each_operation(|at, behind, left| {
            let (disk, gate, model) = (Disk::default(), Gate::new(at, behind, left), echo());
            let slow = slow();
            let late = agent(&slow);
            let owner = agent(&model);
            let hanging = Agent::builder("a").model(echo()).tool(look()).memory(Hangs).build().unwrap();
            let place = format!("at {at}, behind {behind}, left {left}, later {later}");
            life(async {
                let engine = disk.healthy().engine(&owner);
                say(&session(&engine, &owner), "one").await;
                let stalled = Gated::new(&disk, &gate).engine(&late);
                let Some(_run) = stands(&session(&stalled, &late), &slow, &gate).await else { return false };
                let cancelling = disk.healthy().engine(&hanging);
                let run = session(&cancelling, &hanging).open_run().await.unwrap().expect("it is open");
                run.cancel("not now").await.unwrap();
                // The late engine may have entered the exchange already, and then it had answered.
                let ended = run.outcome().await;
                assert!(ended.is_err() || !later && behind, "{place}: {ended:?}");
                if ended.is_ok() {
                    return true;
                }
                let mut expected = vec!["one"];
                if later {
                    say(&session(&engine, &owner), "three").await;
                    expected.push("three");
                    goes_on(&gate).await;
                    has(&engine, &owner, &model, &expected, &place).await;
                } else {
                    goes_on(&gate).await;
                    say(&session(&engine, &owner), "four").await;
                    expected.push("four");
                    has(&engine, &owner, &model, &expected, &place).await;
                }
                true
            })
        });
    }
}

/// A40
#[test]
fn the_next_message_takes_back_the_exchange_of_a_run_that_was_cancelled_at_its_end() {
    for redriven in [false, true] {
        at_each_operation(|at, behind, _| {
            let (disk, gate) = (Disk::default(), Gate::new(at, behind, u64::MAX));
            let model = slow();
            let agent = agent(&model);
            let place = format!("at {at}, behind {behind}, redriven {redriven}");
            life(async {
                let before = disk.healthy().engine(&agent);
                say(&session(&before, &agent), "one").await;
                let engine = Gated::new(&disk, &gate).engine(&agent);
                let session = session(&engine, &agent);
                let Some(run) = stands(&session, &model, &gate).await else { return false };
                run.cancel("not now").await.unwrap();
                assert!(run.outcome().await.is_err(), "{place}");
                gate.opened.add_permits(1);
                let mut expected = vec!["one"];
                if redriven {
                    let redriven = engine.redrive::<Agent>(run.id().clone()).await.unwrap();
                    assert_eq!(redriven.outcome().await.unwrap().text(), "re: two", "{place}");
                    expected.push("two");
                }
                say(&session, "three").await;
                expected.push("three");
                has(&engine, &agent, &model, &expected, &place).await;
                // The cancelled run adds nothing once a later one began.
                if !redriven {
                    let redriven = engine.redrive::<Agent>(run.id().clone()).await.unwrap();
                    redriven.outcome().await.unwrap();
                    expected.push("last");
                    assert_eq!(questions(&session).await, expected, "{place}");
                }
                true
            })
        });
    }
}

/// A42, A40
#[test]
fn a_fork_lacks_the_exchange_of_a_run_that_has_not_ended() {
    for behind in [false, true] {
        let stood = (0..1_000).take_while(|at| {
            let (disk, gate, model) = (Disk::default(), Gate::new(*at, behind, u64::MAX), slow());
            let agent = agent(&model);
            life(async {
                let other = disk.healthy().engine(&agent);
                say(&session(&other, &agent), "one").await;
                let engine = Gated::new(&disk, &gate).engine(&agent);
                let Some(run) = stands(&session(&engine, &agent), &model, &gate).await else { return false };
                let copy = session(&other, &agent).fork("copy").await.unwrap();
                assert_eq!(questions(&copy).await, ["one"], "at {at}, behind {behind}");
                gate.opened.add_permits(1);
                run.outcome().await.unwrap();
                assert_eq!(questions(&session(&other, &agent)).await, ["one", "two"]);
                say(&copy, "left").await;
                assert_eq!(questions(&copy).await, ["one", "left"], "at {at}, behind {behind}");
                true
            })
        });
        assert!(stood.count() >= 4);
    }
}
