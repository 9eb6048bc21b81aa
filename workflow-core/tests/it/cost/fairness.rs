//! A run with a huge fan-out does not starve others. The tests count the progress of the huge run per step of the
//! other, and read no clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Part, until};

/// The progress of the huge runs, and whether they may end.
#[derive(Clone, Default)]
struct Progress {
    counted: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
}

impl Progress {
    fn count(&self) {
        self.counted.fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }
}

/// Fans out; each branch has one execution that never waits.
struct Executes(Progress);

#[workflow]
impl Executes {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.count();
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

/// Fans out; each branch has one execution that wakes itself at each poll, until it may end.
struct Polls(Progress);

#[workflow]
impl Polls {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        while !self.0.ends.load(Ordering::Relaxed) {
            self.0.count();
            tokio::task::yield_now().await;
        }
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

/// Fans out; in each branch three attempts fail with this class before one succeeds.
struct Attempts(Progress, ErrorClass);

fn thrice() -> RetryPolicy {
    RetryPolicy::none()
        .on(ErrorClass::Tool, Retries::fixed(3, Duration::ZERO))
        .on(ErrorClass::Transient, Retries::fixed(3, Duration::from_secs(10)))
}

#[workflow]
impl Attempts {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(retry = thrice())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        self.0.count();
        if info.attempt() <= 3 { Err(StepError::new(self.1, "no")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hop(u32);

/// Makes this many hops, each of which waits once, and records the progress of the huge runs at each.
struct Hops {
    progress: Progress,
    seen: Seen,
}

#[workflow]
impl Hops {
    #[step]
    async fn first(&self, begin: &Begin) -> Hop {
        Hop(begin.0)
    }

    #[step(loops)]
    async fn next(&self, hop: &Hop) -> (Option<Hop>, Option<Done>) {
        // A task outside the run must run first, so the hop really waits for its turn.
        tokio::spawn(async {}).await.unwrap();
        self.seen.lock().unwrap().push(self.progress.counted());
        let next = hop.0.checked_sub(1).map(Hop);
        let done = next.is_none().then_some(Done(0));
        (next, done)
    }
}

/// The progress of the huge run at each hop.
type Seen = Arc<Mutex<Vec<u64>>>;

fn hops(progress: &Progress) -> (Hops, Seen) {
    let seen = Seen::default();
    (Hops { progress: progress.clone(), seen: Arc::clone(&seen) }, seen)
}

/// The maximum progress of the huge run between two hops.
fn most_between(seen: &Seen) -> u64 {
    let seen = seen.lock().unwrap();
    seen.windows(2).map(|hops| hops[1] - hops[0]).max().unwrap()
}

/// The number of actions in one turn of a run.
const SLICE: u64 = 256;

const BRANCHES: u32 = 10_000;

// S21
#[tokio::test]
async fn a_huge_fan_out_executes_no_more_than_two_slices_for_each_hop_of_another_run() {
    let progress = Progress::default();
    let (hops, seen) = hops(&progress);
    let engine = Engine::builder().workflow(Executes(progress.clone())).workflow(hops).build().unwrap();
    let huge = engine.start::<Executes>(Begin(BRANCHES)).await.unwrap();
    let small = engine.start::<Hops>(Begin(1_000)).await.unwrap();
    assert_eq!(huge.outcome().await.unwrap(), Done(BRANCHES));
    small.outcome().await.unwrap();
    let most = most_between(&seen);
    assert!(most > 0 && most <= 2 * SLICE, "{most} executions between two hops");
}

/// The default limit of concurrent executions of a run; the rest waits.
const AT_A_TIME: u64 = 1_024;

// S11, S21
#[tokio::test]
async fn branches_are_evaluated_in_slices_as_well_without_any_effect() {
    let progress = Progress::default();
    let (hops, seen) = hops(&progress);
    let engine = Engine::builder().workflow(Executes(progress.clone())).workflow(hops).build().unwrap();
    let huge = engine.start::<Executes>(Begin(BRANCHES)).await.unwrap();
    let small = engine.start::<Hops>(Begin(1_000)).await.unwrap();
    assert_eq!(huge.outcome().await.unwrap(), Done(BRANCHES));
    small.outcome().await.unwrap();
    // Every branch is evaluated before the first execution begins: 10,000 evaluations.
    let meanwhile = seen.lock().unwrap().iter().filter(|executions| **executions == 0).count();
    assert!(meanwhile >= 9, "{meanwhile} hops of the other run while 10,000 branches were evaluated");
}

// S21
#[tokio::test]
async fn active_branches_are_polled_twice_at_most_for_each_hop_of_another_run() {
    let progress = Progress::default();
    let (hops, seen) = hops(&progress);
    let engine = Engine::builder().workflow(Polls(progress.clone())).workflow(hops).build().unwrap();
    let huge = engine.start::<Polls>(Begin(BRANCHES)).await.unwrap();
    let small = engine.start::<Hops>(Begin(1_000)).await.unwrap();
    small.outcome().await.unwrap();
    progress.ends.store(true, Ordering::Relaxed);
    assert_eq!(huge.outcome().await.unwrap(), Done(BRANCHES));
    let most = most_between(&seen);
    assert!(most > 0 && most <= 2 * AT_A_TIME, "{most} polls between two hops");
}

// S21, S35
#[tokio::test]
async fn a_crowd_that_is_retried_at_once_makes_no_more_than_two_slices_of_attempts_for_each_hop_of_another_run()
 {
    let progress = Progress::default();
    let (hops, seen) = hops(&progress);
    let crowd = Attempts(progress.clone(), ErrorClass::Tool);
    let engine = Engine::builder().workflow(crowd).workflow(hops).build().unwrap();
    let huge = engine.start::<Attempts>(Begin(BRANCHES)).await.unwrap();
    let small = engine.start::<Hops>(Begin(1_000)).await.unwrap();
    assert_eq!(huge.outcome().await.unwrap(), Done(BRANCHES));
    small.outcome().await.unwrap();
    assert_eq!(progress.counted(), u64::from(BRANCHES) * 4);
    let most = most_between(&seen);
    assert!(most > 0 && most <= 2 * SLICE, "{most} attempts between two hops");
}

// S21, S36
#[tokio::test(start_paused = true)]
async fn a_crowd_whose_retries_fall_due_together_lets_another_run_have_its_turns() {
    let progress = Progress::default();
    let (hops, seen) = hops(&progress);
    let crowd = Attempts(progress.clone(), ErrorClass::Transient);
    let engine = Engine::builder().workflow(crowd).workflow(hops).clock(VirtualClock::new());
    let engine = engine.max_concurrent_executions(BRANCHES as usize).build().unwrap();
    let huge = engine.start::<Attempts>(Begin(BRANCHES)).await.unwrap();
    until(|| progress.counted() == u64::from(BRANCHES)).await;
    let small = engine.start::<Hops>(Begin(1_000)).await.unwrap();
    // By then the run has handled every failed attempt.
    until(|| seen.lock().unwrap().len() > 100).await;
    tokio::time::advance(Duration::from_secs(10)).await;
    small.outcome().await.unwrap();
    assert_eq!(progress.counted(), 2 * u64::from(BRANCHES), "all of them fell due meanwhile");
    let most = most_between(&seen);
    assert!(most > 0 && most <= 2 * SLICE, "{most} attempts between two hops");
    assert_eq!(huge.outcome().await.unwrap(), Done(BRANCHES));
}

/// The limit of branch polls in the huge runs while another run makes a hundred hops, with two threads that the system
/// may stop at any time. It is far above the real number, but without turns there would be no end.
const PATIENCE: u64 = 100_000_000;

// S21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_fan_outs_on_every_thread_let_another_run_come_to_its_end() {
    let progress = Progress::default();
    let (hops, _) = hops(&progress);
    let engine = Engine::builder().workflow(Polls(progress.clone())).workflow(hops).build().unwrap();
    let mut huge = Vec::new();
    for _ in 0..4 {
        huge.push(engine.start::<Polls>(Begin(BRANCHES)).await.unwrap());
    }
    let small = engine.start::<Hops>(Begin(100)).await.unwrap();
    while !small.status().is_ended() {
        assert!(progress.counted() < PATIENCE, "the other run is starved");
        tokio::task::yield_now().await;
    }
    small.outcome().await.unwrap();
    progress.ends.store(true, Ordering::Relaxed);
    for run in huge {
        assert_eq!(run.outcome().await.unwrap(), Done(BRANCHES));
    }
}
