//! The measurements of the feature `metrics`: counts, times and queue lengths.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{Redrive, RunHandle, RunOptions, RunStatus, StartError};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct More;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Item(u32, u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

/// Passes a number of items through a gate, one at a time. The second ends the run; a single one fails; without any the
/// run waits for an outside event.
struct Shop(Arc<Semaphore>);

#[workflow]
impl Shop {
    #[step]
    async fn unpack(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(|number| Item(number, begin.0)).collect()
    }

    #[step(concurrency = 1)]
    async fn pass(&self, item: &Item) -> Result<Option<Done>, StepError> {
        self.0.acquire().await?.forget();
        if item.1 == 1 {
            Err(StepError::permanent("it is alone"))
        } else {
            Ok((item.0 == 2).then_some(Done(2)))
        }
    }

    #[step]
    async fn close(&self, _more: &More) -> Done {
        Done(0)
    }
}

/// Fails twice before it succeeds.
struct Flaky;

#[workflow]
impl Flaky {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        if info.attempt() < 3 { Err(StepError::tool("not yet")) } else { Ok(Done(begin.0)) }
    }
}

/// The measurements so far: counters and gauges by name and labels, histograms by their number of samples.
struct Measured(Snapshotter, BTreeMap<String, f64>);

impl Measured {
    /// Each snapshot resets the values, so this adds them up.
    fn look(&mut self) {
        for (key, _, _, value) in self.0.snapshot().into_vec() {
            let mut labels: Vec<String> =
                key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            labels.sort();
            let name = format!("{}{{{}}}", key.key().name(), labels.join(","));
            let measured = self.1.entry(name).or_default();
            match (key.kind(), value) {
                (MetricKind::Gauge, DebugValue::Gauge(value)) => *measured += value.into_inner(),
                (MetricKind::Counter, DebugValue::Counter(count)) => {
                    *measured += f64::from(u32::try_from(count).unwrap());
                }
                (MetricKind::Histogram, DebugValue::Histogram(times)) => {
                    assert!(times.iter().all(|time| time.into_inner() >= 0.0));
                    *measured += f64::from(u32::try_from(times.len()).unwrap());
                }
                unexpected => panic!("{unexpected:?}"),
            }
        }
    }

    #[track_caller]
    fn is(&mut self, name: &str, expected: f64) {
        self.look();
        let measured = self.1.get(name).copied().unwrap_or(0.0);
        assert!((measured - expected).abs() < 0.5, "{name}: {measured}, expected {expected}\n{:#?}", self.1);
    }
}

async fn everyone_else() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// An engine over a store, on a runtime of this thread, and its measurements.
fn measure_stored<F: Future<Output = ()>>(test: impl FnOnce(Engine, Arc<Semaphore>, Measured) -> F) {
    let recorder = DebuggingRecorder::new();
    let measured = Measured(recorder.snapshotter(), BTreeMap::new());
    metrics::with_local_recorder(&recorder, || {
        let gate = Arc::new(Semaphore::new(0));
        let engine = Engine::builder().workflow(Shop(Arc::clone(&gate))).store(MemoryStore::default());
        let engine = engine.build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(test(engine, gate, measured));
    });
}

/// An engine for one active run, on a runtime of this thread, and its measurements.
fn measure<F: Future<Output = ()>>(test: impl FnOnce(Engine, Arc<Semaphore>, Measured) -> F) {
    let recorder = DebuggingRecorder::new();
    let measured = Measured(recorder.snapshotter(), BTreeMap::new());
    metrics::with_local_recorder(&recorder, || {
        let gate = Arc::new(Semaphore::new(0));
        let engine = Engine::builder().workflow(Shop(Arc::clone(&gate))).workflow(Flaky);
        let engine = engine.max_concurrent_runs(1).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(test(engine, gate, measured));
    });
}

async fn start(engine: &Engine, items: u32) -> RunHandle<Shop> {
    engine.start::<Shop>(Begin(items)).await.unwrap()
}

#[test]
fn runs_executions_and_events_are_counted_by_how_they_went() {
    measure(async |engine, gate, mut measured| {
        gate.add_permits(2);
        start(&engine, 2).await.outcome().await.unwrap();
        gate.add_permits(1);
        let cancelled = start(&engine, 2).await;
        everyone_else().await;
        cancelled.cancel("enough").await.unwrap();

        measured.is("workflow_runs_started_total{workflow=Shop}", 2.0);
        measured.is("workflow_runs_ended_total{status=completed,workflow=Shop}", 1.0);
        measured.is("workflow_runs_ended_total{status=cancelled,workflow=Shop}", 1.0);
        measured.is("workflow_run_duration_seconds{status=completed,workflow=Shop}", 1.0);
        measured.is("workflow_executions_total{outcome=succeeded,step=unpack,workflow=Shop}", 2.0);
        measured.is("workflow_executions_total{outcome=succeeded,step=pass,workflow=Shop}", 3.0);
        measured.is("workflow_executions_total{outcome=dropped,step=pass,workflow=Shop}", 1.0);
        measured.is("workflow_execution_duration_seconds{outcome=succeeded,step=pass,workflow=Shop}", 3.0);
        // The start events, two items each, and the stop event.
        measured.is("workflow_events_logged_total{workflow=Shop}", 7.0);
        measured.is("workflow_runs_running{workflow=Shop}", 0.0);
    });
}

#[test]
fn a_failure_is_an_outcome_of_its_execution_and_a_status_of_its_run() {
    measure(async |engine, gate, mut measured| {
        gate.add_permits(1);
        start(&engine, 1).await.outcome().await.unwrap_err();
        measured.is("workflow_executions_total{outcome=failed,step=pass,workflow=Shop}", 1.0);
        measured.is("workflow_execution_duration_seconds{outcome=failed,step=pass,workflow=Shop}", 1.0);
        measured.is("workflow_runs_ended_total{status=failed,workflow=Shop}", 1.0);
        measured.is("workflow_run_duration_seconds{status=failed,workflow=Shop}", 1.0);
    });
}

/// Leaves one of its clean-up steps undone while the bank is away.
struct Undone(Arc<Semaphore>);

#[workflow]
impl Undone {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step(on_end)]
    async fn refund(&self, _begin: &Begin) -> Result<(), StepError> {
        if self.0.available_permits() > 0 { Ok(()) } else { Err(StepError::permanent("away")) }
    }

    #[step(on_end)]
    async fn release(&self, _begin: &Begin) {}
}

// S86
#[test]
fn unfinished_clean_up_steps_are_counted_and_a_redrive_of_them_ends_no_run_again() {
    measure_stored(async |_, bank, mut measured| {
        let builder = Engine::builder().workflow(Undone(Arc::clone(&bank))).store(MemoryStore::default());
        let engine = builder.build().unwrap();
        let run = engine.start::<Undone>(Begin(1)).await.unwrap();
        run.outcome().await.unwrap_err();
        for (opens, unfinished) in [(0, 2.0), (1, 2.0)] {
            bank.add_permits(opens);
            let redrive = Redrive::new().clean_up();
            let run = engine.redrive_with::<Undone>(run.id().clone(), redrive).await.unwrap();
            run.outcome().await.unwrap_err();
            measured.is("workflow_cleanup_steps_incomplete_total{step=refund,workflow=Undone}", unfinished);
            measured.is("workflow_runs_ended_total{status=failed,workflow=Undone}", 1.0);
            measured.is("workflow_run_duration_seconds{status=failed,workflow=Undone}", 1.0);
        }
    });
}

#[test]
fn attempts_that_are_followed_by_another_are_retries_within_one_execution() {
    measure(async |engine, _gate, mut measured| {
        engine.start::<Flaky>(Begin(1)).await.unwrap().outcome().await.unwrap();
        measured.is("workflow_retries_total{class=tool,step=work,workflow=Flaky}", 2.0);
        measured.is("workflow_executions_total{outcome=succeeded,step=work,workflow=Flaky}", 1.0);
        measured.is("workflow_executions_total{outcome=failed,step=work,workflow=Flaky}", 0.0);
        measured.is("workflow_execution_duration_seconds{outcome=succeeded,step=work,workflow=Flaky}", 1.0);
    });
}

#[test]
fn gauges_rise_and_fall_with_what_runs_waits_and_queues() {
    measure(async |engine, gate, mut measured| {
        let first = start(&engine, 2).await;
        let second = tokio::spawn({
            let engine = engine.clone();
            async move { start(&engine, 0).await }
        });
        everyone_else().await;
        measured.is("workflow_runs_running{workflow=Shop}", 1.0);
        measured.is("workflow_runs_queued{workflow=Shop}", 1.0);
        measured.is("workflow_executions_waiting{workflow=Shop}", 1.0);
        gate.add_permits(2);
        first.outcome().await.unwrap();
        let second = second.await.unwrap();
        assert_eq!(second.settled().await, RunStatus::Waiting);
        measured.is("workflow_runs_running{workflow=Shop}", 0.0);
        measured.is("workflow_runs_queued{workflow=Shop}", 0.0);
        measured.is("workflow_runs_waiting{workflow=Shop}", 1.0);
        measured.is("workflow_executions_waiting{workflow=Shop}", 0.0);
        second.send(More).await.unwrap();
        second.outcome().await.unwrap();
        measured.is("workflow_runs_waiting{workflow=Shop}", 0.0);
    });
}

// S81
#[test]
fn a_refused_start_and_a_look_are_no_runs() {
    measure_stored(async |engine, gate, mut measured| {
        gate.add_permits(3);
        for (id, items) in [("completes", 2), ("fails", 1)] {
            let options = || RunOptions::new().id(id);
            let run = engine.start_with::<Shop>(Begin(items), options()).await.unwrap();
            assert_eq!(run.outcome().await.is_ok(), items == 2);
            for _ in 0..3 {
                let refused = engine.start_with::<Shop>(Begin(items), options()).await.unwrap_err();
                assert!(matches!(refused, StartError::DuplicateRun { .. }), "{refused:?}");
                engine.attach::<Shop>(id).await.unwrap().report().await.unwrap();
            }
        }
        measured.is("workflow_runs_started_total{workflow=Shop}", 2.0);
        for status in ["completed", "failed"] {
            measured.is(&format!("workflow_runs_ended_total{{status={status},workflow=Shop}}"), 1.0);
            measured.is(&format!("workflow_run_duration_seconds{{status={status},workflow=Shop}}"), 1.0);
        }
        measured.is("workflow_runs_running{workflow=Shop}", 0.0);
    });
}

// S81
#[test]
fn a_run_that_is_detached_has_not_ended() {
    measure_stored(async |engine, _gate, mut measured| {
        let run = start(&engine, 0).await;
        assert_eq!(run.settled().await, RunStatus::Waiting);
        measured.is("workflow_runs_waiting{workflow=Shop}", 1.0);
        engine.shut_down(std::time::Duration::from_secs(1)).await;
        measured.is("workflow_runs_started_total{workflow=Shop}", 1.0);
        measured.is("workflow_runs_ended_total{status=cancelled,workflow=Shop}", 0.0);
        measured.is("workflow_runs_waiting{workflow=Shop}", 0.0);
        measured.is("workflow_runs_running{workflow=Shop}", 0.0);
    });
}

// S81, S87
#[test]
fn a_run_that_the_next_engine_takes_up_waits_and_is_not_counted_again() {
    measure_stored(async |_, gate, mut measured| {
        let store = Arc::new(MemoryStore::default());
        let build = || {
            let engine = Engine::builder().workflow(Shop(Arc::clone(&gate)));
            engine.store(Arc::clone(&store)).build().unwrap()
        };
        let first = build();
        let run = first.start_with::<Shop>(Begin(0), RunOptions::new().id("r")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        first.shut_down(std::time::Duration::from_secs(1)).await;
        measured.is("workflow_runs_waiting{workflow=Shop}", 0.0);
        let next = build();
        assert_eq!(next.resume_open_runs().await.unwrap().runs.len(), 1);
        measured.is("workflow_runs_waiting{workflow=Shop}", 1.0);
        measured.is("workflow_runs_running{workflow=Shop}", 0.0);
        let run = next.attach::<Shop>("r").await.unwrap();
        run.send(More).await.unwrap();
        run.outcome().await.unwrap();
        measured.is("workflow_runs_waiting{workflow=Shop}", 0.0);
        measured.is("workflow_runs_started_total{workflow=Shop}", 1.0);
        measured.is("workflow_runs_ended_total{status=completed,workflow=Shop}", 1.0);
    });
}
