//! Three runs that together produce every kind of observation. The suite records them from a real engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::RunOptions;
use workflow_core::observe::{Observation, Observer};
use workflow_core::prelude::*;

/// Opens a run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, display)]
struct Opened;

/// A display event.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress(u32);

/// A control event between steps.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

/// An external event that ends the run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Finish;

/// Makes a run fail.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Break;

/// Ends a run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Finished;

struct Story;

#[workflow]
impl Story {
    #[step]
    async fn draft(&self, _opened: &Opened, display: &Display) -> Draft {
        display.show(Progress(1));
        tokio::task::yield_now().await;
        Draft
    }

    #[step(on_error = "continue")]
    async fn fail(&self, _draft: &Draft, display: &Display) -> Result<(), StepError> {
        display.show(Progress(2));
        Err(StepError::permanent("on purpose"))
    }

    #[step]
    async fn insist(&self, _draft: &Draft, info: &RunInfo) -> Result<(), StepError> {
        if info.attempt() == 1 { Err(StepError::tool("on purpose, once")) } else { Ok(()) }
    }

    #[precondition]
    fn never(_draft: &Draft) -> bool {
        false
    }

    #[step(precondition = never)]
    async fn refuse(&self, _draft: &Draft) {}

    #[step]
    async fn sleep(&self, _finish: &Finish) {
        std::future::pending::<()>().await;
    }

    #[step]
    async fn finish(&self, _finish: &Finish) -> Finished {
        Finished
    }

    #[step]
    async fn come_too_late(&self, _finish: &Finish) -> Draft {
        Draft
    }

    #[step]
    async fn give_up(&self, _break: &Break) -> Result<(), StepError> {
        Err(StepError::permanent("on purpose as well"))
    }
}

/// Stores its observations.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Observation>>>);

impl Observer for Recorder {
    fn observe(&self, observation: &Observation) {
        if let Ok(mut seen) = self.0.lock() {
            seen.push(observation.clone());
        }
    }
}

/// The observations of one run that completes, one that fails and one that is cancelled.
pub(super) fn told() -> Vec<Observation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("a suite needs a runtime: {error}"));
    let recorder = Recorder::default();
    let told = runtime.block_on(tell(recorder.clone()));
    told.unwrap_or_else(|error| panic!("the runs that an observer is told of go well: {error}"));
    recorder.0.lock().map(|seen| seen.clone()).unwrap_or_default()
}

async fn tell(recorder: Recorder) -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().workflow(Story).observer(recorder).build()?;
    let start = |name: &str| engine.start_with::<Story>(Opened, RunOptions::new().id(name));
    let completes = start("completes").await?;
    let fails = start("fails").await?;
    let is_cancelled = start("is cancelled").await?;
    for run in [&completes, &fails, &is_cancelled] {
        run.settled().await;
    }
    completes.send(Finish).await?;
    fails.send(Break).await?;
    is_cancelled.cancel("on purpose").await?;
    for run in [&completes, &fails, &is_cancelled] {
        run.report().await?;
    }
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use workflow_core::observe::Observed;
    use workflow_core::{DisplayItem, RunStatus};

    use super::*;

    fn assert_told(kind: &str, is: impl Fn(&Observed) -> bool) {
        assert!(told().iter().any(|told| is(&told.what)), "no run comes by {kind}: {:#?}", told());
    }

    #[test]
    fn the_runs_come_by_every_kind_of_observation() {
        assert_told("a beginning", |what| matches!(what, Observed::RunStarted));
        assert_told("an event", |what| matches!(what, Observed::EventLogged { .. }));
        assert_told("an answer", |what| matches!(what, Observed::PreconditionAnswered { .. }));
        assert_told("a start", |what| matches!(what, Observed::ExecutionStarted { .. }));
        assert_told("a success", |what| matches!(what, Observed::ExecutionSucceeded { .. }));
        assert_told("a failure", |what| matches!(what, Observed::ExecutionFailed { .. }));
        assert_told("a failed attempt", |what| matches!(what, Observed::AttemptFailed { .. }));
        assert_told("another attempt", |what| matches!(what, Observed::AttemptStarted { attempt: 2, .. }));
        assert_told("a drop", |what| matches!(what, Observed::ExecutionDropped { .. }));
        assert_told("a refusal", |what| matches!(what, Observed::CommitRefused { .. }));
        assert_told("waiting", |what| matches!(what, Observed::RunWaiting));
    }

    #[test]
    fn the_runs_come_by_every_kind_of_display() {
        assert_told("something received", |what| {
            matches!(what, Observed::Displayed(DisplayItem::Received { .. }))
        });
        assert_told("something shown", |what| matches!(what, Observed::Displayed(DisplayItem::Shown { .. })));
        assert_told("a retraction", |what| {
            matches!(what, Observed::Displayed(DisplayItem::Retracted { .. }))
        });
    }

    #[test]
    fn the_runs_end_differently() {
        for ended in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled] {
            assert_told(
                &ended.to_string(),
                |what| matches!(what, Observed::RunEnded { status } if *status == ended),
            );
        }
    }
}
