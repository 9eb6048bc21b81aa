//! The ledger of a case, which knows nothing of the product: what each attempt did, by the key of its execution.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use workflow_core::prelude::*;
use workflow_core::{ExecutionId, RunId};

use super::plan::{LIMIT, Manner};
use crate::world::Face;

/// How many attempts a limit of the engines lets be active.
pub(super) const AT_A_TIME: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    keys: Mutex<BTreeMap<String, Entry>>,
    /// The executions of which an attempt returned without an error.
    succeeded: Mutex<BTreeSet<(RunId, ExecutionId)>>,
    /// The attempts that are active, by engine and what bounds them.
    active: Arc<Mutex<BTreeMap<(usize, String), u32>>>,
    /// Whether the steps fail no more that fail until they are mended.
    mended: AtomicBool,
}

/// What an execution did.
#[derive(Debug, Default)]
struct Entry {
    begun: u32,
    /// How many attempts returned an error.
    failed: u32,
    effects: u32,
    /// How many attempts a caller allowed although the execution is in doubt.
    allowed: u32,
}

impl Ledger {
    pub(super) fn is_mended(&self) -> bool {
        self.mended.load(Ordering::SeqCst)
    }

    pub(super) fn mends(&self) {
        self.mended.store(true, Ordering::SeqCst);
    }

    /// The key of the execution, the same in each life of its run.
    fn key(info: &RunInfo) -> String {
        info.idempotency_key()
    }

    /// An attempt begins. S69: what runs at most once begins again only behind an error that it returned.
    pub(super) fn begins(&self, face: &Face, manner: &Manner, info: &RunInfo) -> Vec<Active> {
        let key = Self::key(info);
        let mut keys = self.keys.lock().unwrap();
        let entry = keys.entry(key.clone()).or_default();
        entry.begun += 1;
        if manner.at_most_once && entry.begun > 1 + entry.failed + entry.allowed {
            face.world.violate(format!(
                "{key} begins again in engine {}, although it runs at most once: {entry:?}",
                face.who
            ));
        }
        drop(keys);
        let mut active = Vec::new();
        if let Some(most) = manner.concurrency {
            active.push(self.active(face, format!("{} {}", info.run(), info.step()), most));
        }
        if manner.limited {
            active.push(self.active(face, LIMIT.to_owned(), AT_A_TIME));
        }
        active
    }

    fn active(&self, face: &Face, of: String, most: u32) -> Active {
        let place = (face.who, of);
        *self.active.lock().unwrap().entry(place.clone()).or_default() += 1;
        Active { all: Arc::clone(&self.active), place, most }
    }

    /// An attempt has its effect.
    pub(super) fn has_effect(&self, face: &Face, manner: &Manner, info: &RunInfo) {
        let key = Self::key(info);
        let mut keys = self.keys.lock().unwrap();
        let entry = keys.entry(key.clone()).or_default();
        entry.effects += 1;
        if manner.at_most_once && entry.effects > 1 + entry.allowed {
            face.world
                .violate(format!("{key} has its effect twice, although it runs at most once: {entry:?}"));
        }
    }

    /// An attempt returns.
    pub(super) fn returns(&self, info: &RunInfo, failed: bool) {
        self.keys.lock().unwrap().entry(Self::key(info)).or_default().failed += u32::from(failed);
        if !failed {
            self.succeeded.lock().unwrap().insert((info.run().clone(), info.execution()));
        }
    }

    /// Whether an attempt of the execution returned without an error.
    pub(super) fn has_success(&self, run: &RunId, execution: ExecutionId) -> bool {
        self.succeeded.lock().unwrap().contains(&(run.clone(), execution))
    }

    /// A caller lets the executions of a run that are in doubt be made again.
    pub(super) fn allows_again(&self, run: &RunId) {
        let within = format!("{run}/");
        for (_, entry) in self.keys.lock().unwrap().iter_mut().filter(|(key, _)| key.starts_with(&within)) {
            entry.allowed = entry.begun;
        }
    }
}

/// An attempt that is active until this is dropped, among those that one limit bounds.
pub(super) struct Active {
    all: Arc<Mutex<BTreeMap<(usize, String), u32>>>,
    place: (usize, String),
    most: u32,
}

impl Active {
    /// S21, S70: no more attempts are active than may be. Not asked at the begin of an attempt, where one that was dropped in
    /// the same moment is about to go.
    pub(super) fn check(&self, face: &Face) {
        let Self { all, place, most } = self;
        let count = all.lock().unwrap().get(place).copied().unwrap_or_default();
        if count > *most {
            face.world.violate(format!("{count} attempts of {place:?} are active, and {most} may be"));
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some(count) = self.all.lock().unwrap().get_mut(&self.place) {
            *count -= 1;
        }
    }
}
