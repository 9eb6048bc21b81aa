//! The options of a run at its start.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value;

use crate::config::{ConfigError, ConfigOrigin, ConfigType};
use crate::id::{MAX_ORIGIN_BYTES, Origin, RunId, ThreadId, TraceParent};
use crate::outcome::StartError;
use crate::store::{RunSummary, metadata_bytes};

/// The options of a run at its start. Every option has a default.
///
/// ```
/// use workflow_core::RunOptions;
/// let options = RunOptions::new().id("order-17").thread("user-4").metadata("tenant", "acme");
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    pub(crate) id: Option<RunId>,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) workflow: Option<Arc<str>>,
    pub(crate) configs: BTreeMap<TypeId, RunLayer>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) timeout: Option<Duration>,
    /// Origin, trace parent, deadline and secrets.
    pub(crate) rare: Option<Box<RareOptions>>,
}

/// The layer of one configuration for one run.
#[derive(Debug, Clone)]
pub(crate) struct RunLayer {
    /// The full path of the configuration's type, as journals have it.
    pub(crate) type_name: &'static str,
    /// The result of serialising the layer.
    pub(crate) layer: Result<Value, ConfigError>,
}

impl RunLayer {
    pub(crate) fn of(config: ConfigType, layer: Value) -> Self {
        Self { type_name: config.type_name(), layer: Ok(layer) }
    }
}

/// The options that few starts have.
#[derive(Debug, Clone, Default)]
pub(crate) struct RareOptions {
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) trace_parent: Option<TraceParent>,
    pub(crate) deadline: Option<SystemTime>,
    /// The secret fields that sources of the configurations gave. No journal has them.
    pub(crate) secrets: BTreeMap<TypeId, Value>,
}

impl RunOptions {
    /// Options with every default: a generated id, a thread of its own, the engine's configuration, no
    /// metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the run's id. No running run, no run in the engine's store, and none that it [keeps after the
    /// end](crate::EngineBuilder::keep_ended) may have the same one.
    pub fn id(self, id: impl Into<RunId>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Sets the thread of the run. Runs of one thread share a [`ThreadContext`](crate::ThreadContext).
    pub fn thread(self, thread: impl Into<ThreadId>) -> Self {
        Self { thread: Some(thread.into()), ..self }
    }

    /// Sets the author of the start, and its id. The journal has it with the start event.
    ///
    /// A later act of the run with the same [id](Origin::id) does nothing. The origin detects no repetition of the start: to
    /// repeat a start safely, set the [id](Self::id) of the run. The second start fails with
    /// [`StartError::DuplicateRun`](crate::StartError::DuplicateRun) then, and you attach.
    ///
    /// ```
    /// use workflow_core::{Origin, RunOptions};
    /// let options = RunOptions::new().origin(Origin::new().by("ada@example.com"));
    /// ```
    pub fn origin(mut self, origin: Origin) -> Self {
        self.rare_mut().origin = Some(Arc::new(origin));
        self
    }

    /// Sets the place of the run in a distributed trace. Default: that of the parent, for a child.
    ///
    /// The journal has it, so it is the same after a restart. The run's `tracing` span has it in the field
    /// `workflow.run.trace_parent`.
    ///
    /// ```
    /// use workflow_core::RunOptions;
    ///
    /// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let options = RunOptions::new().trace_parent(header.parse()?);
    /// # Ok::<(), workflow_core::errors::InvalidTraceParent>(())
    /// ```
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.rare_mut().trace_parent = Some(parent);
        self
    }

    /// Sets the name of the workflow to start. Default: the workflow with the type's own name, or the only one of the type.
    ///
    /// For an engine that hosts several workflows of one type, each [under a name](crate::EngineBuilder::workflow_named).
    /// [`Engine::start_json`](crate::Engine::start_json) and [`Children::run_json`](crate::Children::run_json) are called with
    /// a name, which counts instead of this one.
    pub fn workflow(self, name: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(name.into()), ..self }
    }

    /// The id that was set; `None` if the engine generates one.
    pub fn run_id(&self) -> Option<&RunId> {
        self.id.as_ref()
    }

    /// The thread that was set; `None` if the run gets one of its own.
    pub fn thread_id(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// Adds the last layer of `Config<C>`, for this run only.
    ///
    /// The layer may set a part of `C`, for example `serde_json::json!({"rerank": true})`.
    pub fn config<C: 'static>(mut self, layer: impl Serialize) -> Self {
        let layer = ConfigError::json_of(&layer, &ConfigOrigin::Run);
        self.configs.insert(TypeId::of::<C>(), RunLayer { type_name: type_name::<C>(), layer });
        self
    }

    /// Sets how long the run may be active, by the engine's clock. Default:
    /// [`EngineBuilder::run_timeout`](crate::EngineBuilder::run_timeout). A workflow with a
    /// [time of its own](crate::RuntimeWorkflow::with_timeout) has no longer one.
    ///
    /// A run is not active while it [waits](crate::RunStatus::Waiting) for a timer or the outside, and while
    /// it waits for a permit among the engine's runs. The delay between two attempts of an execution counts.
    /// The time in which a step awaits a [child](crate::Children) counts too, even if the child waits for a
    /// person: the parent is active.
    ///
    /// When the time is used up, the run drops its executions and ends with
    /// [`RunError::TimedOut`](crate::RunError::TimedOut). A start with 0 is [`StartError::NoTime`](crate::StartError::NoTime).
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::RunOptions;
    /// let options = RunOptions::new().timeout(Duration::from_secs(60));
    /// ```
    pub fn timeout(self, active: Duration) -> Self {
        Self { timeout: Some(active), ..self }
    }

    /// Sets the time at which the run ends at the latest, by the engine's clock. Default: none.
    ///
    /// The deadline also holds while the run [waits](crate::RunStatus::Waiting), is paused, or is unloaded.
    ///
    /// The run drops its executions, cleans up, and ends as [timed out](crate::RunStatus::TimedOut) with
    /// [`RunError::DeadlinePassed`](crate::RunError::DeadlinePassed). Timers that were due before it enter the log first. A
    /// run that no process drives at its deadline ends when one resumes it, before anything begins. The journal has the
    /// deadline. A child that its parent awaits ends with it; any child may have a deadline of its own.
    ///
    /// A start whose deadline has passed is refused with
    /// [`StartError::DeadlinePassed`](crate::StartError::DeadlinePassed), and so is one that still waits for a permit then;
    /// also under the id of a run that has ended since.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use workflow_core::RunOptions;
    /// let options = RunOptions::new().deadline(SystemTime::now() + Duration::from_secs(3_600));
    /// ```
    pub fn deadline(mut self, at: SystemTime) -> Self {
        self.rare_mut().deadline = Some(at);
        self
    }

    /// Adds a label, which the report and the store's list of runs have too.
    ///
    /// A run has at most 8 KiB of labels as JSON
    /// ([`RunSummary::MAX_METADATA_BYTES`](crate::store::RunSummary::MAX_METADATA_BYTES)). A start with more is
    /// [`StartError::TooMuchMetadata`](crate::StartError::TooMuchMetadata).
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// The origin of the start.
    pub(crate) fn checked_origin(&self) -> Result<Option<Arc<Origin>>, StartError> {
        let origin = self.rare.as_ref().and_then(|rare| rare.origin.as_ref());
        let excess = origin.and_then(|origin| origin.excess());
        let too_long = |bytes| Err(StartError::OriginTooLong { bytes, limit: MAX_ORIGIN_BYTES });
        excess.map_or_else(|| Ok(origin.cloned()), too_long)
    }

    /// The same options with the trace parent of a parent, unless they have one.
    pub(crate) fn within_trace(mut self, parent: Option<TraceParent>) -> Self {
        if let Some(parent) = parent {
            self.rare_mut().trace_parent.get_or_insert(parent);
        }
        self
    }

    /// The same options with these secret fields of configurations.
    pub(crate) fn with_secrets(mut self, secrets: BTreeMap<TypeId, Value>) -> Self {
        if !secrets.is_empty() {
            self.rare_mut().secrets = secrets;
        }
        self
    }

    /// The deadline of the run.
    pub(crate) fn deadline_at(&self) -> Option<SystemTime> {
        self.rare.as_ref()?.deadline
    }

    /// The secret fields that sources gave the configuration of this type.
    pub(crate) fn secret(&self, config: TypeId) -> Option<&Value> {
        self.rare.as_ref()?.secrets.get(&config)
    }

    fn rare_mut(&mut self) -> &mut RareOptions {
        self.rare.get_or_insert_default()
    }

    /// Checks the time limit and the bound on labels.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(StartError::NoTime);
        }
        let (bytes, limit) = (metadata_bytes(&self.metadata), RunSummary::MAX_METADATA_BYTES);
        if bytes > limit { Err(StartError::TooMuchMetadata { bytes, limit }) } else { Ok(()) }
    }
}
