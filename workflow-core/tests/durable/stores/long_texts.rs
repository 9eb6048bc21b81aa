//! Texts of errors, panics and reasons that are too long for a journal (S80).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::store::Record;
use workflow_core::{ErrorClass, RecordedRun, Retries, RetryPolicy, RunOptions, StepFailed};
use workflow_testkit::{CrashStore, VirtualClock};

use crate::fixtures::{Begin, Done, Item, Note};

/// How long each text is.
const LONG: usize = 10_000_000;

/// The most bytes of a text in a run.
const MOST: usize = 16 * 1024;

fn long() -> String {
    "x".repeat(LONG)
}

/// Fails in each way, each time with a long text.
struct Wordy;

#[workflow]
impl Wordy {
    #[step(retry = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(2, Duration::from_secs(1))))]
    async fn fails(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::tool(long()))
    }

    #[step(on_error = "continue")]
    async fn panics(&self, _begin: &Begin) {
        panic!("{}", long())
    }

    #[step(catches = [fails])]
    async fn catches(&self, failed: &StepFailed) -> Result<Item, StepError> {
        assert!(failed.error.len() <= MOST && failed.error.ends_with("bytes cut)"));
        Ok(Item(1))
    }

    #[step(precondition = is_said)]
    async fn end(&self, _item: &Item, _note: &Note) -> Done {
        Done(0)
    }

    #[precondition]
    fn is_said(note: &Note) -> Result<bool, StepError> {
        if note.0 == 0 { Err(StepError::permanent(long())) } else { Ok(true) }
    }
}

/// The texts of errors in a journal.
fn texts(journal: &[Record]) -> Vec<&str> {
    let texts = journal.iter().filter_map(|record| match record {
        Record::RetryScheduled { error, .. } | Record::ExecutionFailed { error, .. } => Some(&**error),
        Record::RunEnded { error, .. } => error.as_deref(),
        _ => None,
    });
    texts.collect()
}

// S80
#[tokio::test(start_paused = true)]
async fn long_texts_are_cut_where_they_enter_a_run() {
    for by_cancel in [true, false] {
        let engine = Engine::builder().workflow(Wordy).store(CrashStore::default());
        let engine = engine.clock(VirtualClock::new()).build().unwrap();
        let run = engine.start_with::<Wordy>(Begin(1), RunOptions::new().id("r")).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        if by_cancel {
            run.cancel(long()).await.unwrap();
        } else {
            run.send(Note(0)).await.unwrap();
        }
        let error = run.outcome().await.unwrap_err();
        assert!(error.to_string().len() <= MOST + 200, "{}", error.to_string().len());
        let journal = engine.history(&"r".into()).await.unwrap();
        for record in &journal {
            let bytes = serde_json::to_vec(record).unwrap().len();
            assert!(bytes <= MOST + 4_096, "{bytes} bytes");
        }
        let texts = texts(&journal);
        assert_eq!(texts.len(), 5, "two retries, two failures, and the end");
        for text in texts {
            let (kept, note) = text.rsplit_once(" … (").expect("a text that was cut says so");
            let cut: usize = note.strip_suffix(" bytes cut)").unwrap().parse().unwrap();
            let all = kept.len() + cut;
            assert!([LONG, "it panicked: ".len() + LONG].contains(&all), "{all}");
        }
        let live = run.report().await.unwrap();
        let recorded = RecordedRun::of(run.id(), &journal).unwrap();
        let outcomes = |report: &workflow_core::report::RunReport| {
            let outcome = |outcome: &ExecutionOutcome| serde_json::to_value(outcome).unwrap();
            report.trace.iter().map(|trace| outcome(&trace.outcome)).collect::<Vec<_>>()
        };
        assert_eq!(outcomes(&live), outcomes(recorded.report()));
        assert_eq!(live.cancel_reason, recorded.report().cancel_reason);
    }
}
