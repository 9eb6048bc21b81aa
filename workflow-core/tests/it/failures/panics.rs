//! Panics in values of users' types: at most they fail the execution, never a run, an engine or a handle (S27).

use std::panic::panic_any;
use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, RunReport};

use crate::fixtures::{Begin, Done};

mod errors;
mod events;
mod payloads;
mod surroundings;

/// Panics when dropped, with a payload like itself that does so once less.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if let Some(less) = self.0.checked_sub(1) {
            panic_any(Self(less));
        }
    }
}

/// Panics with a payload that panics endlessly when dropped.
fn explode() -> ! {
    panic_any(Bomb(u32::MAX))
}

/// Succeeds, independent of earlier runs of its engine.
struct Fine;

#[workflow]
impl Fine {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

/// Asserts that the engine works as before.
async fn goes_on(engine: &Engine) {
    let run = engine.start::<Fine>(Begin(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
}

/// The errors of a step's executions.
fn failures_of(report: &Arc<RunReport>, step: &str) -> Vec<String> {
    let of_step = report.trace.iter().filter(|trace| &*trace.step == step);
    let failed = of_step.filter_map(|trace| match &trace.outcome {
        ExecutionOutcome::Failed { error, .. } => Some(error.clone()),
        _ => None,
    });
    failed.collect()
}
