//! Deadlines of runs that are unloaded, that a later process resumes, or that are redriven (S73).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::json;
use serde_json::value::to_raw_value;
use workflow_core::prelude::*;
use workflow_core::store::{
    EventStore, MemoryStore, Position, Record, RecordedEvent, RunQuery, RunSummary, Write,
};
use workflow_core::table::RecordedTable;
use workflow_core::{
    Clock as _, EngineBuilder, Pause, RecordedRun, Redrive, RedriveError, RunError, RunOptions, RunStatus,
    StartError, outcome_of,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note};

const HOUR: Duration = Duration::from_hours(1);

fn at(hours: u32) -> SystemTime {
    VirtualClock::beginning() + hours * HOUR
}

fn until(hours: u32) -> RunOptions {
    RunOptions::new().id("r").deadline(at(hours))
}

/// Works for as many hours as its start says, sets timers, and counts what begins.
#[derive(Default)]
struct Counts(Arc<AtomicUsize>);

impl Counts {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick(u32);

#[workflow]
impl Counts {
    #[step]
    async fn set(&self, begin: &Begin) -> Vec<Timer<Tick>> {
        self.count();
        (1..=begin.0).map(|hours| Timer::after(hours * HOUR, Tick(hours))).collect()
    }

    #[step]
    async fn work(&self, begin: &Begin) -> Result<Item, StepError> {
        self.count();
        if begin.0 == 0 {
            return Err(StepError::permanent("nothing to do"));
        }
        tokio::time::sleep(begin.0 * HOUR).await;
        Ok(Item(begin.0))
    }

    #[step]
    async fn tick(&self, _tick: &Tick) {
        self.count();
    }

    #[step]
    async fn end(&self, _item: &Item, note: &Note) -> Done {
        Done(note.0)
    }
}

/// A store, a clock, and engines that follow each other.
struct World {
    store: Arc<MemoryStore>,
    clock: VirtualClock,
    begun: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), clock: VirtualClock::new(), begun: Arc::default() }
    }

    fn builder(&self) -> EngineBuilder {
        let engine = Engine::builder().workflow(Counts(Arc::clone(&self.begun)));
        engine.store(Arc::clone(&self.store)).clock(self.clock.clone())
    }

    fn engine(&self) -> Engine {
        self.builder().build().unwrap()
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    async fn passes(&self, hours: u32) {
        self.clock.sleep_until(at(hours)).await;
    }

    async fn records(&self) -> Vec<Record> {
        self.store.read(&"r".into(), Position(0), usize::MAX).await.unwrap()
    }

    async fn summary(&self) -> RunSummary {
        self.store.runs(&RunQuery::new()).await.unwrap().remove(0).run
    }

    async fn logged(&self) -> Vec<String> {
        let records = self.records().await;
        let logged = records.iter().filter_map(|record| match record {
            Record::EventLogged { event, .. } => Some(event.name().to_owned()),
            _ => None,
        });
        logged.collect()
    }

    /// Asserts that the run ended at its deadline, wherever one looks.
    async fn assert_ended(&self, hours: u32) {
        let records = self.records().await;
        let end = records.last().unwrap();
        assert!(
            matches!(end, Record::RunEnded { status: RunStatus::TimedOut, deadline: Some(deadline), .. } if *deadline == at(hours)),
            "{end:?}"
        );
        let summary = self.summary().await;
        assert_eq!((summary.status, summary.deadline), (RunStatus::TimedOut, Some(at(hours))));
        let outcome = outcome_of::<Counts>(&records);
        assert!(matches!(outcome, Err(RunError::DeadlinePassed { deadline }) if deadline == at(hours)));
        let recorded = RecordedRun::of(&"r".into(), &records).unwrap();
        assert!(recorded.report().deadline.unwrap().ended_run);
        let explained = recorded.explain().to_string();
        assert!(explained.contains("ended it"), "{explained}");
    }
}

fn has_passed<T>(outcome: &Result<T, RunError>) -> bool {
    matches!(outcome, Err(RunError::DeadlinePassed { .. }))
}

// S73
#[tokio::test(start_paused = true)]
async fn an_unloaded_run_is_loaded_at_its_deadline_and_ends() {
    for is_paused in [false, true] {
        let world = World::new();
        let engine = world.builder().unload_waiting_after(Duration::ZERO).build().unwrap();
        let run = engine.start_with::<Counts>(Begin(1), until(5)).await.unwrap();
        if is_paused {
            run.pause(Pause::Now).await.unwrap();
        }
        run.settled().await;
        assert!(has_passed(&run.outcome().await));
        assert_eq!(world.clock.now(), at(5));
        world.assert_ended(5).await;
        assert_eq!(run.report().await.unwrap().deadline.unwrap().at, at(5));
    }
}

// S73
#[tokio::test(start_paused = true)]
async fn a_run_without_a_deadline_has_the_journal_that_it_always_had() {
    let world = World::new();
    let engine = world.engine();
    let run = engine.start_with::<Counts>(Begin(0), RunOptions::new().id("r")).await.unwrap();
    assert!(run.outcome().await.is_err());
    let summary = serde_json::to_string(&world.summary().await).unwrap();
    let records = serde_json::to_string(&world.records().await).unwrap();
    assert!(!records.contains("deadline") && !summary.contains("deadline"));
}

// S73, S32, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_is_resumed_after_its_deadline_ends_before_anything_begins() {
    let world = World::new();
    let engine = world.engine();
    engine.start_with::<Counts>(Begin(9), until(3)).await.unwrap();
    world.clock.sleep_until(at(1) + HOUR / 2).await;
    assert_eq!(world.begun(), 3, "`work` runs, and one timer has fired");
    engine.shut_down(Duration::ZERO).await;

    world.passes(7).await;
    let engine = world.engine();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty() && resumed.error.is_none());
    let run = engine.attach::<Counts>("r").await.unwrap();
    assert!(has_passed(&run.outcome().await));
    assert_eq!(world.begun(), 3, "nothing began");
    // Those that were due until the deadline, and none that was due after it.
    assert_eq!(world.logged().await, ["Begin", "Tick", "Tick", "Tick"]);
    world.assert_ended(3).await;
    assert_eq!(engine.running(), []);
}

// S73, S39
#[tokio::test(start_paused = true)]
async fn a_run_whose_deadline_has_passed_is_redriven_only_with_another_one() {
    let world = World::new();
    let engine = world.engine();
    let run = engine.start_with::<Counts>(Begin(4), until(3)).await.unwrap();
    assert!(has_passed(&run.outcome().await));
    let refused = engine.redrive::<Counts>("r").await.unwrap_err();
    assert!(
        matches!(&refused, RedriveError::DeadlinePassed { deadline, .. } if *deadline == at(3)),
        "{refused}"
    );
    assert!(refused.to_string().contains("Redrive::deadline"), "{refused}");
    let refused = engine.redrive_with::<Counts>("r", Redrive::new().deadline(at(2))).await.unwrap_err();
    assert!(matches!(&refused, RedriveError::DeadlinePassed { deadline, .. } if *deadline == at(2)));
    world.assert_ended(3).await;

    // At 6 it ends again, although `work` begins anew and needs four hours.
    let run = engine.redrive_with::<Counts>("r", Redrive::new().deadline(at(6))).await.unwrap();
    assert_eq!(world.summary().await.deadline, Some(at(6)));
    assert!(has_passed(&run.outcome().await));
    world.assert_ended(6).await;

    let run = engine.redrive_with::<Counts>("r", Redrive::new().deadline(at(20))).await.unwrap();
    run.send(Note(7)).await.unwrap();
    engine.shut_down(Duration::ZERO).await;
    let engine = world.engine();
    let run = engine.attach::<Counts>("r").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    let report = run.report().await.unwrap();
    let deadline = report.deadline.unwrap();
    assert!(deadline.at == at(20) && !deadline.ended_run && report.redrives.len() == 2);
    assert_eq!(world.summary().await.deadline, Some(at(20)));
}

// S73, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_failed_before_its_deadline_keeps_it() {
    let world = World::new();
    let engine = world.engine();
    let run = engine.start_with::<Counts>(Begin(0), until(3)).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
    let run = engine.redrive::<Counts>("r").await.unwrap();
    assert!(run.outcome().await.is_err());
    assert_eq!(run.report().await.unwrap().deadline.unwrap().at, at(3));
    world.passes(4).await;
    assert!(matches!(engine.redrive::<Counts>("r").await, Err(RedriveError::DeadlinePassed { .. })));
}

// S73, S65
#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_taken_up_after_its_deadline_ends_before_anything_begins() {
    let world = World::new();
    let queued = |hours| {
        let event = RecordedEvent::from_json("Begin", 1, to_raw_value(&json!(1)).unwrap());
        let table = RecordedTable::new(&Counts::shape());
        Write::queued(&table, event, &until(hours), world.clock.now())
    };
    assert!(matches!(queued(0), Err(StartError::DeadlinePassed { .. })));
    let write = queued(2).unwrap();
    assert_eq!(write.run.deadline, Some(at(2)));
    world.store.append(&"r".into(), Position(0), write).await.unwrap();
    world.passes(3).await;
    let engine = world.engine();
    let run = engine.attach::<Counts>("r").await.unwrap();
    assert!(has_passed(&run.outcome().await));
    assert_eq!(world.begun(), 0);
    world.assert_ended(2).await;
}
