//! The cancel signals that executions get (S31).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use crate::fixtures::{
    Alive, Begin, Done, Gate, Item, Part, Patience, Seen, everyone_else, log_of, started, until,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined;

/// Leaves a task behind that waits for the signal.
struct Leaving {
    left: Seen,
    cancellations: Arc<Mutex<Vec<Cancellation>>>,
    gate: Gate,
}

#[workflow]
impl Leaving {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Outer> {
        [Outer].into_iter().collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..4).map(Item).collect()
    }

    /// The first execution returns; the last fails, which drops those between them.
    #[step]
    async fn leave(&self, item: &Item, cancellation: Cancellation) -> Result<Part, StepError> {
        self.left.note(item.0.to_string());
        self.cancellations.lock().unwrap().push(cancellation);
        match item.0 {
            0 => Ok(Part(0)),
            3 => Err(StepError::permanent("broken")),
            _ => std::future::pending().await,
        }
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) -> Joined {
        Joined
    }

    #[step]
    async fn end(&self, _joined: &Gather<Joined>, cancellation: &Cancellation) -> Done {
        self.cancellations.lock().unwrap().push(cancellation.clone());
        self.gate.pass().await;
        Done(0)
    }
}

// S31, S49
#[tokio::test]
async fn a_cancellation_is_signalled_when_its_execution_returned_failed_or_was_dropped() {
    let (cancellations, gate) = (Arc::<Mutex<Vec<Cancellation>>>::default(), Gate::closed());
    let leaving =
        Leaving { left: Seen::default(), cancellations: Arc::clone(&cancellations), gate: gate.clone() };
    let left = leaving.left.clone();
    let run = started(leaving, 0).await;
    everyone_else().await;
    assert_eq!(
        (run.status(), left.lines()),
        (RunStatus::Running, ["0", "1", "2", "3"].map(String::from).into())
    );
    let told = || cancellations.lock().unwrap().iter().map(Cancellation::is_cancelled).collect::<Vec<_>>();
    assert_eq!(told(), [true, true, true, true, false]);
    gate.let_pass(1);
    run.outcome().await.unwrap();
    let last = cancellations.lock().unwrap().pop().unwrap();
    last.cancelled().await;
}

/// Computes without an await until it is cancelled.
struct Stubborn(Alive, Arc<AtomicBool>);

#[workflow]
impl Stubborn {
    #[step(spawn)]
    async fn compute(&self, begin: &Begin, cancellation: &Cancellation) -> Result<Done, StepError> {
        let _guard = self.0.guard();
        let patience = Patience::new();
        while cancellation.check().is_ok() {
            patience.check();
            std::thread::yield_now();
        }
        self.1.store(true, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(Done(begin.0))
    }
}

// S31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_computes_in_a_task_of_its_own_gets_the_cancel_signal() {
    let (alive, told) = (Alive::default(), Arc::<AtomicBool>::default());
    let run = started(Stubborn(alive.clone(), Arc::clone(&told)), 1).await;
    until(|| alive.count() == 1).await;
    run.cancel("enough").await.unwrap();
    until(|| alive.count() == 0).await;
    assert!(told.load(Ordering::SeqCst));
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}
