//! The cost of runs: in memory they serialise nothing, and take lists without copying (S5, S16).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserializer, Serializer};
use workflow_core::RunStatus;
use workflow_core::prelude::*;

use crate::fixtures::{Begin, Close, Counted, Done, report_of, started};

/// Panics when it is serialised or deserialised.
#[derive(Debug, Clone, PartialEq)]
struct MemoryOnly(u32);

impl Serialize for MemoryOnly {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("serialised in memory")
    }
}

impl<'de> Deserialize<'de> for MemoryOnly {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("deserialised in memory")
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Open(MemoryOnly);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Passed(MemoryOnly);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Shown(MemoryOnly);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = MemoryOnly)]
struct Asked(MemoryOnly);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Ended(MemoryOnly);

struct InMemory;

#[workflow]
impl InMemory {
    #[step]
    async fn pass(
        &self,
        open: &Open,
        run: &RunContext,
        thread: &ThreadContext,
        display: &Display,
        passed: &Emitter<Passed>,
    ) -> Result<(Vec<Passed>, Asked), StepError> {
        run.set("there", open.0.clone()).await?;
        run.update("there", |there: Option<MemoryOnly>| MemoryOnly(there.map_or(0, |there| there.0 + 1)))
            .await?;
        thread.set("there", open.0.clone()).await?;
        display.show(Shown(open.0.clone()));
        passed.emit(Passed(open.0.clone()))?;
        Ok((vec![Passed(open.0.clone())], Asked(open.0.clone())))
    }

    #[step(precondition = is_there)]
    async fn end(&self, answer: Reply<Asked>, passed: List<Passed>, one: Passed) -> Ended {
        Ended(MemoryOnly(answer.0 + one.0.0 + u32::try_from(passed.len()).unwrap()))
    }

    #[precondition]
    async fn is_there(run: &RunContext, _passed: &List<Passed>) -> Result<bool, StepError> {
        Ok(run.get::<MemoryOnly>("there").await?.is_some_and(|there| there.0 == 6))
    }
}

// S26
#[tokio::test]
async fn a_whole_run_in_memory_serialises_nothing() {
    let engine = Engine::builder().replay_check(false).workflow(InMemory).build().unwrap();
    let run = engine.start::<InMemory>(Open(MemoryOnly(5))).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let request = run.requests().await.unwrap()[0].id::<Asked>().unwrap();
    run.reply(request, MemoryOnly(100)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Ended(MemoryOnly(107)));
    run.report().await.unwrap();
}

struct Many {
    clones: Arc<AtomicUsize>,
}

#[workflow]
impl Many {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Counted> {
        (0..begin.0).map(|number| Counted::new(number, &self.clones)).collect()
    }

    #[step(precondition = complete)]
    async fn end(&self, all: List<Counted>, _begin: &Begin) -> Done {
        assert!(all.iter().zip(0..).all(|(counted, number)| counted.number == number));
        Done(u32::try_from(all.len()).unwrap())
    }

    #[precondition]
    fn complete(begin: &Begin, all: &List<Counted>) -> bool {
        all.len() == begin.0 as usize
    }
}

// S16
#[tokio::test]
async fn a_list_of_a_hundred_thousand_events_is_taken_without_copying_one() {
    let clones = Arc::default();
    let done =
        workflow_core::without_replay_check(|| Many { clones: Arc::clone(&clones) }.run(Begin(100_000)))
            .await
            .unwrap();
    assert_eq!(done, Done(100_000));
    assert_eq!(clones.load(Ordering::SeqCst), 0);
}

struct EveryPrefix;

#[workflow]
impl EveryPrefix {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Counted> {
        (0..begin.0).map(|number| Counted::new(number, &Arc::default())).collect()
    }

    #[step(reruns)]
    async fn take(&self, all: List<Counted>) {
        assert_eq!(all.len(), all.last().map_or(0, |last| last.number as usize + 1));
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S12, S16
#[tokio::test]
async fn twenty_thousand_prefixes_of_a_list_are_handed_out() {
    let run = started(EveryPrefix, 20_000).await;
    run.settled().await;
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(run.report().await.unwrap().executions("take"), 20_000);
}

struct Deep;

#[workflow]
impl Deep {
    #[step]
    async fn first(&self, begin: &Begin) -> Counted {
        Counted::new(begin.0, &Arc::default())
    }

    #[step(loops)]
    async fn next(&self, counted: &Counted) -> Option<Counted> {
        Some(Counted::new(counted.number.checked_sub(1)?, &Arc::default()))
    }

    #[step(precondition = at_last)]
    async fn end(&self, counted: &Counted) -> Done {
        Done(counted.number)
    }

    #[precondition]
    fn at_last(counted: &Counted) -> bool {
        counted.number == 0
    }
}

// S21
#[tokio::test]
async fn a_chain_of_ten_thousand_steps_takes_no_stack() {
    let report = report_of(Deep, 10_000).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert_eq!(report.executions("next"), 10_001);
}
