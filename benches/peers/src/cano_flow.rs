//! cano: a state machine whose tasks share data by pointers, without retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cano::prelude::*;

/// The states of all three.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    First,
    Second,
    Third,
    Done,
}

/// A step that counts itself up to a number.
#[derive(Clone)]
struct Count {
    done: Arc<AtomicU64>,
    steps: u64,
    next: State,
}

#[task(state = State)]
impl Count {
    fn config(&self) -> TaskConfig {
        TaskConfig::minimal()
    }

    async fn run_bare(&self) -> Result<TaskResult<State>, CanoError> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(TaskResult::Single(if done == self.steps { State::Done } else { self.next.clone() }))
    }
}

/// Two steps that take turns.
pub(crate) async fn chain(steps: u64) -> u64 {
    let done = Arc::new(AtomicU64::new(0));
    let count = |next| Count { done: Arc::clone(&done), steps, next };
    let workflow = Workflow::bare()
        .register(State::First, count(State::Second))
        .register(State::Second, count(State::First))
        .add_exit_state(State::Done);
    let ended = workflow.orchestrate(State::First, CancellationToken::disabled()).await;
    assert_eq!(ended.expect("it completes"), State::Done);
    done.load(Ordering::Relaxed)
}

/// Squares its number.
#[derive(Clone)]
struct Square {
    number: u64,
    sum: Arc<AtomicU64>,
}

#[task(state = State)]
impl Square {
    fn config(&self) -> TaskConfig {
        TaskConfig::minimal()
    }

    async fn run_bare(&self) -> Result<TaskResult<State>, CanoError> {
        self.sum.fetch_add(self.number * self.number, Ordering::Relaxed);
        Ok(TaskResult::Single(State::Done))
    }
}

/// One task per branch, split and joined.
pub(crate) async fn fan(branches: u64) -> u64 {
    let sum = Arc::new(AtomicU64::new(0));
    let squares = (0..branches).map(|number| Square { number, sum: Arc::clone(&sum) });
    let workflow = Workflow::bare()
        .register_split(State::First, squares, JoinConfig::new(JoinStrategy::All, State::Done))
        .add_exit_state(State::Done);
    let ended = workflow.orchestrate(State::First, CancellationToken::disabled()).await;
    assert_eq!(ended.expect("it completes"), State::Done);
    sum.load(Ordering::Relaxed)
}

/// Adds one.
#[derive(Clone)]
struct AddOne {
    number: Arc<AtomicU64>,
    next: State,
}

#[task(state = State)]
impl AddOne {
    fn config(&self) -> TaskConfig {
        TaskConfig::minimal()
    }

    async fn run_bare(&self) -> Result<TaskResult<State>, CanoError> {
        self.number.fetch_add(1, Ordering::Relaxed);
        Ok(TaskResult::Single(self.next.clone()))
    }
}

/// Three sequential steps; their shared data, and so the workflow, belongs to the run.
async fn run(number: u64) -> u64 {
    let number = Arc::new(AtomicU64::new(number));
    let add_one = |next| AddOne { number: Arc::clone(&number), next };
    let workflow = Workflow::bare()
        .register(State::First, add_one(State::Second))
        .register(State::Second, add_one(State::Third))
        .register(State::Third, add_one(State::Done))
        .add_exit_state(State::Done);
    let ended = workflow.orchestrate(State::First, CancellationToken::disabled()).await;
    assert_eq!(ended.expect("it completes"), State::Done);
    number.load(Ordering::Relaxed)
}

/// Each run is a task.
pub(crate) async fn runs(runs: u64) -> u64 {
    let started: Vec<_> = (0..runs).map(|number| tokio::spawn(run(number))).collect();
    let mut sum = 0;
    for run in started {
        sum += run.await.expect("it does not panic");
    }
    sum
}
