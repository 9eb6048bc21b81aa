//! A case: its engines and its clients, from the first act until nothing happens any more, and the checks then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::store::{
    EventStore as _, Inbox as _, Position, Record, RecordedEvent, RunMessage, RunQuery, StoredRun, Write,
};
use workflow_core::table::RecordedTable;
use workflow_core::{
    AnyRun, Clock as _, Limit, Origin, Pause, RecordedRun, Redrive, RunId, RunOptions, RunStatus,
};
use workflow_testkit::VirtualClock;

use super::Played;
use super::acts::{Acts, Answer, Handles, handle};
use super::ledger::{AT_A_TIME, Ledger};
use super::plan::{LIMIT, Plan};
use super::{same, work};
use crate::world::{Alive, Face, Line, Weather, World};

const SECOND: Duration = Duration::from_secs(1);

/// The duration of the engines' leases.
const LEASE: Duration = Duration::from_secs(30);

/// The random acts of a case, before its store fails no more and its steps are mended.
const ACTIONS: u32 = 40;

/// The workflows of a case.
const WORKFLOWS: usize = 3;

/// The most engines of a case, one after another.
const ENGINES: usize = 6;

/// The settings that differ from case to case.
#[derive(Debug)]
struct Settings {
    /// Whether engines have leases. Several engines at a time have.
    leased: bool,
    weather: Weather,
    unloads: Duration,
    /// Whether executions whose processes end again and again fail.
    interrupts: bool,
    max_executions: Option<usize>,
    max_runs: Option<usize>,
    limit: Limit,
    runs: u32,
}

impl Settings {
    fn random(rng: &mut fastrand::Rng, engines: u32) -> Self {
        let delays = [[1; 4], [3; 4], [3, 3, 3, 25]][rng.usize(..3)];
        let fails_one_in = [0, 0, 30, 80][rng.usize(..4)];
        let limit = Limit::concurrent(AT_A_TIME);
        Self {
            leased: engines > 1 || rng.bool(),
            weather: Weather { delays, fails_one_in, serialises: rng.bool() },
            unloads: [SECOND * 3, SECOND * 20, Duration::MAX][rng.usize(..3)],
            interrupts: rng.u32(..4) == 0,
            max_executions: (rng.u32(..6) == 0).then_some(2),
            max_runs: (rng.u32(..6) == 0).then_some(2),
            limit: if rng.bool() { limit } else { limit.rate(5, SECOND * 10) },
            runs: rng.u32(1..4),
        }
    }
}

struct Case {
    world: Arc<World>,
    ledger: Arc<Ledger>,
    acts: Arc<Acts>,
    handles: Handles,
    clock: VirtualClock,
    plans: Vec<Plan>,
    settings: Settings,
    engines: Vec<Alive>,
    /// The engines of processes that are gone, which give nothing up before the runtime is gone too.
    dead: Vec<Alive>,
    born: usize,
    /// How many acts there were.
    count: u32,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let plans = (0..WORKFLOWS).map(|place| Plan::random(&mut rng, place, WORKFLOWS)).collect();
        let engines = [1, 1, 2, 3][rng.usize(..4)];
        let settings = Settings::random(&mut rng, engines);
        let mut case = Self {
            world: World::new(rng.u64(..), settings.weather),
            ledger: Arc::default(),
            acts: Arc::default(),
            handles: Arc::default(),
            clock: VirtualClock::new(),
            plans,
            settings,
            engines: Vec::new(),
            dead: Vec::new(),
            born: 0,
            count: 0,
        };
        for _ in 0..engines {
            case.adds_engine();
        }
        case
    }

    fn draw(&self, below: u32) -> u32 {
        self.world.draw(below)
    }

    fn adds_engine(&mut self) {
        let (face, line) = Face::new(self.born, &self.world);
        let engine = Engine::builder().workflows(work::hosted(&self.plans, &face, &self.ledger));
        let engine = engine.inbox(face.clone()).store(face).clock(self.clock.clone());
        let mut engine = engine.limit(LIMIT, self.settings.limit);
        if self.settings.leased {
            engine = engine.lease(LEASE);
        }
        if !self.settings.interrupts {
            engine = engine.max_interrupted_attempts(u32::MAX);
        }
        if let Some(most) = self.settings.max_executions {
            engine = engine.max_concurrent_executions(most);
        }
        if let Some(most) = self.settings.max_runs {
            engine = engine.max_concurrent_runs(most);
        }
        let engine = engine.unload_waiting_after(self.settings.unloads).build().unwrap();
        self.born += 1;
        let resumes = engine.clone();
        // It may fail.
        tokio::spawn(async move { drop(resumes.resume_open_runs().await) });
        self.engines.push(Alive { engine, line });
    }

    /// One of the engines, at random.
    fn chosen(&self) -> Engine {
        let place = self.draw(u32::try_from(self.engines.len()).unwrap());
        self.engines[place as usize].engine.clone()
    }

    /// One of the runs that clients start, at random.
    fn run(&self) -> RunId {
        format!("r-{}", self.draw(self.settings.runs)).into()
    }

    /// One of all runs of the store, children included; a run to be started if there is none.
    fn any_run(&self) -> RunId {
        let all = self.world.all();
        match u32::try_from(all.len()).unwrap() {
            0 => self.run(),
            count => all[self.draw(count) as usize].id.clone(),
        }
    }

    fn plan_of(&self, stored: &StoredRun) -> &Plan {
        self.plans.iter().find(|plan| plan.name == stored.run.workflow).unwrap()
    }

    fn stored(&self, run: &RunId) -> Option<StoredRun> {
        self.world.all().into_iter().find(|stored| stored.id == *run)
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("a-{}", self.count)
    }

    /// A client acts on a run by an engine, and sometimes twice with one id.
    fn acts_on<F>(
        &mut self,
        run: &RunId,
        what: &'static str,
        act: impl Fn(AnyRun) -> F + Send + Clone + 'static,
    ) where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.world.reach(what);
        let id = self.next_id();
        let times = if self.draw(4) == 0 { 2 } else { 1 };
        for _ in 0..times {
            self.acts.asks(&id, run, what, false);
            let (engine, act, run, id) = (self.chosen(), act.clone(), run.clone(), id.clone());
            let (acts, world) = (Arc::clone(&self.acts), Arc::clone(&self.world));
            tokio::spawn(async move {
                let answer = match handle(&engine, &run).await {
                    Ok(run) => act(run.with_origin(Origin::new().id(&*id))).await,
                    Err(error) => Answer::Refused(format!("it is not here: {error}")),
                };
                acts.answers(&world, &id, answer);
            });
        }
    }

    /// A client puts a message into the inbox, sometimes twice, and tells all engines.
    fn puts(&mut self, run: &RunId, what: &'static str, message: &RunMessage) {
        self.world.reach("a message");
        let id = self.next_id();
        self.acts.asks(&id, run, what, true);
        for _ in 0..=self.draw(2) {
            self.world.inbox.put(run.clone(), &*id, message.clone()).unwrap();
            for alive in &self.engines {
                alive.engine.notify_inbox(run);
            }
        }
    }

    fn starts(&mut self) {
        let run = self.run();
        self.world.reach("a start");
        let id = self.next_id();
        let mut options = RunOptions::new().id(run.as_str()).origin(Origin::new().id(&*id));
        if self.draw(8) == 0 {
            options = options.deadline(self.clock.now() + SECOND * (20 + self.draw(200)));
        }
        if self.draw(8) == 0 {
            options = options.timeout(SECOND * (20 + self.draw(200)));
        }
        let plan = &self.plans[usize::from(self.draw(6) == 0)];
        let (name, data) = (Arc::clone(&plan.name), self.draw(9));
        self.acts.asks(&id, &run, "a start", false);
        if self.draw(6) == 0 {
            self.world.reach("a queued run");
            let table = RecordedTable::new(&plan.table().shape());
            let event = RecordedEvent::from_json("Begin", 1, to_raw_value(&data).unwrap());
            let write = Write::queued(&table, event, &options, self.clock.now()).unwrap();
            let queued = self.world.kept.append(&run, Position(0), write).now_or_never().unwrap();
            let answer = queued.map_or_else(|error| Answer::Refused(error.to_string()), |()| Answer::Done);
            self.acts.answers(&self.world, &id, answer);
            let engine = self.chosen();
            tokio::spawn(async move { drop(engine.attach_any(run).await) });
            return;
        }
        let (engine, acts, world) = (self.chosen(), Arc::clone(&self.acts), Arc::clone(&self.world));
        let handles = Arc::clone(&self.handles);
        tokio::spawn(async move {
            let started = engine.start_json(&name, "Begin", data, options).await;
            acts.answers(&world, &id, Answer::of_start(&started));
            handles.lock().unwrap().extend(started);
        });
    }

    fn sends(&mut self, run: &RunId) {
        let Some(stored) = self.stored(run) else { return };
        let externals = &self.plan_of(&stored).externals;
        if externals.is_empty() {
            return;
        }
        let event = externals[self.draw(u32::try_from(externals.len()).unwrap()) as usize].clone();
        self.sends_one(run, event);
    }

    fn sends_one(&mut self, run: &RunId, event: String) {
        let data = self.draw(50);
        if self.draw(3) == 0 {
            self.puts(run, "a send", &RunMessage::Send { event: event.into(), data: json!(data) });
        } else {
            self.acts_on(run, "a send", move |run| {
                let event = event.clone();
                async move { Answer::of_send(run.send_json(&event, data).await) }
            });
        }
    }

    /// Sends the event that ends a run.
    fn closes(&mut self, run: &RunId) {
        let closes = self.stored(run).and_then(|stored| self.plan_of(&stored).closes.clone());
        if let Some(event) = closes {
            self.world.reach("a stop event from outside");
            self.sends_one(run, event);
        }
    }

    /// Replies to the requests of a run that are open by its journal, and to some of those that are not any more.
    fn replies(&mut self, run: &RunId) {
        let journal = self.world.journal(run);
        let Ok(recorded) = RecordedRun::of(run, &journal) else { return };
        for request in recorded.requests() {
            let (seq, data) = (request.seq(), json!(self.draw(50)));
            if self.draw(3) == 0 {
                self.puts(run, "a reply", &RunMessage::Reply { request: seq, data });
            } else {
                self.acts_on(run, "a reply", move |run| {
                    let data = data.clone();
                    async move { Answer::of_send(run.reply_json(seq, data).await) }
                });
            }
        }
    }

    fn pauses(&mut self, run: &RunId) {
        let how = if self.draw(2) == 0 { Pause::Now } else { Pause::AfterRunning };
        if self.draw(3) == 0 {
            self.puts(run, "a pause", &RunMessage::Pause { how });
        } else {
            self.acts_on(run, "a pause", move |run| async move { Answer::of_send(run.pause(how).await) });
        }
    }

    fn unpauses(&mut self, run: &RunId) {
        if self.draw(3) == 0 {
            self.puts(run, "an unpause", &RunMessage::Unpause);
        } else {
            self.acts_on(run, "an unpause", |run| async move { Answer::of_send(run.unpause().await) });
        }
    }

    fn cancels(&mut self, run: &RunId) {
        match self.draw(3) {
            0 => self.puts(run, "a cancel", &RunMessage::Cancel { reason: "not needed".into() }),
            1 => {
                self.world.reach("a cancel of a query");
                let (engine, world) = (self.chosen(), Arc::clone(&self.world));
                let query = match self.draw(4) {
                    0 => RunQuery::new().below(run.clone()),
                    1 => RunQuery::new().workflow("w2"),
                    _ => RunQuery::new().run(run.clone()),
                };
                tokio::spawn(async move {
                    let Ok(mut cancelled) = engine.cancel_where(&query, "not needed") else { return };
                    while let Some(Ok(cancelled)) = cancelled.next().await {
                        // S62: also that the run cleans up because of it.
                        let ended = |record: &Record| {
                            matches!(
                                record,
                                Record::RunEnded { .. }
                                    | Record::CleanUpStarted { status: RunStatus::Cancelled, .. }
                            )
                        };
                        let run = &cancelled.run;
                        if cancelled.result.is_ok() && !world.journal(run).iter().any(ended) {
                            world.violate(format!("{run}: it is cancelled, and its journal has no end"));
                        }
                    }
                });
            }
            _ => {
                self.acts_on(run, "a cancel", |run| async move {
                    Answer::of_send(run.cancel("not needed").await)
                });
            }
        }
    }

    /// Redrives a run, by an engine or by a tool of the store.
    fn redrives(&mut self, run: &RunId) {
        let redriven = |world: &World, run: &RunId| {
            world.journal(run).iter().filter(|record| matches!(record, Record::RunRedriven { .. })).count()
        };
        let before = redriven(&self.world, run);
        if self.draw(3) > 0 {
            let (engine, world, run) = (self.chosen(), Arc::clone(&self.world), run.clone());
            tokio::spawn(async move {
                let query = RunQuery::new().run(run.clone());
                let Ok(done) = engine.redrive_all(&query, 1).await else { return };
                if !done.runs.is_empty() {
                    world.reach("a redrive");
                    if redriven(&world, &run) == before {
                        world.violate(format!("{run}: it is redriven, and its journal does not say so"));
                    }
                }
            });
            return;
        }
        let Some(stored) = self.stored(run) else { return };
        let mut redrive = Redrive::new().deadline(self.clock.now() + SECOND * 500);
        match self.draw(4) {
            0 | 1 => redrive = redrive.despite_clean_up(),
            2 => redrive = Redrive::new().clean_up(),
            _ => {}
        }
        let again: Vec<_> =
            self.plan_of(&stored).manners.iter().filter(|(_, manner)| manner.at_most_once).collect();
        let insists = self.draw(2) == 0 && !again.is_empty();
        if insists {
            redrive = again.iter().fold(redrive, |redrive, (step, _)| redrive.again(step));
        }
        let journal = self.world.journal(run);
        let Ok(write) = RecordedRun::redrive(run, &journal, &redrive, self.clock.now()) else { return };
        if insists {
            self.ledger.allows_again(run);
        }
        let end = Position::default().after(journal.len());
        self.world.kept.append(run, end, write).now_or_never().unwrap().unwrap();
        self.world.reach("a redrive of a tool");
        let (engine, run) = (self.chosen(), run.clone());
        tokio::spawn(async move { drop(handle(&engine, &run).await) });
    }

    /// One random act.
    async fn acts(&mut self) {
        sleep(SECOND * self.draw(9)).await;
        let run = if self.draw(4) == 0 { self.any_run() } else { self.run() };
        match self.draw(24) {
            0..5 => self.starts(),
            5..8 => self.sends(&run),
            8..11 => self.replies(&run),
            11 | 12 => self.pauses(&run),
            13 | 14 => self.unpauses(&run),
            15 if self.draw(3) == 0 => self.closes(&run),
            15 => self.cancels(&run),
            16 | 17 => self.redrives(&run),
            18 => {
                self.world.reach("a look");
                let (engine, handles) = (self.chosen(), Arc::clone(&self.handles));
                tokio::spawn(async move {
                    let attached = handle(&engine, &run).await;
                    handles.lock().unwrap().extend(attached);
                });
            }
            19 => {
                for _ in 0..self.draw(4) {
                    match self.draw(4) {
                        0 => self.puts(&run, "a pause", &RunMessage::Pause { how: Pause::Now }),
                        1 => self.puts(&run, "an unpause", &RunMessage::Unpause),
                        2 => self.sends(&run),
                        _ => self.replies(&run),
                    }
                }
                let engine = self.chosen();
                tokio::spawn(async move {
                    if let Some(run) = engine.find(&run) {
                        drop(run.retry_now().await);
                    }
                });
            }
            20 => {
                let engine = self.chosen();
                tokio::spawn(async move { drop(engine.claim_orphans().await) });
            }
            21 if self.settings.leased => {
                self.world.reach("a hold");
                let (place, long) = (self.place(), SECOND * (5 + self.draw(70)));
                self.engines[place].holds(long);
            }
            22 if self.born < ENGINES => {
                self.world.reach("a kill");
                let place = self.place();
                let killed = self.engines.remove(place).dies();
                self.dead.push(killed);
                self.adds_engine();
            }
            23 if self.born < ENGINES => {
                self.world.reach("a shut-down");
                let place = self.place();
                let (Alive { engine, line }, within) = (self.engines.remove(place), SECOND * self.draw(12));
                line.send_replace(Line::Open);
                engine.shut_down(within).await;
                self.adds_engine();
            }
            _ => {}
        }
    }

    /// The place of an engine, at random.
    fn place(&self) -> usize {
        self.draw(u32::try_from(self.engines.len()).unwrap()) as usize
    }

    fn open(&self) -> Vec<StoredRun> {
        let all = self.world.all().into_iter();
        all.filter(|stored| !stored.run.status.is_ended()).collect()
    }

    /// Lets nothing fail any more, and gives all runs what they wait for until they have ended.
    async fn rests(&mut self) {
        self.world.state().fails = false;
        self.ledger.mends();
        for alive in &self.engines {
            alive.line.send_replace(Line::Open);
        }
        // How often nothing was open. The runs are redriven at the first time, which takes a while.
        let mut rested = 0;
        for round in 0..120_u32 {
            sleep(SECOND * 15).await;
            // The engines that were told of a message may be gone.
            for run in self.acts.addressed() {
                let pending = self.world.inbox.pending(&run, 1).now_or_never().unwrap().unwrap();
                if !pending.is_empty() {
                    for alive in &self.engines {
                        alive.engine.notify_inbox(&run);
                    }
                }
            }
            let open = self.open();
            if open.is_empty() {
                rested += 1;
                if rested == 1 {
                    self.world.all().into_iter().for_each(|stored| self.redrives(&stored.id));
                } else if rested > 4 {
                    return;
                }
                continue;
            }
            for stored in open {
                self.replies(&stored.id);
                if stored.run.status == RunStatus::Paused {
                    self.unpauses(&stored.id);
                }
                for event in self.plan_of(&stored).externals.clone() {
                    // Each may make steps run again, in each branch.
                    if round % 4 == 3 && round < 24 {
                        self.sends_one(&stored.id, event);
                    }
                }
            }
            // No claim takes a run up that engines in a row could write nothing to, and none without a lease.
            if round % 20 == 19 {
                for alive in &self.engines {
                    let _ = alive.engine.resume_open_runs().await;
                }
            }
        }
    }

    /// How often something of effect was recorded.
    fn progress(&self) -> usize {
        let counts = |record: &&Record| {
            matches!(
                record,
                Record::EventLogged { .. }
                    | Record::ExecutionSucceeded { .. }
                    | Record::ExecutionFailed { .. }
                    | Record::RetryScheduled { .. }
                    | Record::RunEnded { .. }
            )
        };
        self.world
            .all()
            .iter()
            .map(|stored| self.world.journal(&stored.id).iter().filter(counts).count())
            .sum()
    }

    /// Every run has ended, or says what it waits for. Returns whether none goes on.
    async fn check_open(&self) -> bool {
        let before = self.progress();
        sleep(10 * LEASE).await;
        let open = self.open();
        if !open.is_empty() && self.progress() != before {
            self.world.reach("a run that goes on");
            return false;
        }
        for stored in &open {
            let (run, status) = (&stored.id, stored.run.status);
            // A run whose executions wait for children is no run that waits.
            let children = format!("{run}/");
            if status == RunStatus::Running
                && open.iter().any(|other| other.id.as_str().starts_with(&children))
            {
                continue;
            }
            let mut said = Vec::new();
            for alive in &self.engines {
                let Ok(here) = alive.engine.attach_any(run.clone()).await else { continue };
                let explanation = here.explain().await;
                let requests = here.requests().await.unwrap_or_default();
                said.push(match explanation {
                    Ok(why) if status == RunStatus::Waiting => {
                        !(why.can_arrive.is_empty() && why.timers.is_empty() && requests.is_empty())
                    }
                    _ => false,
                });
            }
            if said != [true] {
                for alive in &self.engines {
                    let resumed = alive.engine.resume_open_runs().await;
                    let (id, running) = (alive.engine.id(), alive.engine.running());
                    self.world
                        .state()
                        .ledger
                        .push(format!("{run}: {id} resumes {resumed:?}, runs {running:?}"));
                }
                let state = self.world.state();
                let lines = state.ledger.iter().filter(|line| line.starts_with(&format!("{run}: ")));
                let lines: Vec<_> = lines.rev().take(25).map(|line| format!("\n    {line}")).collect();
                let (owner, last) = (&stored.run.owner, lines.into_iter().rev().collect::<String>());
                drop(state);
                self.world.violate(format!("{run} is {status} at {owner:?}, and engines say {said:?}{last}"));
            }
        }
        true
    }

    /// Nothing is written and hardly anything loaded while nothing happens: a look that began before may end late.
    async fn check_quiet(&self) {
        sleep(2 * LEASE + SECOND * 30).await;
        let waits_for_time = |stored: &StoredRun| {
            let timer = stored.run.waits_for.as_ref().and_then(|waits| waits.until);
            timer.is_some() || stored.run.deadline.is_some()
        };
        let (before, loads) = (self.world.all(), self.world.state().loads.clone());
        sleep(10 * LEASE).await;
        let (after, now) = (self.world.all(), self.world.state().loads.clone());
        if before.iter().any(waits_for_time) {
            return;
        }
        let written: Vec<_> = after.iter().filter(|stored| !before.contains(stored)).collect();
        let more = |(run, count): &(&RunId, &u32)| **count > 1 + loads.get(*run).copied().unwrap_or_default();
        let loaded: Vec<_> = now.iter().filter(more).collect();
        if !written.is_empty() || !loaded.is_empty() {
            self.world.violate(format!(
                "in a quiet time {written:?} were written, and {loaded:?} loaded again and again"
            ));
        }
    }

    /// No run was loaded more often than something happened to it.
    fn check_loads(&self) {
        let loads = self.world.state().loads.clone();
        for (run, loads) in loads {
            let records = u32::try_from(self.world.journal(&run).len()).unwrap();
            let most = 2 * self.count + ACTIONS + records;
            if loads > most {
                self.world.violate(format!("{run}: it was loaded {loads} times, with {records} records"));
            }
        }
    }

    /// Each journal can be read, the same twice, and no execution in it succeeded twice.
    fn check_journals(&self) {
        for stored in self.world.all() {
            let (run, journal) = (&stored.id, self.world.journal(&stored.id));
            let json = |records: &[Record]| serde_json::to_string(records).unwrap();
            if json(&journal) != json(&self.world.journal(run)) {
                self.world.violate(format!("{run}: a second reading differs"));
            }
            if let Some(recorded) = same::read(&self.world, run, &journal) {
                let (status, summary) = (recorded.status(), stored.run.status);
                if status != summary && (status.is_ended() || summary.is_ended()) {
                    self.world.violate(format!("{run} is {summary} in lists, and {status} by its records"));
                }
                self.world.reach(match status {
                    RunStatus::Completed => "a run that completed",
                    RunStatus::Failed => "a run that failed",
                    RunStatus::Stalled => "a run that stalled",
                    RunStatus::Cancelled => "a run that was cancelled",
                    RunStatus::TimedOut => "a run that timed out",
                    _ => "a run that is open",
                });
            }
            let mut succeeded = BTreeMap::<u64, u32>::new();
            for record in &journal {
                if let Record::ExecutionSucceeded { execution, .. } = record {
                    *succeeded.entry(execution.0).or_default() += 1;
                    if !self.ledger.has_success(run, *execution) {
                        self.world.violate(format!(
                            "{run}: {execution} succeeded by its journal, and never returned"
                        ));
                    }
                }
            }
            if succeeded.values().any(|times| *times > 1) {
                self.world.violate(format!("{run} has executions that succeeded twice: {succeeded:?}"));
            }
        }
    }

    /// What clients see live, and what they see after a restart, is what the records say.
    async fn check_same(&mut self) {
        let handles = std::mem::take(&mut *self.handles.lock().unwrap());
        for run in &handles {
            if run.status().is_ended() {
                same::compare(&self.world, run, "the run of a handle").await;
                same::compare_summary(&self.world, run).await;
            }
        }
        for alive in std::mem::take(&mut self.engines) {
            for stored in self.open() {
                if let Some(run) = alive.engine.find(&stored.id) {
                    same::compare(&self.world, &run, "the live run").await;
                }
            }
            alive.line.send_replace(Line::Open);
            alive.engine.shut_down(SECOND).await;
        }
        self.adds_engine();
        sleep(SECOND * 5).await;
        let engine = self.engines[0].engine.clone();
        for stored in self.world.all() {
            match engine.attach_any(stored.id.clone()).await {
                Ok(run) => same::compare(&self.world, &run, "the run after a reload").await,
                Err(error) => self.world.violate(format!("{}: {error}", stored.id)),
            }
        }
    }

    /// Runs that have ended are removed with their children, and nothing else is.
    async fn check_removals(&self) {
        let (engine, open) = (&self.engines[0].engine, self.open());
        let is_above = |run: &RunId| {
            let below = format!("{run}/");
            open.iter().any(|open| open.id == *run || open.id.as_str().starts_with(&below))
        };
        let roots: Vec<_> =
            self.world.all().into_iter().filter(|stored| !stored.id.as_str().contains('/')).collect();
        let mut kept = Vec::new();
        for StoredRun { id, .. } in roots {
            if is_above(&id) {
                kept.push(format!("{id}/"));
            } else if !matches!(engine.remove_run(&id).await, Ok(true)) {
                self.world.violate(format!("{id} has ended and cannot be removed"));
            }
        }
        for StoredRun { id, .. } in self.world.all() {
            if !kept.iter().any(|kept| format!("{id}/").starts_with(kept)) {
                self.world.violate(format!("{id} is left of a run that was removed"));
            }
        }
    }

    fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self.plans.iter().flat_map(Plan::told).collect();
        told.push(format!("{:?}", self.settings));
        told.extend(self.acts.told());
        told.extend(self.world.state().ledger.iter().cloned());
        told
    }
}

/// Plays the case of a seed.
pub(super) fn play(seed: u64) -> Played {
    let runtime = crate::world::runtime();
    let played = runtime.block_on(async {
        let mut case = Case::new(seed);
        case.starts();
        for _ in 0..ACTIONS {
            case.acts().await;
        }
        case.rests().await;
        if case.check_open().await {
            case.check_quiet().await;
        }
        case.acts.check(&case.world);
        case.check_loads();
        case.check_journals();
        case.check_same().await;
        case.check_removals().await;
        let (reached, violations) = {
            let state = case.world.state();
            (state.reached.clone(), state.violations.clone())
        };
        (Played { reached, violations, told: case.told() }, case)
    });
    runtime.shutdown_background();
    played.0
}
