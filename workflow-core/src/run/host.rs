//! A workflow with its type erased, so that one run type drives all of them.

use std::any::TypeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use dashmap::DashMap;

use crate::error::TableError;
use crate::input::StepCall;
use crate::table::DependencyTable;
use crate::workflow::{Check, StepFuture, Workflow};

/// A hosted workflow: its table, its steps, and what was learned of them.
pub(crate) trait Host: Send + Sync {
    fn table(&self) -> &Arc<DependencyTable>;
    fn call(&self, step: usize, call: StepCall) -> StepFuture;
    fn check(&self, step: usize, call: StepCall) -> Check;
    /// Whether the step's polls proved long.
    fn is_heavy(&self, step: usize) -> bool;
    fn note_heavy(&self, step: usize);
}

impl std::fmt::Debug for dyn Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({})", self.table().name)
    }
}

pub(crate) struct Hosted<W> {
    workflow: Arc<W>,
    table: Arc<DependencyTable>,
    heavy: Box<[AtomicBool]>,
}

impl<W: Workflow> Hosted<W> {
    pub(crate) fn new(workflow: W) -> Result<Self, TableError> {
        let table = table_of::<W>()?;
        let heavy = table.steps.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { workflow: Arc::new(workflow), table, heavy })
    }
}

/// The compiled table of a workflow, compiled once per process.
pub(crate) fn table_of<W: Workflow>() -> Result<Arc<DependencyTable>, TableError> {
    static TABLES: LazyLock<DashMap<TypeId, Arc<DependencyTable>>> = LazyLock::new(DashMap::new);
    if let Some(table) = TABLES.get(&TypeId::of::<W>()) {
        return Ok(Arc::clone(&table));
    }
    let table = Arc::new(DependencyTable::from_spec(W::TABLE)?);
    TABLES.insert(TypeId::of::<W>(), Arc::clone(&table));
    Ok(table)
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

    fn is_heavy(&self, step: usize) -> bool {
        self.heavy[step].load(Ordering::Relaxed)
    }

    fn note_heavy(&self, step: usize) {
        self.heavy[step].store(true, Ordering::Relaxed);
    }
}
