//! The gate at which a run's operations wait for their turn.
//!
//! Invariant: an operation takes effect only after [`Gate::permit`], one at a time. The gate knows the waiting
//! operations, and leaves the choice among them to `order` and `search`.
//!
//! ```text
//! step returns ─▶ pass() ─▶ waits ─▶ permit(id) ─▶ its events are committed
//! context call ─▶ pass() ─▶ waits ─▶ permit(id) ─▶ the store performs it
//! ```

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use workflow_core::{ExecutionId, Seq};

use super::footprint::Footprint;

/// The origin of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Actor {
    Execution(ExecutionId),
    /// A precondition, or a task that a step has spawned.
    Unknown,
    /// A sent event, by its index in the script.
    Send(usize),
    /// A reply to the request at this position.
    Reply(Seq),
    /// The store, which confirms the run's writes.
    Store,
    /// The passing of time. The number identifies the set of waiters, so that it is another operation when others wait.
    Time(u64),
}

/// Identifies an operation across all runs that made the same choices before it reached the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OpId {
    pub(super) actor: Actor,
    /// The number of earlier operations of the same actor.
    nth: u32,
}

impl OpId {
    /// An arrival is one operation.
    pub(super) fn arrival(actor: Actor) -> Self {
        Self { actor, nth: 0 }
    }
}

/// An operation whose position in the order matters.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) id: OpId,
    /// Describes the operation.
    pub(super) words: Arc<str>,
    /// The state it touches, which decides with which operations it commutes.
    pub(super) footprint: Arc<Footprint>,
}

/// The running execution, for its later operations.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub(super) actor: Actor,
    pub(super) name: Arc<str>,
}

/// Where operations wait.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The waiting operations, in order of arrival.
    held: Vec<(Op, oneshot::Sender<()>)>,
    /// The number of operations per actor that have reached the gate; gives `OpId::nth`.
    came: HashMap<Actor, u32>,
    /// The number of polls of each active call.
    calling: BTreeMap<ExecutionId, u64>,
    /// How often each step was called.
    calls: HashMap<String, u32>,
    /// Whether a fan-out of this run bounds its open branches; never reset.
    opens_branches_in_turn: bool,
    /// Whether the order in which branches settle decides more than that order, since a fan-out of this run has the
    /// policy `wait_all`, or drops branches once enough have settled or too many have failed; never reset.
    order_of_settling_decides: bool,
}

impl State {
    /// Whether an operation of the execution waits.
    fn holds(&self, execution: ExecutionId) -> bool {
        let of = Actor::Execution(execution);
        self.held.iter().any(|(op, permit)| op.id.actor == of && !permit.is_closed())
    }
}

impl Gate {
    /// Names an execution by its step and its index among the step's executions.
    pub(super) fn who(&self, step: &str, execution: ExecutionId) -> Who {
        let mut state = self.state();
        let calls = state.calls.entry(step.to_owned()).or_default();
        *calls += 1;
        Who { actor: Actor::Execution(execution), name: format!("{step}(#{calls})").into() }
    }

    /// Waits until it is the operation's turn.
    pub(super) async fn pass(&self, actor: Actor, words: String, footprint: Footprint) {
        let (permit, permitted) = oneshot::channel();
        {
            let mut state = self.state();
            let came = state.came.entry(actor).or_default();
            let id = OpId { actor, nth: *came };
            *came += 1;
            state.held.push((Op { id, words: words.into(), footprint: Arc::new(footprint) }, permit));
        }
        // The receive fails only if the gate is gone.
        let _ = permitted.await;
    }

    /// Marks a call of a step as active until the result is dropped.
    pub(super) fn calling(self: &Arc<Self>, execution: ExecutionId) -> Calling {
        self.state().calling.insert(execution, 0);
        Calling { gate: Arc::clone(self), execution }
    }

    /// A number for the set of active calls that are not at the gate; each waits for a timer or another step. The
    /// number changes once one of them is polled. `None` if there are none.
    pub(super) fn elsewhere(&self) -> Option<u64> {
        let state = self.state();
        let mut elsewhere =
            state.calling.iter().filter(|(execution, _)| !state.holds(**execution)).peekable();
        elsewhere.peek()?;
        let mut hasher = DefaultHasher::new();
        elsewhere.for_each(|calling| calling.hash(&mut hasher));
        Some(hasher.finish())
    }

    /// Whether a call of the execution is active or waits at the gate.
    pub(super) fn is_called(&self, execution: ExecutionId) -> bool {
        let state = self.state();
        state.calling.contains_key(&execution) || state.holds(execution)
    }

    /// The number of operations that have reached the gate.
    pub(super) fn came(&self) -> u32 {
        self.state().came.values().sum()
    }

    /// The waiting operations in order of arrival, without dropped ones.
    pub(super) fn waiting(&self) -> Vec<Op> {
        let mut state = self.state();
        state.held.retain(|(_, permit)| !permit.is_closed());
        state.held.iter().map(|(op, _)| op.clone()).collect()
    }

    /// Whether a write of the run waits for confirmation: until then the run answers no query.
    pub(super) fn holds_a_write(&self) -> bool {
        let state = self.state();
        state.held.iter().any(|(op, permit)| op.id.actor == Actor::Store && !permit.is_closed())
    }

    /// Lets an operation continue; returns whether it was waiting.
    pub(super) fn permit(&self, id: OpId) -> bool {
        let mut state = self.state();
        let Some(place) = state.held.iter().position(|(op, _)| op.id == id) else { return false };
        let (_, permit) = state.held.remove(place);
        permit.send(()).is_ok()
    }

    pub(super) fn note_branches_in_turn(&self) {
        self.state().opens_branches_in_turn = true;
    }

    pub(super) fn opens_branches_in_turn(&self) -> bool {
        self.state().opens_branches_in_turn
    }

    pub(super) fn note_order_of_settling_decides(&self) {
        self.state().order_of_settling_decides = true;
    }

    pub(super) fn order_of_settling_decides(&self) -> bool {
        self.state().order_of_settling_decides
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An active call of a step.
#[derive(Debug)]
pub(super) struct Calling {
    gate: Arc<Gate>,
    execution: ExecutionId,
}

impl Calling {
    pub(super) fn polled(&self) {
        if let Some(polls) = self.gate.state().calling.get_mut(&self.execution) {
            *polls += 1;
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.gate.state().calling.remove(&self.execution);
    }
}
