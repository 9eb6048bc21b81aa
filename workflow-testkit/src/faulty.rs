//! A store that fails on purpose: which calls fail and how, and a record of the faults. `call` applies a fault to a
//! call, and `draw` draws faults from a seed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::RunId;

mod call;
mod draw;

use draw::Draw;

/// The default maximum number of injected faults.
const MOST: usize = 1_000;

/// A call of an [`EventStore`](workflow_core::store::EventStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreCall {
    /// [`append`](workflow_core::store::EventStore::append).
    Append,
    /// [`read`](workflow_core::store::EventStore::read).
    Read,
    /// [`runs`](workflow_core::store::EventStore::runs).
    Runs,
    /// [`remove`](workflow_core::store::EventStore::remove).
    Remove,
    /// [`retain`](workflow_core::store::EventStore::retain).
    Retain,
    /// [`lease`](workflow_core::store::EventStore::lease).
    Lease,
}

/// A fault of a store call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The store does nothing and reports [`Unavailable`](workflow_core::store::StoreError::Unavailable).
    Refused,
    /// The store performs the call, but reports `Unavailable`.
    AnswerLost,
    /// The store performs the call, and answers after this many polls. Each poll wakes the task, so all other ready
    /// tasks run first, and no time passes.
    Late(u32),
    /// The store does nothing and reports that another process wrote: a
    /// [`Conflict`](workflow_core::store::StoreError::Conflict). Only for appends.
    Conflict,
    /// The store does nothing and reports an unreadable journal: [`Corrupt`](workflow_core::store::StoreError::Corrupt). For
    /// appends and reads.
    Corrupt,
    /// The store keeps only this many records of the batch, fewer than it has, and confirms the whole. The summary is
    /// that of an open run. Only for appends.
    ///
    /// Such a store breaks its contract, and `event_store_conformance!` detects it. No engine can compensate: a part of
    /// a batch may read like an execution that emitted less.
    Torn(usize),
}

impl Fault {
    fn is_of(self, call: StoreCall) -> bool {
        match self {
            Self::Refused | Self::AnswerLost | Self::Late(_) => true,
            Self::Conflict | Self::Torn(_) => call == StoreCall::Append,
            Self::Corrupt => matches!(call, StoreCall::Append | StoreCall::Read),
        }
    }
}

/// A fault that was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// The call.
    pub call: StoreCall,
    /// The number of the call among those of its kind, from 1.
    pub number: u64,
    /// The run of the call; `None` for a call about several runs.
    pub run: Option<RunId>,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, number, run, fault } = self;
        write!(f, "{fault:?} at {call:?} {number}")?;
        run.as_ref().map_or(Ok(()), |run| write!(f, " of run `{run}`"))
    }
}

/// Wraps an [`EventStore`](workflow_core::store::EventStore) and injects faults into its calls.
///
/// The test names the calls, or the store draws them from a seed. Clones are one store.
///
/// Calls count per kind, in order, over all runs. On one thread, as in a [`Scenario`](crate::Scenario), the same seed
/// gives the same faults.
///
/// ```
/// use std::sync::Arc;
///
/// use workflow_core::prelude::*;
/// use workflow_core::RunOptions;
/// use workflow_core::store::MemoryStore;
/// use workflow_testkit::{Fault, FaultyStore, StoreCall};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Ordered { cents: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Packed;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Shipped;
///
/// struct Orders;
///
/// #[workflow]
/// impl Orders {
///     #[step]
///     async fn pack(&self, _order: &Ordered) -> Packed { Packed }
///
///     #[step]
///     async fn ship(&self, _packed: &Packed) -> Shipped { Shipped }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kept = Arc::new(MemoryStore::default());
/// let faulty = FaultyStore::new(Arc::clone(&kept)).fail(StoreCall::Append, 2, Fault::AnswerLost);
/// let engine = Engine::builder().workflow(Orders).store(faulty.clone()).build()?;
/// let run = engine.start_with::<Orders>(Ordered { cents: 70 }, RunOptions::new().id("r-1")).await?;
/// assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
/// assert_eq!(faulty.injected()[0].to_string(), "AnswerLost at Append 2 of run `r-1`");
///
/// let engine = Engine::builder().workflow(Orders).store(kept).build()?;
/// assert_eq!(engine.attach::<Orders>("r-1").await?.outcome().await?, Shipped);
/// # Ok(())
/// # }
/// ```
pub struct FaultyStore<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    store: S,
    state: Mutex<State>,
}

struct State {
    scripted: BTreeMap<(StoreCall, u64), Fault>,
    draw: Option<Draw>,
    at_most: usize,
    calls: BTreeMap<StoreCall, u64>,
    injected: Vec<Injected>,
}

impl<S> FaultyStore<S> {
    /// Wraps a store without faults, until [`fail`](Self::fail) adds some.
    pub fn new(store: S) -> Self {
        Self::with(store, None)
    }

    /// Wraps a store in which one call in [ten](Self::one_in) fails, drawn from a seed.
    ///
    /// The call is refused, its answer is lost or late, or an append conflicts. [`among`](Self::among) selects other
    /// faults.
    ///
    /// ```
    /// use workflow_core::store::MemoryStore;
    /// use workflow_testkit::FaultyStore;
    ///
    /// let store = FaultyStore::seeded(MemoryStore::default(), 7).one_in(4).at_most(2);
    /// assert!(store.injected().is_empty());
    /// ```
    pub fn seeded(store: S, seed: u64) -> Self {
        Self::with(store, Some(Draw::of(seed)))
    }

    fn with(store: S, draw: Option<Draw>) -> Self {
        let state = State {
            scripted: BTreeMap::new(),
            draw,
            at_most: MOST,
            calls: BTreeMap::new(),
            injected: Vec::new(),
        };
        Self { shared: Arc::new(Shared { store, state: Mutex::new(state) }) }
    }

    /// Makes the `number`-th call of a kind fail, from 1.
    ///
    /// Calls count from the creation of the store. The seed does not affect this call.
    ///
    /// # Panics
    /// Panics if the fault does not apply to this kind of call.
    #[must_use]
    pub fn fail(self, call: StoreCall, number: u64, fault: Fault) -> Self {
        assert!(fault.is_of(call), "`{fault:?}` is no fault of `{call:?}`");
        self.lock().scripted.insert((call, number), fault);
        self
    }

    /// Makes one in this many calls of a seeded store fail.
    ///
    /// Default: 10; 0 counts as 1.
    #[must_use]
    pub fn one_in(self, calls: u64) -> Self {
        if let Some(draw) = &mut self.lock().draw {
            draw.one_in = calls.max(1);
        }
        self
    }

    /// Limits a seeded store to these faults. Calls to which none applies do not fail.
    #[must_use]
    pub fn among(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        if let Some(draw) = &mut self.lock().draw {
            draw.faults = faults.into_iter().collect();
        }
        self
    }

    /// Limits the number of injected faults. Default: 1,000.
    #[must_use]
    pub fn at_most(self, faults: usize) -> Self {
        self.lock().at_most = faults;
        self
    }

    /// The injected faults, in order.
    pub fn injected(&self) -> Vec<Injected> {
        self.lock().injected.clone()
    }

    /// The fault of this call, if any.
    fn fault(&self, call: StoreCall, run: Option<&RunId>) -> Option<Fault> {
        let mut state = self.lock();
        let count = state.calls.entry(call).or_default();
        *count += 1;
        let number = *count;
        // The draw happens in any case, so that scripted faults do not change later draws.
        let drawn = state.draw.as_mut().and_then(|draw| draw.fault(call));
        let fault = state.scripted.get(&(call, number)).copied().or(drawn)?;
        if state.injected.len() >= state.at_most {
            return None;
        }
        state.injected.push(Injected { call, number, run: run.cloned(), fault });
        Some(fault)
    }

    /// No code leaves the state half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for FaultyStore<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("FaultyStore")
            .field("calls", &state.calls)
            .field("injected", &state.injected)
            .finish_non_exhaustive()
    }
}
