//! Random runs with random pauses and restarts (S61): they end as without, and nothing begins while they are paused.
//!
//! The journal has when a run was paused, and a ledger has when steps and preconditions began. Both have the same clock,
//! which continues from process to process. `PAUSED_RUNS=1000` makes more runs than a test needs each time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery};
use workflow_core::{Clock as _, ErrorClass, Pause, Retries, RetryPolicy, RunHandle, RunId, RunOptions};
use workflow_testkit::VirtualClock;

const MINUTE: Duration = Duration::from_mins(1);

/// The random actions of a run, before it is left alone.
const ACTIONS: u32 = 40;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Job {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Worked {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rested {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u64)]
struct Ask {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Call {
    seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

/// A number below `limit` that follows from the seed and the place where it is drawn.
fn drawn(seed: u64, place: u64, limit: u64) -> u64 {
    fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ place).u64(..limit)
}

fn minutes(seed: u64, place: u64) -> Duration {
    MINUTE * u32::try_from(drawn(seed, place, 4)).unwrap()
}

/// The parts that all processes of a run share.
#[derive(Debug, Clone, Default)]
struct World {
    store: Arc<MemoryStore>,
    /// When something began in which run.
    begun: Arc<Mutex<Vec<(RunId, SystemTime)>>>,
    clock: Arc<Mutex<Option<VirtualClock>>>,
    lived: Arc<Mutex<Duration>>,
}

impl World {
    fn now(&self) -> SystemTime {
        self.clock.lock().unwrap().as_ref().unwrap().now()
    }

    fn begins(&self, run: &RunId) {
        self.begun.lock().unwrap().push((run.clone(), self.now()));
    }

    /// A process: it resumes what there is, does this, and is killed.
    fn process<T, F: Future<Output = T>>(&self, work: impl FnOnce(Engine) -> F) -> T {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (worked, engine) = runtime.block_on(async {
            let (clock, lived) = (VirtualClock::new(), *self.lived.lock().unwrap());
            let began = clock.now();
            sleep(lived).await;
            *self.clock.lock().unwrap() = Some(clock.clone());
            let engine = Engine::builder().workflow(Mixed(self.clone())).workflow(Small(self.clone()));
            let engine = engine.store(Arc::clone(&self.store)).clock(clock.clone());
            // Each of these processes is killed: that is no fault of what it executes.
            let engine = engine.max_interrupted_attempts(u32::MAX).build().unwrap();
            let resumed = engine.resume_open_runs().await.unwrap();
            assert!(resumed.refused.is_empty(), "{resumed:?}");
            let worked = work(engine.clone()).await;
            *self.lived.lock().unwrap() = clock.now().duration_since(began).unwrap();
            (worked, engine)
        });
        drop(runtime);
        drop(engine);
        worked
    }

    fn journal(&self, run: &RunId) -> Vec<Record> {
        let read = self.store.read(run, Position(0), usize::MAX);
        futures::FutureExt::now_or_never(read).expect("a store in memory answers at once").unwrap()
    }

    /// When the run was paused, by its journal.
    fn pauses(&self, run: &RunId) -> Vec<(SystemTime, SystemTime)> {
        let (mut pauses, mut own, mut with_parent, mut since) = (Vec::new(), false, false, None);
        for record in self.journal(run) {
            let at = match record {
                Record::RunPaused { by_parent, at, .. } => {
                    *(if by_parent { &mut with_parent } else { &mut own }) = true;
                    at
                }
                Record::RunUnpaused { by_parent, at, .. } => {
                    *(if by_parent { &mut with_parent } else { &mut own }) = false;
                    at
                }
                Record::RunEnded { at, .. } => {
                    (own, with_parent) = (false, false);
                    at
                }
                _ => continue,
            };
            match (own || with_parent, since) {
                (true, None) => since = Some(at),
                (false, Some(begin)) => {
                    pauses.push((begin, at));
                    since = None;
                }
                _ => {}
            }
        }
        pauses
    }
}

fn soon() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(3, 3 * MINUTE))
}

/// Jobs in branches, which ask, rest, or call a child.
struct Mixed(World);

#[workflow]
impl Mixed {
    #[step]
    async fn plan(&self, begin: &Begin, info: &RunInfo) -> FanOut<Job> {
        self.0.begins(info.run());
        let jobs = 1 + drawn(begin.seed, 1, 4);
        let jobs: FanOut<Job> = (0..jobs).map(|job| Job { seed: begin.seed * 8 + job }).collect();
        if drawn(begin.seed, 2, 2) == 0 { jobs } else { jobs.concurrency(2) }
    }

    #[step(precondition = is_wanted, retry = soon())]
    async fn work(&self, job: &Job, info: &RunInfo) -> Result<Worked, StepError> {
        self.0.begins(info.run());
        sleep(minutes(job.seed, 3)).await;
        if u64::from(info.attempt()) <= drawn(job.seed, 4, 3) {
            return Err(StepError::transient("busy"));
        }
        Ok(Worked { seed: job.seed })
    }

    #[precondition]
    async fn is_wanted(&self, job: &Job, info: &RunInfo) -> bool {
        self.0.begins(info.run());
        sleep(minutes(job.seed, 5)).await;
        drawn(job.seed, 6, 5) > 0
    }

    #[step]
    async fn route(
        &self,
        worked: &Worked,
        info: &RunInfo,
    ) -> (Option<Timer<Rested>>, Option<Ask>, Option<Call>) {
        self.0.begins(info.run());
        let seed = worked.seed;
        match drawn(seed, 7, 3) {
            0 => (Some(Timer::after(minutes(seed, 8), Rested { seed })), None, None),
            1 => (None, Some(Ask { seed }), None),
            _ => (None, None, Some(Call { seed })),
        }
    }

    #[step]
    async fn rest(&self, rested: &Rested, info: &RunInfo) -> Part {
        self.0.begins(info.run());
        Part(rested.seed % 1_000)
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>, info: &RunInfo) -> Part {
        self.0.begins(info.run());
        sleep(minutes(reply.request().seed, 9)).await;
        Part(**reply % 1_000)
    }

    #[step]
    async fn call(&self, call: &Call, children: &Children, info: &RunInfo) -> Result<Part, RunError> {
        self.0.begins(info.run());
        let Done(part) = children.run::<Small>(Begin { seed: call.seed }).await?;
        Ok(Part(part))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, info: &RunInfo) -> Done {
        self.0.begins(info.run());
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// A child with a retry and a timer.
struct Small(World);

#[workflow]
impl Small {
    #[step(retry = soon())]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Timer<Rested>, StepError> {
        self.0.begins(info.run());
        sleep(minutes(begin.seed, 10)).await;
        if u64::from(info.attempt()) <= drawn(begin.seed, 11, 2) {
            return Err(StepError::transient("busy"));
        }
        Ok(Timer::after(minutes(begin.seed, 12), Rested { seed: begin.seed }))
    }

    #[step]
    async fn end(&self, rested: &Rested, info: &RunInfo) -> Done {
        self.0.begins(info.run());
        sleep(minutes(rested.seed, 13)).await;
        Done(rested.seed % 777)
    }
}

/// Replies to what is asked.
async fn reply(run: &RunHandle<Mixed>) {
    for request in run.requests().await.unwrap_or_default() {
        let (id, seed) = (request.id::<Ask>().unwrap(), request.downcast_ref::<Ask>().unwrap().seed);
        // It may have ended meanwhile.
        let _ = run.reply(id, seed * 3).await;
    }
}

async fn handle(engine: &Engine, seed: u64) -> RunHandle<Mixed> {
    match engine.attach::<Mixed>("r").await {
        Ok(run) => run,
        Err(_) => engine.start_with::<Mixed>(Begin { seed }, RunOptions::new().id("r")).await.unwrap(),
    }
}

/// The output of the run when nobody pauses it.
fn expected(seed: u64) -> Done {
    World::default().process(async |engine| {
        let run = handle(&engine, seed).await;
        while !run.settled().await.is_ended() {
            reply(&run).await;
            sleep(MINUTE).await;
        }
        run.outcome().await.unwrap()
    })
}

/// The situations that the random actions of all runs led to.
#[derive(Debug, Default)]
struct Reached(BTreeMap<&'static str, u32>);

impl Reached {
    fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// Plays a run until it is killed, or to its end once all actions are done.
async fn play(
    engine: Engine,
    seed: u64,
    rng: &mut fastrand::Rng,
    left: &mut u32,
    reached: &mut Reached,
) -> Option<Done> {
    let run = handle(&engine, seed).await;
    loop {
        // Between whole minutes, in which most of what runs begins and ends.
        sleep(MINUTE / 2 + MINUTE * rng.u32(..3)).await;
        reply(&run).await;
        if run.status().is_ended() {
            return Some(run.outcome().await.unwrap());
        }
        if *left == 0 {
            for run in engine.running() {
                if let Some(run) = engine.find(&run) {
                    // It may have ended, or wait for what is unpaused next.
                    let _ = run.unpause().await;
                }
            }
            continue;
        }
        *left -= 1;
        let running = engine.running();
        let chosen = running.get(rng.usize(..running.len().max(1))).and_then(|run| engine.find(run));
        let Some(chosen) = chosen.filter(|_| rng.bool()).or_else(|| engine.find(run.id())) else {
            continue;
        };
        let is_child = chosen.id() != run.id();
        match rng.u8(..10) {
            0 | 1 => {
                reached.note(if is_child { "a paused child" } else { "a pause" });
                let _ = chosen.pause(Pause::AfterRunning).await;
            }
            2 | 3 => {
                reached.note(if is_child { "a child paused now" } else { "a pause now" });
                let _ = chosen.pause(Pause::Now).await;
            }
            4 | 5 => drop(chosen.unpause().await),
            6 => {
                let is_paused = run.status() == workflow_core::RunStatus::Paused;
                reached.note(if is_paused { "a kill in a pause" } else { "a kill" });
                return None;
            }
            _ => {}
        }
    }
}

// S61
#[test]
fn random_pauses_and_restarts_change_no_outcome_and_nothing_begins_in_a_pause() {
    let runs = std::env::var("PAUSED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(120);
    let mut reached = Reached::default();
    for seed in 0..runs {
        let (world, mut rng) = (World::default(), fastrand::Rng::with_seed(seed));
        let (mut left, mut done) = (ACTIONS, None);
        while done.is_none() {
            done = world.process(async |engine| play(engine, seed, &mut rng, &mut left, &mut reached).await);
        }
        assert_eq!(done, Some(expected(seed)), "run {seed}");
        let all = world.store.runs(&RunQuery::new());
        let all = futures::FutureExt::now_or_never(all).expect("a store in memory answers at once").unwrap();
        for run in all {
            assert!(run.run.status.is_ended(), "{} of run {seed}", run.id);
            let pauses = world.pauses(&run.id);
            for _ in &pauses {
                reached.note("a pause in a journal");
            }
            for (begun, at) in world.begun.lock().unwrap().iter() {
                let is_inside = |(since, until): &&(SystemTime, SystemTime)| since < at && at < until;
                let inside = pauses.iter().find(is_inside).filter(|_| *begun == run.id);
                assert!(
                    inside.is_none(),
                    "in {begun} of run {seed} something began at {at:?}, in {inside:?}"
                );
            }
        }
    }
    let Reached(reached) = reached;
    for what in
        ["a pause", "a pause now", "a paused child", "a child paused now", "a kill", "a kill in a pause"]
    {
        assert!(
            reached.get(what).is_some_and(|count| u64::from(*count) * 12 >= runs),
            "{what} in {reached:?}"
        );
    }
}
