//! `Pause::Now` of a run that waits already (S61).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{Pause, RunStatus};

use crate::fixtures::{Begin, Note, until};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Noted;

struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn note(&self, _begin: &Begin, _note: &Note) -> Noted {
        Noted
    }
}

struct Unloads(Arc<AtomicUsize>);

impl Observer for Unloads {
    fn observe(&self, observation: &Observation) {
        let is_one = matches!(observation.what, Observed::RunUnloaded);
        self.0.fetch_add(usize::from(is_one), Ordering::SeqCst);
    }
}

// S61
#[tokio::test]
async fn now_unloads_a_waiting_run_at_once() {
    for is_paused in [false, true] {
        let hour = Duration::from_hours(1);
        let builder = Engine::builder().workflow(Waits).store(MemoryStore::default());
        let engine = builder.unload_waiting_after(hour).build().unwrap();
        let unloads = Arc::<AtomicUsize>::default();
        let _guard = engine.observe(Unloads(Arc::clone(&unloads)));
        let run = engine.start::<Waits>(Begin(0)).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        if is_paused {
            run.pause(Pause::AfterRunning).await.unwrap();
            assert_eq!(run.settled().await, RunStatus::Paused);
        }
        run.pause(Pause::Now).await.unwrap();
        until(async || unloads.load(Ordering::SeqCst) == 1).await;
    }
}
