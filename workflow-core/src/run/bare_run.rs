//! A run for unit tests: its state and its shared part, without an engine and a runtime. The tests say what
//! the steps return; no step is called.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::host::{Host, UnhostedWorkflow};
use super::recorded::without_engine;
use super::state::{Applied, Batch, EffectKind, Returned, RunState};
use super::{RunExtras, RunShared};
use crate::error::ErrorClass;
use crate::event::AnyEvent;
use crate::id::ExecutionId;
use crate::observe::{Observation, Observed, Observer, Observers};
use crate::prelude::*;
use crate::retry::FailedAttempt;
use crate::scheduler::SchedulerLimits;
use crate::table::{EventIndex, StepIndex};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, crate = crate)]
pub(super) struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display, control, crate = crate)]
pub(super) struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop, crate = crate)]
pub(super) struct Done;

/// Writes a draft, and sends it if the precondition allows.
pub(super) struct Letters;

#[workflow(crate = crate)]
impl Letters {
    #[step]
    async fn write(&self, _begin: &Begin) -> Draft {
        Draft
    }

    #[precondition]
    fn allowed(_draft: &Draft) -> bool {
        true
    }

    #[step(precondition = allowed)]
    async fn send(&self, _draft: &Draft) -> Done {
        Done
    }
}

/// The execution of `write`.
pub(super) const WRITE: ExecutionId = ExecutionId(1);

/// A run of [`Letters`].
pub(super) struct BareRun {
    pub(super) host: Arc<Host>,
    pub(super) shared: Arc<RunShared>,
    pub(super) state: RunState,
    pub(super) seen: Arc<Seen>,
}

/// Records the names of the observations that an observer receives.
#[derive(Default)]
pub(super) struct Seen(Mutex<Vec<String>>);

impl Observer for Seen {
    fn observe(&self, observation: &Observation) {
        let text = match &observation.what {
            Observed::EventLogged { event, .. } => format!("EventLogged {}", event.name()),
            what => format!("{what:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
        };
        self.0.lock().unwrap().push(text);
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl Seen {
    /// The observations since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl BareRun {
    /// A run with an empty log.
    pub(super) fn new() -> Self {
        let (host, error) = Host::new(UnhostedWorkflow::new(Letters));
        assert!(error.is_none(), "{error:?}");
        let seen = Arc::<Seen>::default();
        let common = without_engine(Observers::start(vec![Arc::clone(&seen) as _]), SystemTime::UNIX_EPOCH);
        let (table, common) = (Arc::clone(&host.table), Arc::new(common));
        let shared = RunShared::new("r".into(), None, None, table, common, RunExtras::default());
        let state = RunState::new(&host.table, SchedulerLimits::default());
        Self { host: Arc::new(host), shared: Arc::new(shared), state, seen }
    }

    /// A run that has its start event: `write` is about to begin.
    pub(super) fn begun() -> Self {
        let mut run = Self::new();
        run.apply(0, run.received());
        run
    }

    pub(super) fn event<E: Event>(&self) -> EventIndex {
        self.host.table.event_named(E::NAME).unwrap()
    }

    pub(super) fn step(&self, name: &str) -> StepIndex {
        self.host.table.step_named(name).unwrap()
    }

    /// The start event.
    pub(super) fn received(&self) -> Batch {
        Batch::Received { event: AnyEvent::new(Begin), index: self.event::<Begin>(), origin: None }
    }

    /// The batch of an execution that emits this event.
    pub(super) fn returned<E: Event>(&self, execution: ExecutionId, event: E) -> Batch {
        let returned = Returned::Event(self.event::<E>(), AnyEvent::new(event));
        Batch::Succeeded { execution, returned }
    }

    /// The batch of a failed attempt that another one follows.
    pub(super) fn retried(execution: ExecutionId, class: ErrorClass, retry_in: Duration) -> Batch {
        let failed =
            FailedAttempt { class, error: "busy".into(), retry_in, compacts: false, redriven: false };
        Batch::Retried { execution, failed }
    }

    /// Applies a batch at this time, and completes its consequences.
    pub(super) fn apply(&mut self, seconds: u64, batch: Batch) {
        let applied = self.state.apply(batch, Duration::from_secs(seconds));
        assert!(!matches!(applied, Applied::Refused), "the run takes it");
        if let Applied::Logged(entered) = applied
            && let Some(start) = entered.next()
        {
            self.state.queue_effect(EffectKind::Execution(start));
        }
        self.state.advance(&mut usize::MAX.clone());
    }
}
