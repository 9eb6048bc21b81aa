//! A failing step is retried. If that does not help, a fallback takes the failure as an event, and the run completes,
//! degraded. Without the fallback the failure would end the run.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{ErrorClass, Retries, RetryPolicy, StepFailed};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Retrieved {
    source: String,
    passages: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer {
    text: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the index is being rebuilt")]
struct Rebuilding;

/// An index that fails for some attempts, and a cache.
struct Library {
    rebuilding_for: u32,
    kept: Vec<String>,
}

impl Library {
    /// Two retries, soon. The default would be three, after 10, 30 and 90 seconds.
    fn soon() -> RetryPolicy {
        let soon = Retries::exponential(2, Duration::from_millis(20)).jitter(0.5);
        RetryPolicy::standard().on(ErrorClass::Transient, soon)
    }
}

#[workflow]
impl Library {
    /// Asks the index.
    #[step(retry = Self::soon(), timeout = "10s")]
    async fn retrieve(&self, question: &Question, info: &RunInfo) -> Result<Retrieved, StepError> {
        if info.attempt() <= self.rebuilding_for {
            return Err(StepError::transient(Rebuilding));
        }
        Ok(Retrieved { source: "the index".into(), passages: vec![format!("all about {}", question.text)] })
    }

    /// Runs only if `retrieve` finally failed, and emits the same event, so later steps need not know.
    #[step(catches = [retrieve])]
    async fn look_into_what_is_kept(&self, question: &Question, failed: &StepFailed) -> Retrieved {
        println!("{failed}");
        let about = self.kept.iter().filter(|passage| passage.contains(&question.text));
        Retrieved { source: "what was kept".into(), passages: about.cloned().collect() }
    }

    /// Works the same for passages of either step.
    #[step]
    async fn answer(&self, question: &Question, retrieved: &Retrieved) -> Answer {
        let Retrieved { source, passages } = retrieved;
        let found = passages.first().map_or("nothing", String::as_str);
        Answer { text: format!("{}? {found} (from {source})", question.text) }
    }
}

async fn ask(rebuilding_for: u32) -> Result<Quality, Box<dyn std::error::Error>> {
    let kept = vec!["a join keeps its state in the log".into(), "a table is static".into()];
    let engine = Engine::builder().workflow(Library { rebuilding_for, kept }).build()?;
    let run = engine.start::<Library>(Question { text: "join".into() }).await?;
    println!("{}", run.outcome().await?.text);
    let report = run.report().await?;
    println!("{report}");
    Ok(report.quality)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    assert_eq!(ask(0).await?, Quality::Clean);
    // The second attempt succeeds, so no execution failed.
    assert_eq!(ask(1).await?, Quality::Clean);
    // Three attempts fail, and the fallback helps out.
    assert_eq!(ask(u32::MAX).await?, Quality::Degraded);
    Ok(())
}
