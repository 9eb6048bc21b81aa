//! A workflow with its type erased, so that one run type drives all of them.

use std::any::TypeId;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dashmap::DashMap;

use crate::error::TableError;
use crate::input::StepCall;
use crate::table::{DependencyTable, TableSpec};
use crate::workflow::{Check, StepFuture, Workflow};

/// A hosted workflow: its table, its steps, and what was learned of them.
pub(crate) trait Host: Send + Sync {
    fn table(&self) -> &Arc<DependencyTable>;
    fn call(&self, step: usize, call: StepCall) -> StepFuture;
    fn check(&self, step: usize, call: StepCall) -> Check;
    /// How heavy the step's polls proved to be.
    fn weight(&self, step: usize) -> &Weight;
}

impl std::fmt::Debug for dyn Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({})", self.table().name)
    }
}

/// How heavy the polls of a step are. One long poll makes it heavy; a few short ones make it light again, so
/// that a poll that was merely interrupted does no lasting harm.
#[derive(Debug, Default)]
pub(crate) struct Weight(AtomicU8);

impl Weight {
    const LONG_POLL: Duration = Duration::from_micros(100);
    const HEAVY: u8 = 16;
    const MOST: u8 = 128;

    pub(crate) fn is_heavy(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::HEAVY
    }

    /// Takes one poll into account. Lost updates between threads do not matter.
    pub(crate) fn note(&self, poll: Duration) {
        let weight = self.0.load(Ordering::Relaxed);
        if poll > Self::LONG_POLL {
            self.0.store(weight.saturating_add(Self::HEAVY).min(Self::MOST), Ordering::Relaxed);
        } else if weight > 0 {
            self.0.store(weight - 1, Ordering::Relaxed);
        }
    }
}

pub(crate) struct Hosted<W> {
    workflow: Arc<W>,
    table: Arc<DependencyTable>,
    weights: Box<[Weight]>,
}

impl<W: Workflow> Hosted<W> {
    /// The workflow, and what is wrong with its table. With a mistake it must not run; it is made all the same,
    /// so that its other mistakes are found too.
    pub(crate) fn new(workflow: W) -> (Self, Option<TableError>) {
        let (table, error) = table_of(TypeId::of::<W>(), W::TABLE);
        let weights = table.steps.iter().map(|_| Weight::default()).collect();
        (Self { workflow: Arc::new(workflow), table, weights }, error)
    }
}

/// The compiled table of a workflow, compiled once per process if nothing is wrong with it.
fn table_of(workflow: TypeId, spec: &'static TableSpec) -> (Arc<DependencyTable>, Option<TableError>) {
    static TABLES: LazyLock<DashMap<TypeId, Arc<DependencyTable>>> = LazyLock::new(DashMap::new);
    if let Some(table) = TABLES.get(&workflow) {
        return (Arc::clone(&table), None);
    }
    let (table, error) = DependencyTable::with_problems(spec);
    let table = Arc::new(table);
    if error.is_none() {
        TABLES.insert(workflow, Arc::clone(&table));
    }
    (table, error)
}

impl<W: Workflow> Host for Hosted<W> {
    fn table(&self) -> &Arc<DependencyTable> {
        &self.table
    }

    fn call(&self, step: usize, call: StepCall) -> StepFuture {
        W::call(&self.workflow, step, call)
    }

    fn check(&self, step: usize, call: StepCall) -> Check {
        W::check(&self.workflow, step, call)
    }

    fn weight(&self, step: usize) -> &Weight {
        &self.weights[step]
    }
}
