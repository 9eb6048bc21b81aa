//! What can be said of a run when it is started.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::config::{ConfigError, ConfigOrigin};
use crate::id::{RunId, ThreadId};

/// What can be said of a run when it is started; everything has a default.
///
/// ```
/// use workflow_core::RunOptions;
/// let options = RunOptions::new().id("order-17").thread("user-4").metadata("tenant", "acme");
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    pub(crate) id: Option<RunId>,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) configs: HashMap<TypeId, Result<Value, ConfigError>>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) timeout: Option<Duration>,
}

impl RunOptions {
    /// A generated id, a thread of its own, the engine's configuration, no metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// The run's id; neither a running run nor one in the engine's store may have it.
    pub fn id(self, id: impl Into<RunId>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// The thread the run belongs to: its runs share a [`ThreadContext`](crate::ThreadContext).
    pub fn thread(self, thread: impl Into<ThreadId>) -> Self {
        Self { thread: Some(thread.into()), ..self }
    }

    /// The id that was set; none if one is to be generated.
    pub fn run_id(&self) -> Option<&RunId> {
        self.id.as_ref()
    }

    /// The thread that was set; none if the run is to have one of its own.
    pub fn thread_id(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// The last layer of `Config<C>`, for this run only. A part of `C` is enough, for example
    /// `serde_json::json!({"rerank": true})`.
    pub fn config<C: 'static>(mut self, layer: impl Serialize) -> Self {
        let layer = ConfigError::json_of(&layer, &ConfigOrigin::Run);
        self.configs.insert(TypeId::of::<C>(), layer);
        self
    }

    /// How long the run may be active, by the engine's clock: the time in which it does not
    /// [wait](crate::RunStatus::Waiting) for a timer or the outside, nor for a place among the runs that run at a time.
    /// The time between two attempts of an execution counts, and so does that in which a step awaits a
    /// [child](crate::Children), even one that waits for a person: the parent is active. At the end of it
    /// executions are dropped, and the run ends with [`RunError::TimedOut`](crate::RunError::TimedOut). Default: as the
    /// [engine](crate::EngineBuilder::run_timeout) says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::RunOptions;
    /// let options = RunOptions::new().timeout(Duration::from_secs(60));
    /// ```
    pub fn timeout(self, active: Duration) -> Self {
        Self { timeout: Some(active), ..self }
    }

    /// A label that the report carries.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}
