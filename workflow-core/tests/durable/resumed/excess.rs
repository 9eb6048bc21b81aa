//! Batches beyond a limit of the run leave nothing in the journal, so another process with other limits makes their
//! executions again (S39, S76).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, MemoryStore, Position, Record};
use workflow_core::{RedriveError, RunOptions, RunStatus};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Part, survive, until};

/// Splits into so many items; each item waits if the workflow says so.
#[derive(Clone, Default)]
struct Splits {
    waits: bool,
    read: Arc<AtomicU32>,
}

#[workflow]
impl Splits {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, item: &Item) -> Part {
        self.read.fetch_add(1, Ordering::SeqCst);
        if self.waits {
            std::future::pending::<()>().await;
        }
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

fn engine(splits: &Splits, store: &Arc<MemoryStore>, most: u64) -> Engine {
    let engine = Engine::builder().workflow(splits.clone()).store(Arc::clone(store));
    engine.max_executions_per_run(most).build().unwrap()
}

// S39, S76
#[tokio::test]
async fn a_run_with_too_many_items_is_redriven_under_a_higher_limit() {
    let (store, splits) = (Arc::<MemoryStore>::default(), Splits::default());
    let first = engine(&splits, &store, 6);
    let run = first.start_with::<Splits>(Begin(6), RunOptions::new().id("r")).await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(&error, RunError::TooManyExecutions { excess: Some(excess), .. } if excess.left == 5));
    assert_eq!(splits.read.load(Ordering::SeqCst), 0);
    let has_items = |record: &Record| matches!(record, Record::ExecutionSucceeded { .. });
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    assert!(!records.iter().any(has_items), "nothing of the batch is in the journal");
    drop(run);

    // The journal says what was wrong.
    let second = engine(&splits, &store, 100);
    let past = second.attach::<Splits>("r").await.unwrap().outcome().await.unwrap_err();
    assert!(past.to_string().contains(&error.to_string()), "{past}");
    let run = second.redrive::<Splits>("r").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    assert_eq!(splits.read.load(Ordering::SeqCst), 6);
}

// S39, S76: a limit decides what begins, not what a journal means.
#[tokio::test]
async fn items_in_a_journal_stay_under_a_lower_limit() {
    let (store, splits) = (Arc::<MemoryStore>::default(), Splits { waits: true, ..Splits::default() });
    let first = engine(&splits, &store, 100);
    let run = first.start_with::<Splits>(Begin(50), RunOptions::new().id("r")).await.unwrap();
    until(async || splits.read.load(Ordering::SeqCst) == 50).await;
    first.shut_down(std::time::Duration::ZERO).await;
    drop(run);

    let splits = Splits::default();
    let second = engine(&splits, &store, 3);
    let run = second.attach::<Splits>("r").await.unwrap();
    let error = run.outcome().await.unwrap_err();
    // All the branches settle. Only the gather, which is new, leads to another execution.
    assert_eq!(splits.read.load(Ordering::SeqCst), 50);
    assert!(matches!(error, RunError::TooManyExecutions { limit: 3, excess: None, .. }), "{error:?}");
}

/// The same with a clean-up.
struct Undoes;

#[workflow]
impl Undoes {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {}
}

// S31, S76
#[tokio::test]
async fn the_clean_up_of_too_many_items_has_the_numbers_in_the_journal() {
    let store = Arc::<MemoryStore>::default();
    let engine = |most| {
        let engine = Engine::builder().workflow(Undoes).store(Arc::clone(&store));
        engine.max_executions_per_run(most).build().unwrap()
    };
    let run = engine(6).start_with::<Undoes>(Begin(6), RunOptions::new().id("r")).await.unwrap();
    let error = run.outcome().await.unwrap_err().to_string();
    assert_eq!(run.report().await.unwrap().clean_up.as_ref().unwrap().steps.len(), 1);
    drop(run);
    let other = engine(100);
    let again = other.attach::<Undoes>("r").await.unwrap();
    assert_eq!(again.status(), RunStatus::Failed);
    assert_eq!(again.outcome().await.unwrap_err().to_string(), error);
    let refused = other.redrive::<Undoes>("r").await.unwrap_err();
    assert!(matches!(refused, RedriveError::AtLimit { .. }), "{refused:?}");
}

// Where nothing cleans up, the last record has the text alone, and a later process has no more.
survive! {
    too_many_items: Scenario::new(Undoes).engine(|engine| engine.max_executions_per_run(4)), 4;
    too_many_events: Scenario::new(Undoes).engine(|engine| engine.max_events_per_run(4)), 4;
}
