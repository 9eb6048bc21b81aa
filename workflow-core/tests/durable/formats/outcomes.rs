//! The outcome of a run from the last records of its journal, without an engine.

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{RunOptions, RunStatus, outcome_of};

use super::recorded::as_read;
use crate::fixtures::{Begin, Done, Item};

/// Ends in every way, by the number of its start.
struct Ends;

#[workflow]
impl Ends {
    #[step]
    async fn begin(&self, begin: &Begin) -> Result<Item, StepError> {
        if begin.0 == 1 { Err(StepError::permanent("no paper")) } else { Ok(Item(begin.0)) }
    }

    #[precondition]
    fn is_wanted(item: &Item) -> Result<bool, StepError> {
        if item.0 == 2 { Err(StepError::permanent("no list")) } else { Ok(true) }
    }

    #[step(precondition = is_wanted)]
    async fn end(&self, item: &Item) -> Done {
        if item.0 == 3 { std::future::pending().await } else { Done(item.0) }
    }
}

/// The text of the run's error, and the records of its journal as a store on disk returns them.
async fn ended(begin: u32) -> (Result<Done, RunError>, Vec<Record>) {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Ends).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Ends>(Begin(begin), RunOptions::new().id("a")).await.unwrap();
    if begin == 3 {
        run.cancel("enough").await.unwrap();
    }
    let outcome = run.outcome().await;
    (outcome, as_read(&store.read(run.id(), Position(0), usize::MAX).await.unwrap()))
}

#[tokio::test]
async fn the_output_is_read_from_the_stop_event_on() {
    let (live, records) = ended(4).await;
    assert_eq!(live.unwrap(), Done(4));
    assert_eq!(outcome_of::<Ends>(&records).unwrap(), Done(4));
    let stop = records.iter().rposition(|record| matches!(record, Record::EventLogged { .. })).unwrap();
    assert_eq!(outcome_of::<Ends>(&records[stop..]).unwrap(), Done(4));
    for short in 0..records.len() {
        assert!(matches!(outcome_of::<Ends>(&records[..short]), Err(RunError::NotEnded)), "{short}");
    }
}

#[tokio::test]
async fn an_end_without_an_output_has_its_reason() {
    let (_, records) = ended(1).await;
    let error = outcome_of::<Ends>(&records).unwrap_err();
    assert!(matches!(error, RunError::Past { status: RunStatus::Failed, .. }), "{error:?}");
    assert_eq!(error.to_string(), "the run ended failed: step `begin` failed (x1, permanent): no paper");
    for begin in [2, 3] {
        let (live, records) = ended(begin).await;
        let error = outcome_of::<Ends>(&records).unwrap_err();
        assert_eq!(error.to_string(), live.unwrap_err().to_string());
    }
}

/// A later version of the workflow, whose stop event needs more.
mod later {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    #[event(stop, name = "Done")]
    pub(super) struct Ended {
        count: u32,
    }

    pub(super) struct Ends;

    #[workflow]
    impl Ends {
        #[step]
        async fn end(&self, begin: &Begin) -> Ended {
            Ended { count: begin.0 }
        }
    }
}

/// A workflow with another stop event.
struct Other;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Finished;

#[workflow]
impl Other {
    #[step]
    async fn end(&self, _begin: &Begin) -> Finished {
        Finished
    }
}

#[tokio::test]
async fn a_stop_event_that_does_not_fit_is_an_error() {
    let (_, records) = ended(4).await;
    let error = outcome_of::<later::Ends>(&records).unwrap_err();
    assert!(matches!(&error, RunError::Unreadable { event, .. } if &**event == "Done"), "{error:?}");
    let error = outcome_of::<Other>(&records).unwrap_err();
    assert_eq!(error.to_string(), "the run ended with `Done`, which is not an output of workflow `Other`");
}
