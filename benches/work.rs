//! The work of the shapes, and the ways to do it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::prelude::*;

mod beside;
pub(crate) mod chain;
mod computing;
mod fan;
mod fan_work;
mod gather;
#[expect(clippy::large_stack_arrays, reason = "the table of so many steps is only the compiler's")]
mod joins;
mod relist;
mod runs;
mod start_up;
pub mod waiting;

/// A contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A workflow.
    Ours,
    /// By hand: a dispatcher that spawns a task per step and receives their events.
    Spawn,
    /// By hand: one task with the same meaning and nothing else.
    Floor,
    /// By hand: a task per stage, linked by channels.
    Stages,
}

/// Work that is done in several ways, all with the same result.
pub struct Work {
    /// The shape and its size: `chain/1000`.
    pub name: String,
    /// The name of an item, such as `step`.
    pub item: &'static str,
    /// The number of items in one execution.
    pub items: u64,
    /// The number of repetitions in one execution.
    repeats: Arc<AtomicU64>,
    /// The contenders.
    pub ways: Vec<(By, Way)>,
}

/// The minimum number of items in one execution, so that the clock and the wake-up of a task do not count.
const LEAST: u64 = 10_000;

/// One execution of the work, in a task of a runtime.
pub type Way = Box<dyn Fn() -> BoxFuture<'static, u64>>;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The amount behind the published figures.
    Full,
    /// A little of everything, to show that it runs.
    Quick,
}

impl Work {
    /// Work of a size, repeated often enough to measure.
    fn new(shape: &str, item: &'static str, size: u64) -> Self {
        Self::named(format!("{shape}/{size}"), item, size)
    }

    /// The same under a name of its own.
    fn named(name: impl Into<String>, item: &'static str, size: u64) -> Self {
        let repeats = (LEAST / size).max(1);
        Self {
            name: name.into(),
            item,
            items: size * repeats,
            repeats: Arc::new(repeats.into()),
            ways: Vec::new(),
        }
    }

    /// Work of a size that is large enough without repetition.
    fn once(shape: &str, item: &'static str, size: u64) -> Self {
        Self {
            name: format!("{shape}/{size}"),
            item,
            items: size,
            repeats: Arc::new(1.into()),
            ways: Vec::new(),
        }
    }

    /// Work of one item each, repeated this often.
    fn times(name: &str, item: &'static str, repeats: u64) -> Self {
        Self {
            name: name.to_owned(),
            item,
            items: repeats,
            repeats: Arc::new(repeats.into()),
            ways: Vec::new(),
        }
    }

    /// The same without repetitions.
    fn once_only(mut self) -> Self {
        self.items /= self.repeats.swap(1, Ordering::Relaxed);
        self
    }

    /// One execution of it by a workflow.
    pub fn ours(&self) -> Option<&Way> {
        self.ways.iter().find(|(by, _)| *by == By::Ours).map(|(_, way)| way)
    }

    /// Adds a contender, which does the work once.
    fn by<F>(mut self, by: By, once: impl Fn() -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = u64> + Send + 'static,
    {
        let repeats = Arc::clone(&self.repeats);
        let way = move || {
            let (once, repeats) = (once.clone(), repeats.load(Ordering::Relaxed));
            async move {
                let mut result = 0_u64;
                for _ in 0..repeats {
                    result = result.wrapping_add(once().await);
                }
                result
            }
            .boxed()
        };
        self.ways.push((by, Box::new(way)));
        self
    }
}

/// A shape: its name, and its work in all sizes.
pub type Shape = (&'static str, fn(Extent) -> Vec<Work>);

/// The shapes with several contenders.
pub const SHAPES: &[Shape] = &[
    ("chain", chain::works),
    ("fan", fan::works),
    ("fixed", fan::fixed),
    ("gather", gather::works),
    ("fan-work", fan_work::works),
    ("computing", computing::works),
    ("runs", runs::works),
    ("joins", joins::works),
    ("relist", relist::works),
    ("preconditions", beside::preconditions),
    ("contexts", beside::contexts),
    ("observers", beside::observers),
    ("start-up", start_up::works),
];

/// The work of a shape. Of a little, nothing is repeated.
pub fn works((_, works): &Shape, extent: Extent) -> Vec<Work> {
    let works = works(extent).into_iter();
    if extent == Extent::Full { works.collect() } else { works.map(Work::once_only).collect() }
}

/// Work in any size, and its name.
pub type InAnySize = (&'static str, fn(u64) -> Work);

/// The work whose counters have a baseline. An entry with the name of a shape is that shape's work.
pub const COUNTED: &[InAnySize] = &[
    ("chain", chain::work),
    ("chain-on-engine", beside::on_engine),
    ("fan", fan::counted),
    ("gather", gather::work),
    ("relist", relist::work),
    ("runs", runs::work),
    ("waiting", waiting::work),
];

/// The work of a name, also of a size that no shape is measured in: `chain/20000`.
pub fn sized(name: &str) -> Option<Work> {
    let (shape, size) = name.split_once('/')?;
    let (_, work) = COUNTED.iter().find(|(counted, _)| *counted == shape)?;
    size.parse().ok().map(work)
}

/// The sizes of a shape, or the lesser ones.
fn sizes(extent: Extent, all: &[u64]) -> Vec<u64> {
    match extent {
        Extent::Full => all.to_vec(),
        Extent::Quick => all.iter().copied().filter(|size| *size <= 1_000).collect(),
    }
}

/// An engine for long runs.
fn engine<W: Workflow>(workflow: W) -> Engine {
    let engine = Engine::builder().workflow(workflow).max_executions_per_run(u64::MAX);
    engine.build().expect("it is sound")
}
