//! A store that goes wrong on purpose: which calls do and how, and what it has done. What a fault does to a call is in
//! `call`, and what is drawn from a seed in `draw`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::RunId;

mod call;
mod draw;

use draw::Draw;

/// How many faults are injected, unless the test says otherwise.
const MOST: usize = 1_000;

/// A call of an [`EventStore`](workflow_core::EventStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreCall {
    /// [`append`](workflow_core::EventStore::append).
    Append,
    /// [`read`](workflow_core::EventStore::read).
    Read,
    /// [`runs`](workflow_core::EventStore::runs).
    Runs,
    /// [`remove`](workflow_core::EventStore::remove).
    Remove,
    /// [`retain`](workflow_core::EventStore::retain).
    Retain,
    /// [`lease`](workflow_core::EventStore::lease).
    Lease,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing is done, and the store is [`Unavailable`](workflow_core::StoreError::Unavailable).
    Refused,
    /// The call is done, whatever comes of it, and the answer is `Unavailable` all the same.
    AnswerLost,
    /// The call is done, and its answer comes when it was polled so often in vain. It wakes its task each time, so that
    /// everybody else who is ready goes first, and takes no time.
    Late(u32),
    /// Nothing is done, and somebody else is said to have written: a
    /// [`Conflict`](workflow_core::StoreError::Conflict). Only of appends.
    Conflict,
    /// Nothing is done, and the journal cannot be read: [`Corrupt`](workflow_core::StoreError::Corrupt). Of appends and
    /// reads.
    Corrupt,
    /// Only so many records of the batch are kept, fewer than it has, and the answer is that it is there. The summary is
    /// that of a run that goes on. Only of appends.
    ///
    /// This is a store that breaks its contract, and `event_store_conformance!` finds it. No engine can make up for it: a
    /// part of a batch can read like an execution that emitted less.
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
    /// Which of all such calls it was, from 1.
    pub number: u64,
    /// The run that it was about; none if it asked for a list.
    pub run: Option<RunId>,
    /// What went wrong.
    pub fault: Fault,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, number, run, fault } = self;
        write!(f, "{fault:?} at {call:?} {number}")?;
        run.as_ref().map_or(Ok(()), |run| write!(f, " of run `{run}`"))
    }
}

/// An [`EventStore`](workflow_core::EventStore) around another one, some calls of which go wrong: those that the test
/// names, or some that are drawn from a seed. Clones are one store.
///
/// Calls are counted by their kind, in the order in which they are made, whichever run they are of. On one thread, as in
/// a [`Scenario`](crate::Scenario), the same seed gives the same faults.
///
/// ```
/// use std::sync::Arc;
///
/// use workflow_core::prelude::*;
/// use workflow_core::{MemoryStore, RunOptions};
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
    /// A store in which nothing goes wrong before it is [told](Self::fail) to.
    pub fn new(store: S) -> Self {
        Self::with(store, None)
    }

    /// A store in which one call in [ten](Self::one_in) goes wrong, drawn from a seed: it is refused, its answer is lost
    /// or late, or, of appends, there is a conflict. [`among`](Self::among) says otherwise.
    ///
    /// ```
    /// use workflow_core::MemoryStore;
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

    /// Lets a call go wrong: the `number`-th of its kind from when the store was made, from 1. What is drawn from a seed
    /// does not matter for it.
    ///
    /// # Panics
    /// If the fault is none of such a call.
    #[must_use]
    pub fn fail(self, call: StoreCall, number: u64, fault: Fault) -> Self {
        assert!(fault.is_of(call), "`{fault:?}` is no fault of `{call:?}`");
        self.lock().scripted.insert((call, number), fault);
        self
    }

    /// Of the calls of a store with a seed, one in so many goes wrong; 0 is taken as 1. Default: 10.
    #[must_use]
    pub fn one_in(self, calls: u64) -> Self {
        if let Some(draw) = &mut self.lock().draw {
            draw.one_in = calls.max(1);
        }
        self
    }

    /// With a seed, what goes wrong is one of these; a call of which none can be has no fault.
    #[must_use]
    pub fn among(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        if let Some(draw) = &mut self.lock().draw {
            draw.faults = faults.into_iter().collect();
        }
        self
    }

    /// So many faults are injected, and from then on nothing goes wrong any more. Default: 1,000.
    #[must_use]
    pub fn at_most(self, faults: usize) -> Self {
        self.lock().at_most = faults;
        self
    }

    /// What has gone wrong, in its order.
    pub fn injected(&self) -> Vec<Injected> {
        self.lock().injected.clone()
    }

    /// Whether this call goes wrong.
    fn fault(&self, call: StoreCall, run: Option<&RunId>) -> Option<Fault> {
        let mut state = self.lock();
        let count = state.calls.entry(call).or_default();
        *count += 1;
        let number = *count;
        // Drawn in any case, so that what is scripted does not change what is drawn later.
        let drawn = state.draw.as_mut().and_then(|draw| draw.fault(call));
        let fault = state.scripted.get(&(call, number)).copied().or(drawn)?;
        if state.injected.len() >= state.at_most {
            return None;
        }
        state.injected.push(Injected { call, number, run: run.cloned(), fault });
        Some(fault)
    }

    /// Nothing in here is ever left half-changed.
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
