//! The gate at which a run's operations wait until it is their turn, with who waits there.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use workflow_core::{ExecutionId, Seq};

use super::footprint::Footprint;

/// Whose operation it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Actor {
    Execution(ExecutionId),
    /// A precondition, or a task that a step has spawned.
    Unknown,
    /// What a scenario sends, by its place in the script.
    Send(usize),
    /// What a scenario replies to the request at this position.
    Reply(Seq),
    /// What confirms the run's writes.
    Store,
    /// What is due next. The number stands for who waits for it, so that it is another operation when others do.
    Time(u64),
}

/// An operation of a run: the same one in every run that has gone the same way before it was at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OpId {
    pub(super) actor: Actor,
    /// How many operations of the actor were at the gate before it.
    nth: u32,
}

impl OpId {
    /// What comes from outside is one operation.
    pub(super) fn arrival(actor: Actor) -> Self {
        Self { actor, nth: 0 }
    }
}

/// An operation whose place in the order matters.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) id: OpId,
    /// What it does, in words.
    pub(super) words: Arc<str>,
    pub(super) footprint: Arc<Footprint>,
}

/// Who runs, for the operations that it will come to the gate with.
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
    /// In the order in which they came.
    held: Vec<(Op, oneshot::Sender<()>)>,
    came: HashMap<Actor, u32>,
    /// How often the calls that go on have been polled.
    calling: BTreeMap<ExecutionId, u64>,
    /// How often each step was called.
    calls: HashMap<String, u32>,
    opens_branches_in_turn: bool,
    waits_for_all_branches: bool,
}

impl State {
    /// Whether an operation of the execution waits.
    fn holds(&self, execution: ExecutionId) -> bool {
        let of = Actor::Execution(execution);
        self.held.iter().any(|(op, permit)| op.id.actor == of && !permit.is_closed())
    }
}

impl Gate {
    /// Names an execution by its step and by how many of the step there were before.
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
        // An error says that there is no gate any more.
        let _ = permitted.await;
    }

    /// Notes that a call of a step goes on, until what it returns is dropped.
    pub(super) fn calling(self: &Arc<Self>, execution: ExecutionId) -> Calling {
        self.state().calling.insert(execution, 0);
        Calling { gate: Arc::clone(self), execution }
    }

    /// Who goes on, or would, and is not at the gate, as a number: each waits for a timer, or for another step. It is
    /// another number once one of them has been polled. None if there is nobody.
    pub(super) fn elsewhere(&self) -> Option<u64> {
        let state = self.state();
        let mut elsewhere =
            state.calling.iter().filter(|(execution, _)| !state.holds(**execution)).peekable();
        elsewhere.peek()?;
        let mut hasher = DefaultHasher::new();
        elsewhere.for_each(|calling| calling.hash(&mut hasher));
        Some(hasher.finish())
    }

    /// Whether a call of the execution goes on, or waits at the gate.
    pub(super) fn is_called(&self, execution: ExecutionId) -> bool {
        let state = self.state();
        state.calling.contains_key(&execution) || state.holds(execution)
    }

    /// How many operations have come to the gate.
    pub(super) fn came(&self) -> u32 {
        self.state().came.values().sum()
    }

    /// Who waits, in the order in which they came. Those that were dropped do not.
    pub(super) fn waiting(&self) -> Vec<Op> {
        let mut state = self.state();
        state.held.retain(|(_, permit)| !permit.is_closed());
        state.held.iter().map(|(op, _)| op.clone()).collect()
    }

    /// Whether a write of the run waits to be confirmed: it answers no question before.
    pub(super) fn holds_a_write(&self) -> bool {
        let state = self.state();
        state.held.iter().any(|(op, permit)| op.id.actor == Actor::Store && !permit.is_closed())
    }

    /// Lets an operation go on; says whether it was there.
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

    pub(super) fn note_waits_for_all_branches(&self) {
        self.state().waits_for_all_branches = true;
    }

    pub(super) fn waits_for_all_branches(&self) -> bool {
        self.state().waits_for_all_branches
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call of a step that goes on.
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
