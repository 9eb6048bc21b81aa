//! Map and gather, as a program sees them (S44–S51). This file has the shared parts; each module below has one topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use workflow_core::prelude::*;
use workflow_testkit::TestRun;

use crate::fixtures::Gate;

mod arrivals;
mod dropping;
mod gathers;
mod joining;
mod limits;
mod loops;
mod nesting;
mod opening;
mod pairing;
mod policies;
mod reports;
mod requests;
mod settling;
mod tolerate;
mod until;
mod waiting;

/// Records a step's input; no step takes this event.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Noted(pub(crate) String);

/// The recorded inputs, in log order.
fn noted<W: Workflow>(run: &TestRun<W>) -> Vec<String> {
    run.emitted::<Noted>().iter().map(|noted| noted.0.clone()).collect()
}

/// The same in alphabetical order, where steps end in any order.
fn noted_sorted<W: Workflow>(run: &TestRun<W>) -> Vec<String> {
    let mut lines = noted(run);
    lines.sort();
    lines
}

/// Ends a run with its last step's input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Told(Vec<String>);

fn told(lines: impl IntoIterator<Item = impl Into<String>>) -> Told {
    Told(lines.into_iter().map(Into::into).collect())
}

/// One gate per index, so that a test decides the order in which steps end. Clones share the gates.
#[derive(Debug, Clone)]
pub(crate) struct Gates(Arc<[Gate]>);

impl Gates {
    pub(crate) fn closed(places: usize) -> Self {
        Self((0..places).map(|_| Gate::closed()).collect())
    }

    pub(crate) async fn pass(&self, place: u32) {
        self.0[place as usize].pass().await;
    }

    /// Opens this gate, for current and later waiters.
    pub(crate) fn open(&self, place: usize) {
        self.0[place].let_pass(1_000);
    }
}

/// A small generator of random numbers: the same seed gives the same numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// The numbers from 0 to `count` in a random order.
    pub(crate) fn order_of(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, self.below(place + 1));
        }
        order
    }
}

/// The current number and its maximum. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level(Arc<(AtomicUsize, AtomicUsize)>);

impl Level {
    pub(crate) fn rise(&self) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
    }

    pub(crate) fn fall(&self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    pub(crate) fn highest(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}
