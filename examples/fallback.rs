//! A step that fails, and a fallback that takes its failure as an event: the run goes on and completes, degraded.
//! Without the fallback the failure would end it.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Quality, StepFailed};

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

/// Looks things up in an index, which may be out of order, and otherwise in what it has kept.
struct Library {
    is_rebuilding: bool,
    kept: Vec<String>,
}

#[workflow]
impl Library {
    /// Asks the index.
    #[step]
    async fn retrieve(&self, question: &Question) -> Result<Retrieved, StepError> {
        if self.is_rebuilding {
            return Err(StepError::new(ErrorClass::Transient, Rebuilding));
        }
        Ok(Retrieved { source: "the index".into(), passages: vec![format!("all about {}", question.text)] })
    }

    /// Runs only if `retrieve` failed for good, and emits the same event: whoever takes it need not know.
    #[step(catches = [retrieve])]
    async fn look_into_what_is_kept(&self, question: &Question, failed: &StepFailed) -> Retrieved {
        println!("{failed}");
        let about = self.kept.iter().filter(|passage| passage.contains(&question.text));
        Retrieved { source: "what was kept".into(), passages: about.cloned().collect() }
    }

    /// Does not know where the passages come from.
    #[step]
    async fn answer(&self, question: &Question, retrieved: &Retrieved) -> Answer {
        let Retrieved { source, passages } = retrieved;
        let found = passages.first().map_or("nothing", String::as_str);
        Answer { text: format!("{}? {found} (from {source})", question.text) }
    }
}

async fn ask(is_rebuilding: bool) -> Result<Quality, Box<dyn std::error::Error>> {
    let kept = vec!["a join keeps its state in the log".into(), "a table is static".into()];
    let engine = Engine::builder().workflow(Library { is_rebuilding, kept }).build()?;
    let run = engine.start::<Library>(Question { text: "join".into() }).await?;
    println!("{}", run.outcome().await?.text);
    let report = run.report().await?;
    println!("{report}");
    Ok(report.quality)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    assert_eq!(ask(false).await?, Quality::Clean);
    assert_eq!(ask(true).await?, Quality::Degraded);
    Ok(())
}
