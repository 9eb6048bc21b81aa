//! Limits of an engine decide what may begin, not what a journal means (S39). Runs written under high limits are
//! reported, read and resumed under low ones, and end with a typed error where new work exceeds a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use tokio::sync::Semaphore;
use workflow_core::errors::EventTooLarge;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{EngineBuilder, RunOptions, RunStatus, SendError};

use crate::fixtures::{Begin, Done, Item, Note, Part, until};
use crate::formats::recorded::same_by_its_records;
use crate::resumed::found::copy;

/// The number of active executions in one process, and its maximum; they end when allowed.
#[derive(Debug, Default)]
struct Busy {
    now: AtomicU32,
    most: AtomicU32,
    may_end: Option<Semaphore>,
}

impl Busy {
    /// They never end.
    fn hanging() -> Arc<Self> {
        Arc::new(Self { may_end: Some(Semaphore::new(0)), ..Self::default() })
    }

    async fn work(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if let Some(may_end) = &self.may_end {
            let _may = may_end.acquire().await.unwrap();
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> u32 {
        self.most.load(Ordering::SeqCst)
    }
}

/// Works on four items, and waits for a note: five executions and nine events, and one more of each after the note.
struct Grows(Arc<Busy>);

#[workflow]
impl Grows {
    #[step]
    async fn spread(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.work().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 4>, note: &Note) -> Done {
        Done(note.0 + parts.iter().map(|part| part.0).sum::<u32>())
    }
}

fn grows(busy: &Arc<Busy>, store: &Arc<MemoryStore>) -> EngineBuilder {
    Engine::builder().workflow(Grows(Arc::clone(busy))).store(Arc::clone(store))
}

/// The store of a process with a waiting run and an ended one.
async fn waiting_and_ended() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let engine = grows(&Arc::default(), &store).build().unwrap();
    for id in ["waits", "ended"] {
        let run = engine.start_with::<Grows>(Begin(4), RunOptions::new().id(id)).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        if id == "ended" {
            run.send(Note(1)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(7));
        }
    }
    copy(&store).await
}

/// Both runs are unchanged under a limit below what they have. Then the waiting one gets a note; returns how it ends.
async fn under(lower: impl FnOnce(EngineBuilder) -> EngineBuilder) -> RunError {
    let store = waiting_and_ended().await;
    let engine = lower(grows(&Arc::default(), &store)).build().unwrap();
    let ended = engine.attach::<Grows>("ended").await.unwrap();
    assert_eq!(ended.outcome().await.unwrap(), Done(7));
    same_by_its_records(&ended, &store).await;
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{resumed:?}");
    let waits = engine.attach::<Grows>("waits").await.unwrap();
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    assert_eq!(waits.report_so_far().await.unwrap().executions("work"), 4);
    same_by_its_records(&waits, &store).await;
    let _ = waits.send(Note(1)).await;
    let error = waits.outcome().await.unwrap_err();
    // Under the old limits its outcome stays the same.
    let engine = grows(&Arc::default(), &copy(&store).await).build().unwrap();
    assert_eq!(engine.attach::<Grows>("waits").await.unwrap().status(), RunStatus::Failed);
    error
}

// S39
#[tokio::test]
async fn a_run_with_more_executions_than_it_may_have_now_ends_with_the_next_one() {
    let error = under(|engine| engine.max_executions_per_run(3)).await;
    assert!(matches!(error, RunError::TooManyExecutions { limit: 3, .. }), "{error:?}");
}

// S39
#[tokio::test]
async fn a_run_with_more_events_than_it_may_have_now_ends_with_the_next_one() {
    let error = under(|engine| engine.max_events_per_run(4)).await;
    assert!(matches!(error, RunError::LogFull { limit: 4, .. }), "{error:?}");
}

// S21, S39
#[tokio::test]
async fn executions_that_ran_together_run_one_by_one_where_only_one_may() {
    let (store, busy) = (Arc::new(MemoryStore::default()), Busy::hanging());
    let engine = grows(&busy, &store).max_concurrent_executions(4).build().unwrap();
    let run = engine.start_with::<Grows>(Begin(4), RunOptions::new().id("r")).await.unwrap();
    until(async || busy.most() == 4).await;
    drop(run);
    let (store, busy) = (copy(&store).await, Arc::<Busy>::default());
    let engine = grows(&busy, &store).max_concurrent_executions(1).build().unwrap();
    let run = engine.attach::<Grows>("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    same_by_its_records(&run, &store).await;
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(busy.most(), 1);
}

// S21, S39
#[tokio::test]
async fn executions_that_an_earlier_process_was_at_run_one_by_one_as_well() {
    let (mut store, mut busy) = (Arc::new(MemoryStore::default()), Busy::hanging());
    let engine = grows(&busy, &store).max_concurrent_executions(4).build().unwrap();
    let run = engine.start_with::<Grows>(Begin(4), RunOptions::new().id("r")).await.unwrap();
    until(async || busy.most() == 4).await;
    // After the batch that they follow from, the journal has another batch and the records of two resumes.
    run.send(Note(1)).await.unwrap();
    drop(run);
    for _ in 0..2 {
        (store, busy) = (copy(&store).await, Busy::hanging());
        let engine = grows(&busy, &store).max_concurrent_executions(1).build().unwrap();
        let _run = engine.attach::<Grows>("r").await.unwrap();
        until(async || busy.most() == 1).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(busy.most(), 1);
    }
    (store, busy) = (copy(&store).await, Arc::default());
    let engine = grows(&busy, &store).max_concurrent_executions(1).build().unwrap();
    assert_eq!(engine.attach::<Grows>("r").await.unwrap().outcome().await.unwrap(), Done(7));
    assert_eq!(busy.most(), 1);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Word(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Said(String);

/// Emits large texts about its notes.
struct Talks(Arc<Busy>);

#[workflow]
impl Talks {
    #[step]
    async fn talk(&self, begin: &Begin) -> Said {
        Said("x".repeat(begin.0 as usize))
    }

    #[step]
    async fn repeat(&self, said: &Said) -> Word {
        self.0.work().await;
        Word(said.0.clone())
    }

    #[step]
    async fn end(&self, word: &Word, _note: &Note) -> Done {
        Done(u32::try_from(word.0.len()).unwrap())
    }
}

fn talks(busy: &Arc<Busy>, store: &Arc<MemoryStore>) -> EngineBuilder {
    Engine::builder().workflow(Talks(Arc::clone(busy))).store(Arc::clone(store))
}

// S39
#[tokio::test]
async fn events_that_are_larger_than_they_may_be_now_stay_and_new_ones_are_refused() {
    let (store, busy) = (Arc::new(MemoryStore::default()), Busy::hanging());
    let engine = talks(&Arc::default(), &store).build().unwrap();
    let waits = engine.start_with::<Talks>(Begin(500), RunOptions::new().id("waits")).await.unwrap();
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    let works = talks(&busy, &store).build().unwrap();
    works.start_with::<Talks>(Begin(500), RunOptions::new().id("works")).await.unwrap();
    until(async || busy.most() == 1).await;
    let store = copy(&store).await;
    let engine = talks(&Arc::default(), &store).max_event_bytes(100).build().unwrap();

    let waits = engine.attach::<Talks>("waits").await.unwrap();
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    same_by_its_records(&waits, &store).await;
    let error = waits.send(Word("y".repeat(200))).await.unwrap_err();
    assert!(matches!(error, SendError::TooLarge(_)), "{error:?}");
    waits.send(Note(1)).await.unwrap();
    assert_eq!(waits.outcome().await.unwrap(), Done(500));

    // Here a step takes the large event again, and emits another, which is new.
    let works = engine.attach::<Talks>("works").await.unwrap();
    let error = works.outcome().await.unwrap_err();
    let RunError::StepFailed { step, source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**step, "repeat");
    let too_large = source.downcast_ref::<EventTooLarge>();
    assert!(too_large.is_some_and(|error| error.limit == 100), "{source:?}");
    same_by_its_records(&works, &store).await;
}

/// A child of the given depth; the deepest one works.
struct Nests(Arc<Busy>);

#[workflow]
impl Nests {
    #[step]
    async fn descend(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        if begin.0 == 0 {
            self.0.work().await;
            return Ok(Done(1));
        }
        Ok(Done(1 + children.run::<Self>(Begin(begin.0 - 1)).await?.0))
    }
}

fn nests(busy: &Arc<Busy>, store: &Arc<MemoryStore>) -> EngineBuilder {
    Engine::builder().workflow(Nests(Arc::clone(busy))).store(Arc::clone(store))
}

// S39
#[tokio::test]
async fn children_beyond_a_lowered_depth_continue_and_no_others_begin() {
    let (store, busy) = (Arc::new(MemoryStore::default()), Busy::hanging());
    let engine = nests(&busy, &store).max_child_depth(4).build().unwrap();
    let run = engine.start_with::<Nests>(Begin(4), RunOptions::new().id("r")).await.unwrap();
    until(async || busy.most() == 1).await;
    drop(run);
    for limit in [0, 1, 3] {
        let store = copy(&store).await;
        let engine = nests(&Arc::default(), &store).max_child_depth(limit).build().unwrap();
        let run = engine.attach::<Nests>("r").await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(5), "children nest {limit} deep at most");
        assert_eq!(run.report().await.unwrap().children.len(), 1);
        let error = engine.start::<Nests>(Begin(limit + 1)).await.unwrap().outcome().await.unwrap_err();
        // The deepest error, inside the errors of those above.
        let text = error.to_string();
        assert!(text.contains(&format!("children nest {limit} deep at most")), "{text}");
        // Ended runs can be read as before.
        let engine = nests(&Arc::default(), &copy(&store).await).max_child_depth(0).build().unwrap();
        let again = engine.attach::<Nests>("r").await.unwrap();
        assert_eq!(again.outcome().await.unwrap(), Done(5));
    }
}

/// Has three children at a time.
struct Many;

#[workflow]
impl Many {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let all = (0..begin.0).map(|_| children.run::<Nests>(Begin(0)));
        Ok(Done(try_join_all(all).await?.iter().map(|done| done.0).sum()))
    }
}

// S21, S39
#[tokio::test]
async fn children_that_worked_together_work_one_by_one_where_only_one_may() {
    let (store, busy) = (Arc::new(MemoryStore::default()), Busy::hanging());
    let engine = nests(&busy, &store).workflow(Many).max_concurrent_children(3).build().unwrap();
    let run = engine.start_with::<Many>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    until(async || busy.most() == 3).await;
    drop(run);
    let (store, busy) = (copy(&store).await, Arc::<Busy>::default());
    let engine = nests(&busy, &store).workflow(Many).max_concurrent_children(1).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty(), "{resumed:?}");
    let run = engine.attach::<Many>("r").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(busy.most(), 1);
    let report = run.report().await.unwrap();
    assert_eq!(report.children.len(), 3);
    assert!(report.children.iter().all(|child| child.status == RunStatus::Completed), "{report}");
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
}
