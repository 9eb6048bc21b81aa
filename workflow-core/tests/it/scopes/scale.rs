//! Many branches: memory depends on the open ones and on the log, work on their number (S50); and the cost of a run
//! without branches. The tests count, and time nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::AllocationInfo;
use workflow_core::RunHandle;
use workflow_core::prelude::*;

use crate::fixtures::{Begin, Done, Item, Part};
use crate::scopes::fan_out::Level;

const OPEN: u32 = 64;

#[derive(Clone, Default)]
struct Mapped {
    most: Option<u32>,
    level: Level,
    polls: Arc<AtomicU64>,
}

#[workflow]
impl Mapped {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        if let Some(most) = self.most { items.concurrency(most) } else { items }
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.level.rise();
        let mut left = 2;
        std::future::poll_fn(|cx| {
            self.polls.fetch_add(1, Ordering::Relaxed);
            left -= 1;
            if left == 0 {
                return std::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
        self.level.fall();
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert!(parts.ok().map(|part| part.0).eq(0..u32::try_from(parts.len()).unwrap()));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

/// The cost of a run, and the memory still live at its end: the log, the trace and the decisions.
struct Cost {
    allocations: u64,
    peak: u64,
    kept: u64,
}

fn cost_of<W: Workflow<Output = Done>>(workflow: W, begin: u32) -> (Cost, RunHandle<W>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut ended = None;
    let info: AllocationInfo = allocation_counter::measure(|| {
        ended = Some(runtime.block_on(async {
            // Every branch has an execution, and the largest fan-out exceeds the default limit of a run.
            let engine = Engine::builder()
                .replay_check(false)
                .workflow(workflow)
                .max_executions_per_run(1_000_000)
                .build()
                .unwrap();
            let run = engine.start::<W>(Begin(begin)).await.unwrap();
            drop(engine);
            run.outcome().await.unwrap();
            // The engine is gone by now; its tasks end with the runtime's next turn.
            tokio::task::yield_now().await;
            run
        }));
    });
    let kept = u64::try_from(info.bytes_current).unwrap();
    (Cost { allocations: info.count_total, peak: info.bytes_max, kept }, ended.unwrap())
}

/// 12,500 and 100,000 lie at the same point between two powers of two: doubling buffers have the same slack in both.
const FEW: u32 = 12_500;
const MANY: u32 = 100_000;

fn assert_alike(what: &str, few: u64, many: u64) {
    let (few, many) = (few * 1_000 / u64::from(FEW), many * 1_000 / u64::from(MANY));
    assert!(few.abs_diff(many) * 5 <= few, "{what} per 1,000 branches: {few} of few, {many} of many");
}

// S50
#[test]
fn a_hundred_thousand_branches_cost_each_what_ten_thousand_cost_each() {
    let bounded = || Mapped { most: Some(OPEN), ..Mapped::default() };
    let workflow = bounded();
    let (few, _few) = cost_of(bounded(), FEW);
    let (many, _many) = cost_of(workflow.clone(), MANY);
    assert_alike("allocations", few.allocations, many.allocations);
    assert_alike("bytes kept", few.kept, many.kept);
    assert_alike("bytes at most", few.peak, many.peak);
    assert_eq!(workflow.polls.load(Ordering::Relaxed), 2 * u64::from(MANY));
    assert_eq!((workflow.level.highest(), workflow.level.now()), (OPEN as usize, 0));
}

fn peak_with(open: u32) -> u64 {
    cost_of(Mapped { most: Some(open), ..Mapped::default() }, FEW).0.peak
}

// S50
#[test]
fn memory_beyond_the_log_goes_by_the_open_branches() {
    let one = peak_with(1);
    for open in [OPEN, 16 * OPEN] {
        let more = peak_with(open) - one;
        assert!(more <= 1_024 * u64::from(open), "{more} bytes more with {open} branches open");
    }
}

/// Every outer branch fans out again; one of three inner branches fails, which drops the others.
struct Dropping(Level);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[workflow]
impl Dropping {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().concurrency(OPEN).continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..3).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<(), StepError> {
        struct Falls<'a>(&'a Level);
        impl Drop for Falls<'_> {
            fn drop(&mut self) {
                self.0.fall();
            }
        }

        self.0.rise();
        let _falls = Falls(&self.0);
        if item.0 != 2 {
            std::future::pending::<()>().await;
        }
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn join(&self, _items: &Gather<Item>) {}

    #[step]
    async fn end(&self, all: &Gather<Outer>) -> Done {
        assert_eq!(all.failed().count(), all.len());
        Done(u32::try_from(all.len()).unwrap())
    }
}

// S49, S50
#[test]
fn branches_that_are_dropped_cost_the_same_however_many_were_dropped_before() {
    let level = Level::default();
    let (few, _few) = cost_of(Dropping(level.clone()), FEW / 10);
    let (many, _many) = cost_of(Dropping(level.clone()), MANY / 10);
    assert_alike("allocations", few.allocations, many.allocations);
    assert_alike("bytes kept", few.kept, many.kept);
    assert_alike("bytes at most", few.peak, many.peak);
    // Three steps in each open branch, plus branches that were just dropped.
    assert!(level.highest() <= 4 * OPEN as usize, "{} steps were alive", level.highest());
    assert_eq!(level.now(), 0);
}

struct Hops;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hop(u32);

#[workflow]
impl Hops {
    #[step]
    async fn first(&self, begin: &Begin) -> Hop {
        Hop(begin.0)
    }

    #[step(loops)]
    async fn next(&self, hop: &Hop) -> (Option<Hop>, Option<Done>) {
        let next = hop.0.checked_sub(1).map(Hop);
        let done = next.is_none().then_some(Done(0));
        (next, done)
    }
}

/// As `Hops`, with a step that waits once.
struct WaitingHops;

#[workflow]
impl WaitingHops {
    #[step]
    async fn first(&self, begin: &Begin) -> Hop {
        Hop(begin.0)
    }

    #[step(loops)]
    async fn next(&self, hop: &Hop) -> (Option<Hop>, Option<Done>) {
        tokio::task::yield_now().await;
        let next = hop.0.checked_sub(1).map(Hop);
        let done = next.is_none().then_some(Done(0));
        (next, done)
    }
}

/// Allocations of a thousand more hops, per hop; a growing buffer adds far less than one.
fn allocations_per_hop<W: Workflow<Output = Done>>(workflow: impl Fn() -> W) -> u64 {
    // Performs the one-time allocations of the process.
    cost_of(workflow(), 1);
    let [few, many] = [1_000, 2_000].map(|hops| cost_of(workflow(), hops).0.allocations);
    (many - few) / 1_000
}

/// What the feature `metrics`, with which these tests are compiled, allocates for an execution: the labels of its step.
const LABELS: u64 = 2;

// S44
#[test]
fn a_hop_without_branches_allocates_its_event_and_its_future() {
    assert_eq!(allocations_per_hop(|| Hops), 2 + LABELS);
}

// S44
#[test]
fn a_waiting_hop_also_allocates_its_queue_entry_and_drop_signal() {
    assert_eq!(allocations_per_hop(|| WaitingHops), 4 + LABELS);
}
