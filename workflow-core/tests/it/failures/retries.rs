//! Failing attempts and their retries: times, inputs and remains (S23, S25, S35–S37).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use workflow_core::ErrorClass;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, ScenarioOf, TestRun};

use crate::fixtures::{Begin, Done};

mod attempts;
mod branches;
mod classes;
mod compacting;
mod compaction;
mod delays;
mod endings;
mod every_order;
mod groups;
mod inputs;
mod started;
mod timeouts;
mod together;
mod told;

const CLASSES: [ErrorClass; 6] = [
    ErrorClass::Transient,
    ErrorClass::Tool,
    ErrorClass::Model,
    ErrorClass::ContextLimit,
    ErrorClass::Permanent,
    ErrorClass::Rejected,
];

/// Fails with each class in turn and then succeeds. Records when each attempt began.
struct Flaky {
    fails: Vec<ErrorClass>,
    began: Moments,
}

#[derive(Clone, Default)]
struct Moments(Arc<Mutex<Vec<Instant>>>);

impl Moments {
    fn note(&self) {
        self.0.lock().unwrap().push(Instant::now());
    }

    /// The times since the first attempt.
    fn since_first(&self) -> Vec<Duration> {
        let moments = self.0.lock().unwrap();
        moments.iter().map(|moment| *moment - moments[0]).collect()
    }

    fn seconds(&self) -> Vec<u64> {
        self.since_first().iter().map(Duration::as_secs).collect()
    }
}

#[workflow]
impl Flaky {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.began.note();
        match self.fails.get(info.attempt() as usize - 1) {
            Some(class) => Err(StepError::new(*class, format!("no {}", info.attempt()))),
            None => Ok(Done(begin.0)),
        }
    }
}

/// Runs it, and returns the seconds from the first attempt to each.
async fn flaky(
    fails: &[ErrorClass],
    set: impl FnOnce(ScenarioOf<Flaky>) -> ScenarioOf<Flaky>,
) -> (TestRun<Flaky>, Vec<u64>) {
    let began = Moments::default();
    let workflow = Flaky { fails: fails.to_vec(), began: began.clone() };
    let run = set(Scenario::new(workflow)).start(Begin(1)).await;
    (run, began.seconds())
}
