//! Sources of configuration: layers that are asked for when a run begins, and which of their fields are secret (S68).
//! It does not decide when a source is asked: the engine does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::layers::merge;
use super::{ConfigError, ConfigOrigin};
use crate::id::{RunId, ThreadId};
use crate::panics::caught_in;

/// A source of a configuration layer for each run: a service of settings or of secrets.
///
/// [`ConfigLayers::source`](crate::ConfigLayers::source) adds it. The engine asks before the run's first event enters its log,
/// and records the answer with the run's own layer, so that a resumed run has the same configuration. Fields that
/// [`ConfigLayers::secret`](crate::ConfigLayers::secret) names are never recorded: the engine asks for them again when it resumes
/// or redrives the run, and when it reloads one that has no handles. Each child run asks too.
///
/// ```
/// use futures::future::BoxFuture;
/// use serde_json::{Value, json};
/// use workflow_core::errors::ConfigError;
/// use workflow_core::prelude::*;
/// use workflow_core::{ConfigLayers, ConfigRequest, ConfigSource, RunOptions};
///
/// #[derive(Debug, Deserialize)]
/// struct Model {
///     name: String,
///     key: String,
/// }
///
/// /// The settings of each tenant.
/// struct Tenants;
///
/// impl ConfigSource for Tenants {
///     fn layer<'a>(&'a self, request: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
///         Box::pin(async move {
///             let tenant = request.metadata().get("tenant").map(String::as_str);
///             Ok(tenant.map(|tenant| json!({ "key": format!("key-of-{tenant}") })))
///         })
///     }
/// }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Ask;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Answer(String);
/// # struct Assistant;
/// # #[workflow]
/// # impl Assistant {
/// #     #[step]
/// #     async fn answer(&self, _ask: &Ask, model: &Config<Model>) -> Answer { Answer(format!("{} {}", model.name, model.key)) }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layers = ConfigLayers::defaults(json!({ "name": "small" })).source(Tenants).secret("key");
/// let engine = Engine::builder().workflow(Assistant).config::<Model>(layers).build()?;
/// let run = engine.start_with::<Assistant>(Ask, RunOptions::new().metadata("tenant", "acme")).await?;
/// assert_eq!(run.outcome().await?, Answer("small key-of-acme".into()));
/// # Ok(())
/// # }
/// ```
pub trait ConfigSource: Send + Sync + 'static {
    /// The layer for a run: the values that replace those of earlier layers; `None` for no layer.
    ///
    /// The start of the run waits for it, without a limit of time: set one in the source. An engine that ends drops the
    /// call, and the start fails with [`StartError::ShutDown`](crate::StartError::ShutDown). A panic counts as
    /// [`unavailable`](ConfigError::unavailable).
    ///
    /// # Errors
    /// [`ConfigError::unavailable`] if the source cannot answer now. The start, or the attach, returns the error, and
    /// nothing changes.
    fn layer<'a>(&'a self, request: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>>;
}

impl<S: ConfigSource + ?Sized> ConfigSource for Arc<S> {
    fn layer<'a>(&'a self, request: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
        (**self).layer(request)
    }
}

/// The run for which a [`ConfigSource`] is asked.
#[derive(Debug, Clone)]
pub struct ConfigRequest {
    pub(crate) run: RunId,
    pub(crate) workflow: Arc<str>,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) config: &'static str,
}

impl ConfigRequest {
    /// The id of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The name of its workflow.
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The thread of the run; `None` if the run has a thread of its own.
    pub fn thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// The metadata of the run.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The full path of the configuration's Rust type.
    pub fn config(&self) -> &str {
        self.config
    }
}

/// The sources of one configuration, and the paths of its secret fields.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    pub(super) sources: Vec<Arc<dyn ConfigSource>>,
    /// Paths of keys.
    pub(super) secrets: Vec<Vec<String>>,
}

/// The answer of all sources: what a journal may have, and what it may not.
#[derive(Debug, Default)]
pub(crate) struct SourceLayer {
    pub(crate) open: Option<Value>,
    /// The secret fields, also if the layer has none of them: a secret may be elsewhere in it. `None` without a layer, and
    /// of a configuration without secret paths.
    pub(crate) secret: Option<Value>,
}

impl Sources {
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a resumed run asks again.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.sources.is_empty() && !self.secrets.is_empty()
    }

    /// Asks each source in turn. A later one replaces values of an earlier one.
    pub(crate) async fn ask(&self, request: &ConfigRequest) -> Result<SourceLayer, ConfigError> {
        let mut merged = None;
        for source in &self.sources {
            let asked = caught_in(async { source.layer(request).await }).await;
            let layer = asked.unwrap_or_else(|panic| Err(ConfigError::unavailable(panic)))?;
            if let Some(layer) = layer {
                let layer = ConfigError::json_of(&layer, &ConfigOrigin::Source)?;
                merge(merged.get_or_insert_with(|| Value::Object(Map::new())), layer);
            }
        }
        let Some(mut open) = merged else { return Ok(SourceLayer::default()) };
        let mut secret = Value::Object(Map::new());
        for path in &self.secrets {
            if let Some(value) = taken(&mut open, path) {
                let nested = path.iter().rev();
                merge(
                    &mut secret,
                    nested.fold(value, |value, key| Map::from_iter([(key.clone(), value)]).into()),
                );
            }
        }
        let secret = self.has_secrets().then_some(secret);
        Ok(SourceLayer { open: Some(open), secret })
    }
}

/// Takes the value at a path out of an object.
fn taken(from: &mut Value, path: &[String]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let inner = above.iter().try_fold(from, |value, key| value.get_mut(key))?;
    inner.as_object_mut()?.remove(last)
}

/// Two layers of one run as one: values of `over` replace those of `base`.
pub(crate) fn layered(base: Option<Value>, over: Option<Value>) -> Option<Value> {
    match (base, over) {
        (Some(mut base), Some(over)) => {
            merge(&mut base, over);
            Some(base)
        }
        (base, over) => over.or(base),
    }
}

/// Shows how many there are, and never an answer.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_objects_alone() {
        let path = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        let mut value = json!({ "store": { "key": "k", "name": "n" }, "list": [1] });
        assert_eq!(taken(&mut value, &path("store.key")), Some(json!("k")));
        for nothing in ["store.key", "store.name.first", "list.0", "absent", "absent.key"] {
            assert_eq!(taken(&mut value, &path(nothing)), None, "{nothing}");
        }
        assert_eq!(value, json!({ "store": { "name": "n" }, "list": [1] }));
    }

    #[test]
    fn the_later_layer_replaces_values_of_the_earlier_one() {
        assert_eq!(layered(None, None), None);
        assert_eq!(layered(Some(json!(1)), None), Some(json!(1)));
        let both = layered(Some(json!({ "a": 1, "b": 1 })), Some(json!({ "b": 2 })));
        assert_eq!(both, Some(json!({ "a": 1, "b": 2 })));
    }
}
