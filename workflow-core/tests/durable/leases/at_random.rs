//! Random engines over one store that fails at random (S40, S66, S67): calls fail before or after they had their effect,
//! leases cannot be renewed, engines are held beyond their leases or are killed, and clients put messages into the inbox.
//!
//! In every fourth case calls of the store may take long, and runs are paused often.
//!
//! A ledger has each attempt, by run, execution and engine; the store has the writer of each record. `CLAIMED_CASES=500`
//! makes more cases than a test needs each time, `CLAIMED_SEED=7` only this one, and both make 500 from this one on.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use serde_json::json;
use workflow_core::store::{Inbox as _, RunMessage};
use workflow_core::{ErrorClass, Pause, Retries, RetryPolicy, Seq};

use super::*;
use crate::world::{Alive, Face, Line, Weather, World};

const SECOND: Duration = Duration::from_secs(1);

/// Whether calls of the store may take long in the case of this seed, and runs are paused often.
fn is_slow(seed: u64) -> bool {
    seed % 4 == 3
}

/// How many random actions a case has before its store fails no more.
const ACTIONS: u32 = 60;

/// The runs of a case.
const RUNS: u64 = 3;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Wonder(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Call(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rested(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Share(u32);

/// How the store behaves in the case of this seed.
fn weather(seed: u64) -> Weather {
    let delays = if is_slow(seed) { [3, 3, 3, 25] } else { [3; 4] };
    Weather { delays, fails_one_in: 30, serialises: false }
}

fn soon() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(3, 7 * SECOND))
}

/// Rests, asks, calls a child, fails at first, and takes three notes.
struct Mixed(Face);

#[workflow]
impl Mixed {
    #[step]
    async fn plan(&self, begin: &Begin, info: &RunInfo) -> (Timer<Rested>, Wonder, Call, Item) {
        self.0.works("plan", info).await;
        let number = begin.0;
        (Timer::after(SECOND * 25, Rested(number)), Wonder(number), Call(number), Item(number))
    }

    #[step]
    async fn rest(&self, rested: &Rested, info: &RunInfo) -> Share {
        self.0.works("rest", info).await;
        Share(rested.0)
    }

    #[step]
    async fn take(&self, reply: &Reply<Wonder>, info: &RunInfo) -> Share {
        self.0.works("take", info).await;
        Share(**reply)
    }

    #[step]
    async fn call(&self, call: &Call, children: &Children, info: &RunInfo) -> Result<Share, RunError> {
        self.0.begins("call", info).await;
        Ok(Share(children.run::<Small>(Begin(call.0)).await?.0))
    }

    #[step(retry = soon())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Share, StepError> {
        self.0.works("work", info).await;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Share(item.0)) }
    }

    #[step]
    async fn end(&self, shares: &FixedList<Share, 4>, notes: &FixedList<Note, 3>, info: &RunInfo) -> Done {
        self.0.works("end", info).await;
        let notes = notes.iter().fold(0, |all, note| 10 * all + note.0);
        Done(1_000 * shares.iter().map(|share| share.0).sum::<u32>() + notes)
    }
}

/// A child that rests.
struct Small(Face);

#[workflow]
impl Small {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Timer<Rested> {
        self.0.works("work", info).await;
        Timer::after(SECOND * 20, Rested(begin.0))
    }

    #[step]
    async fn end(&self, rested: &Rested, info: &RunInfo) -> Done {
        self.0.works("end", info).await;
        Done(rested.0)
    }
}

/// The engines and clients of a case.
struct Case {
    world: Arc<World>,
    clock: VirtualClock,
    is_slow: bool,
    engines: Vec<Alive>,
    /// The engines of processes that are gone.
    dead: Vec<Alive>,
    born: usize,
    /// The messages that are left to put into the inbox, by run.
    script: BTreeMap<RunId, Vec<(String, RunMessage)>>,
    /// The ids of the messages that were put, in order, by run.
    put: BTreeMap<RunId, Vec<String>>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let (engines, script, put) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (world, clock, is_slow) = (World::new(seed, weather(seed)), VirtualClock::new(), is_slow(seed));
        let mut case = Self { world, clock, is_slow, engines, dead: Vec::new(), born: 0, script, put };
        for _ in 0..2 + seed % 2 {
            case.adds_engine();
        }
        case
    }

    fn adds_engine(&mut self) {
        let (face, line) = Face::new(self.born, &self.world);
        let engine = Engine::builder().workflow(Mixed(face.clone())).workflow(Small(face.clone()));
        let engine = engine.inbox(Arc::new(face.clone())).store(face).clock(self.clock.clone()).lease(LEASE);
        // Each of these engines is held or killed: that is no fault of its steps.
        let engine = engine.max_interrupted_attempts(u32::MAX);
        let unloads = if self.born.is_multiple_of(2) { SECOND * 5 } else { Duration::MAX };
        let engine = engine.unload_waiting_after(unloads).build().unwrap();
        self.born += 1;
        let claims = engine.clone();
        // It may fail, and takes the lease.
        tokio::spawn(async move { drop(claims.resume_open_runs().await) });
        self.engines.push(Alive { engine, line });
    }

    /// One of the engines, at random.
    fn chosen(&self) -> &Alive {
        let place = self.world.draw(u32::try_from(self.engines.len()).unwrap());
        &self.engines[place as usize]
    }

    fn run(&self) -> RunId {
        format!("r-{}", u64::from(self.world.draw(3)) % RUNS).into()
    }

    /// Starts a run until the store has it, whatever fails.
    async fn starts(&mut self, number: u32) {
        let run = RunId::from(format!("r-{number}"));
        while self.world.journal(&run).is_empty() {
            let engine = self.chosen().engine.clone();
            let options = RunOptions::new().id(run.as_str());
            // It fails if the store does, also where the store has the run.
            drop(engine.start_with::<Mixed>(Begin(number + 1), options).await);
        }
        let note = |note: u32| RunMessage::Send { event: "Note".into(), data: json!(note) };
        let how = if self.world.draw(2) == 0 { Pause::Now } else { Pause::AfterRunning };
        let mut messages = vec![note(1), RunMessage::Pause { how }, note(2), RunMessage::Unpause, note(3)];
        if self.is_slow {
            let pauses = [RunMessage::Pause { how: Pause::Now }, RunMessage::Unpause];
            for place in [0, 0, 3, 8, 8] {
                messages.splice(place..place, pauses.clone());
            }
        }
        let messages = messages.into_iter().enumerate();
        let messages = messages.map(|(place, message)| (format!("m-{place}"), message)).rev().collect();
        self.script.insert(run, messages);
    }

    /// Puts a message into the inbox, and tells all engines.
    fn puts(&mut self, run: &RunId, id: String, message: RunMessage) {
        self.world.inbox.put(run.clone(), &*id, message).unwrap();
        self.put.entry(run.clone()).or_default().push(id);
        for alive in &self.engines {
            alive.engine.notify_inbox(run);
        }
    }

    fn puts_next(&mut self, run: &RunId) {
        if let Some((id, message)) = self.script.get_mut(run).and_then(Vec::pop) {
            self.puts(run, id, message);
        }
    }

    /// Replies to each request once, through the inbox.
    fn replies(&mut self) {
        for number in 0..RUNS {
            let run = RunId::from(format!("r-{number}"));
            for record in self.world.journal(&run) {
                let Record::EventLogged { seq: Seq(seq), event, .. } = record else { continue };
                let id = format!("reply-{seq}");
                if event.name() == "Wonder" && !self.put.get(&run).is_some_and(|put| put.contains(&id)) {
                    let data = json!(number + 1);
                    self.puts(&run, id, RunMessage::Reply { request: Seq(seq), data });
                }
            }
        }
    }

    /// One random act.
    async fn acts(&mut self) {
        sleep(SECOND * self.world.draw(12)).await;
        let (act, run) = (self.world.draw(10), self.run());
        match act {
            0 | 1 => {
                self.world.reach("a hold");
                let long = SECOND * (5 + self.world.draw(70));
                self.chosen().holds(long);
            }
            2 if self.born < 6 => {
                self.world.reach("a kill");
                let gone = self.world.draw(u32::try_from(self.engines.len()).unwrap()) as usize;
                let dead = self.engines.remove(gone).dies();
                self.dead.push(dead);
                self.adds_engine();
            }
            3 => {
                let engine = self.chosen().engine.clone();
                tokio::spawn(async move { drop(engine.claim_orphans().await) });
            }
            4 => {
                let engine = self.chosen().engine.clone();
                tokio::spawn(async move { drop(engine.attach::<Mixed>(run).await) });
            }
            5 | 6 => self.replies(),
            _ => {
                self.puts_next(&run);
                if self.is_slow {
                    self.puts_next(&run);
                }
            }
        }
    }

    fn have_ended(&self) -> bool {
        self.world.all().iter().all(|run| run.run.status.is_ended())
    }

    /// Lets the store fail no more, and waits for all runs.
    async fn ends(&mut self) {
        self.world.state().fails = false;
        for alive in &self.engines {
            alive.line.send_replace(Line::Open);
        }
        for round in 0..300_u32 {
            sleep(SECOND * 10).await;
            if self.have_ended() {
                return;
            }
            self.replies();
            for number in 0..RUNS {
                self.puts_next(&format!("r-{number}").into());
            }
            // No claim takes a run up that five engines in a row could write nothing to.
            if round == 150 {
                self.world.reach("a run that no claim takes");
                for alive in &self.engines {
                    let _ = alive.engine.resume_open_runs().await;
                }
            }
        }
    }

    /// The state of a run that does not end.
    fn stuck(&self, stored: &StoredRun) -> String {
        let (run, state) = (&stored.id, self.world.state());
        let said: Vec<_> = state.ledger.iter().filter(|line| line.starts_with(&format!("{run}: "))).collect();
        let said: Vec<_> = said.iter().rev().take(25).rev().map(|line| format!("\n    {line}")).collect();
        let here = |alive: &Alive| {
            let is_here = alive.engine.running().contains(run);
            format!("{} has it: {is_here}", alive.engine.id())
        };
        let here: Vec<_> = self.engines.iter().map(here).collect();
        let pending = self.world.inbox.pending(run, 10).now_or_never().unwrap().unwrap();
        let (status, owner) = (stored.run.status, &stored.run.owner);
        format!("{run} is {status} at {owner:?}, {here:?}, {} in its inbox{}", pending.len(), said.concat())
    }

    /// The violations in the end.
    fn violations(&self) -> Vec<String> {
        let mut violations = self.world.state().violations.clone();
        for stored in self.world.all() {
            let (run, journal) = (&stored.id, self.world.journal(&stored.id));
            if !stored.run.status.is_ended() {
                violations.push(self.stuck(&stored));
            }
            let origins = journal.iter().filter_map(|record| match record {
                Record::EventLogged { origin, .. }
                | Record::RunPaused { origin, .. }
                | Record::RunUnpaused { origin, .. } => origin.as_ref()?.id.as_deref().map(str::to_owned),
                _ => None,
            });
            let (applied, put) =
                (origins.collect::<Vec<_>>(), self.put.get(run).cloned().unwrap_or_default());
            if applied != put {
                violations.push(format!("{run} has {applied:?} of {put:?}"));
            }
            let over = journal.iter().filter_map(|record| match record {
                Record::ExecutionSucceeded { execution, .. } => Some(execution.0),
                _ => None,
            });
            let (mut once, mut twice) = (BTreeSet::new(), over.collect::<Vec<_>>());
            twice.retain(|execution| !once.insert(*execution));
            if !twice.is_empty() {
                violations.push(format!("{run} has executions that succeeded twice: {twice:?}"));
            }
            if let Some(number) = run.as_str().strip_prefix("r-").and_then(|run| run.parse::<u32>().ok()) {
                let expected = json!(4_000 * (number + 1) + 123);
                let done = journal.iter().find_map(|record| match record {
                    Record::EventLogged { event, .. } if event.name() == "Done" => {
                        Some(serde_json::to_value(event).unwrap()["data"].clone())
                    }
                    _ => None,
                });
                if done.as_ref() != Some(&expected) {
                    violations.push(format!("{run} ended with {done:?} instead of {expected}"));
                }
            }
        }
        violations
    }
}

/// Plays a case.
fn play(seed: u64) -> (Arc<World>, Vec<String>) {
    let runtime = runtime();
    let played = runtime.block_on(async {
        let mut case = Case::new(seed);
        for number in 0..u32::try_from(RUNS).unwrap() {
            case.starts(number).await;
        }
        for _ in 0..ACTIONS {
            case.acts().await;
        }
        case.ends().await;
        (Arc::clone(&case.world), case.violations())
    });
    runtime.shutdown_background();
    played
}

// S40, S66, S67
#[test]
#[expect(clippy::print_stderr, reason = "a test of a size shows what it reached")]
fn random_engines_over_a_store_that_fails_do_everything_once() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (cases, first) = (number("CLAIMED_CASES"), number("CLAIMED_SEED"));
    let only = first.filter(|_| cases.is_none());
    let (first, cases) = (first.unwrap_or(0), only.map_or(cases.unwrap_or(20), |_| 1));
    let (mut reached, mut failed) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for seed in first..first + cases {
        let (world, violations) = play(seed);
        let state = world.state();
        for (what, times) in &state.reached {
            *reached.entry(what).or_default() += times;
        }
        if !violations.is_empty() {
            if only.is_some() {
                eprintln!("{}", state.ledger.join("\n"));
            }
            failed.push(format!("CLAIMED_SEED={seed}: {}", violations.join("\n  ")));
        }
    }
    eprintln!("{reached:?}");
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
    for what in ["a claim", "a hold", "a kill", "a failure before", "a failure after"] {
        assert!(only.is_some() || reached.contains_key(what), "{what} in {reached:?}");
    }
}
