//! Clean-up survives crashes at every end: a resume continues it, and repeats nothing that is recorded as done (S31,
//! S39).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RetryPolicy, RunError, RunOptions};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};

/// Books two things, and ends as the number says.
struct Books;

#[workflow]
impl Books {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn part(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Result<Option<Done>, StepError> {
        match part.0 {
            0 => Err(StepError::permanent("no money")),
            1 => Ok(None),
            2 => std::future::pending().await,
            _ => Ok(Some(Done(part.0))),
        }
    }

    #[step(precondition = is_wanted)]
    async fn unwanted(&self, _part: &Part) {}

    #[precondition]
    fn is_wanted(part: &Part) -> Result<bool, StepError> {
        if part.0 == 4 { Err(StepError::permanent("not sure")) } else { Ok(false) }
    }

    #[step(on_end, precondition = is_undone)]
    async fn undo_item(&self, item: &Item, info: &RunInfo) -> Result<(), StepError> {
        assert!(info.ending().is_some());
        tokio::time::sleep(Duration::from_secs(1)).await;
        if item.0 == 1 && info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(()) }
    }

    #[precondition]
    fn is_undone(item: &Item) -> bool {
        item.0 != 0
    }

    #[step(on_end, precondition = fails)]
    async fn never(&self, _begin: &Begin) {}

    #[precondition]
    fn fails(_begin: &Begin) -> Result<bool, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step(on_end)]
    async fn undo_part(&self, _part: &Part) {
        tokio::task::yield_now().await;
    }

    #[step(on_end = ["failed", "stalled"], retry = RetryPolicy::none())]
    async fn fail(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::transient("stuck"))
    }
}

/// Loops until it reaches a limit.
struct Loops;

#[workflow]
impl Loops {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Item, Option<Done>) {
        (Item(item.0 + 1), None)
    }

    #[step(on_end)]
    async fn undo(&self, items: List<Item>) {
        tokio::time::sleep(Duration::from_secs(items.len() as u64)).await;
    }

    #[step(on_end)]
    async fn undo_all(&self, _begin: &Begin) {}
}

/// Fails in one branch while others run.
struct Branches;

#[workflow]
impl Branches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(Duration::from_secs(u64::from(item.0))).await;
        if item.0 == 1 { Err(StepError::permanent("one")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap_or(0))
    }

    #[step(on_end = "failed")]
    async fn undo(&self, _begin: &Begin) {}
}

/// Whose child cleans up first, and which runs another one in its clean-up.
struct Parents;

#[workflow]
impl Parents {
    #[step]
    async fn delegate(&self, begin: &Begin, children: Children) -> Result<Done, RunError> {
        children.run::<Books>(begin.clone()).await
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin, children: Children) -> Result<(), RunError> {
        children.run::<Books>(Begin(9)).await.map(|_| ())
    }
}

/// Waits for a note, and takes it in its clean-up.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn take(&self, note: &Note, _done: &Part) -> Done {
        Done(note.0)
    }

    #[step]
    async fn part(&self, begin: &Begin) -> Option<Part> {
        (begin.0 > 9).then_some(Part(1))
    }

    #[step]
    async fn note(&self, _begin: &Begin) -> Timer<Item> {
        Timer::after(Duration::from_mins(1), Item(1))
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin, note: Option<&Note>) -> Result<(), StepError> {
        if note.is_some() { Ok(()) } else { Err(StepError::permanent("no note")) }
    }
}

fn short(engine: workflow_core::EngineBuilder) -> workflow_core::EngineBuilder {
    engine.max_events_per_run(4)
}

fn in_seconds(seconds: u64) -> RunOptions {
    RunOptions::new().timeout(Duration::from_secs(seconds))
}

survive! {
    a_failed_run: Scenario::new(Books), 0;
    a_stalled_run: Scenario::new(Books), 1;
    a_cancelled_run: Scenario::new(Books).cancel_after(Duration::from_secs(9), "enough"), 2;
    a_run_out_of_time: Scenario::new(Books).options(in_seconds(9)), 2;
    a_completed_run: Scenario::new(Books), 3;
    a_failed_precondition: Scenario::new(Books), 4;
    too_many_events: Scenario::new(Loops).engine(short), 0;
    a_failed_branch: Scenario::new(Branches), 3;
    a_child: Scenario::new(Parents).host(Books), 0;
    a_note_in_clean_up: Scenario::new(Waits).send(Note(1)), 1;
    clean_up_that_takes_too_long: Scenario::new(Books).engine(|engine| engine.cleanup_within(Duration::from_millis(500))), 1;
}
