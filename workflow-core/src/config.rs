//! Configuration of a workflow: how layers become one validated value, and how a step receives that value. The engine
//! passes the layers of a single run.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

mod error;
mod layers;
mod set;
mod source;

pub use error::{ConfigError, ConfigOrigin};
pub use layers::ConfigLayers;
pub(crate) use set::ConfigSet;
pub use source::{ConfigRequest, ConfigSource};
pub(crate) use source::{SourceLayer, Sources, layered};

/// The configuration of a run, as a step takes it: `config: &Config<ResearchConfig>`.
///
/// The engine reads and validates it once, before the run's first step; all steps of the run get the same value.
/// Cloning copies a pointer.
///
/// ```
/// use workflow_core::Config;
///
/// struct ResearchConfig {
///     top_k: usize,
/// }
///
/// fn passages_wanted(config: &Config<ResearchConfig>) -> usize {
///     config.top_k
/// }
/// assert_eq!(passages_wanted(&Config::new(ResearchConfig { top_k: 5 })), 5);
/// ```
pub struct Config<C> {
    value: Arc<C>,
}

impl<C> Config<C> {
    /// Wraps a value, to call a step in a test.
    ///
    /// ```
    /// let config = workflow_core::Config::new(String::from("strict"));
    /// assert_eq!(config.len(), 6);
    /// ```
    pub fn new(value: C) -> Self {
        Self::from_arc(Arc::new(value))
    }

    pub(crate) fn from_arc(value: Arc<C>) -> Self {
        Self { value }
    }
}

impl<C> Deref for Config<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.value
    }
}

impl<C> Clone for Config<C> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value) }
    }
}

impl<C: fmt::Debug> fmt::Debug for Config<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Config").field(&self.value).finish()
    }
}

/// A resolved configuration with its type erased.
pub(crate) type AnyConfig = Arc<dyn Any + Send + Sync>;

/// The configuration type that a step takes, as a constant of the table.
///
/// ```
/// use workflow_core::signature::ConfigType;
///
/// #[derive(serde::Deserialize)]
/// struct ResearchConfig {
///     top_k: usize,
/// }
///
/// const TAKEN: ConfigType = ConfigType::of::<ResearchConfig>();
/// assert!(TAKEN.type_name().ends_with("ResearchConfig"));
/// ```
#[derive(Clone, Copy)]
pub struct ConfigType {
    type_id: TypeId,
    type_name: fn() -> &'static str,
    resolve: fn(&ConfigSet, Option<&Value>) -> Result<AnyConfig, ConfigError>,
    schema: Option<fn() -> Value>,
}

impl ConfigType {
    /// The configuration type `C`.
    ///
    /// ```
    /// use workflow_core::signature::ConfigType;
    /// assert_eq!(ConfigType::of::<u8>().type_name(), "u8");
    /// ```
    pub const fn of<C: DeserializeOwned + Send + Sync + 'static>() -> Self {
        Self {
            type_id: TypeId::of::<C>(),
            type_name: std::any::type_name::<C>,
            resolve: ConfigSet::resolve_as::<C>,
            schema: None,
        }
    }

    pub(crate) const fn with_schema(self, schema: Option<fn() -> Value>) -> Self {
        Self { schema, ..self }
    }

    /// The JSON schema of the configuration.
    ///
    /// `None` unless the type implements `schemars::JsonSchema` (version 1), a step takes it as `Config<…>`, and the
    /// feature `schemars` is on.
    pub fn json_schema(&self) -> Option<Value> {
        crate::json::schema(self.schema)
    }

    /// The identity of the Rust type.
    ///
    /// ```
    /// use std::any::TypeId;
    /// use workflow_core::signature::ConfigType;
    /// assert_eq!(ConfigType::of::<u8>().type_id(), TypeId::of::<u8>());
    /// ```
    pub const fn type_id(&self) -> TypeId {
        self.type_id
    }

    /// The full path of the Rust type, for messages.
    ///
    /// ```
    /// use workflow_core::signature::ConfigType;
    /// assert_eq!(ConfigType::of::<bool>().type_name(), "bool");
    /// ```
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }
}

impl fmt::Debug for ConfigType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigType({})", self.type_name())
    }
}

#[cfg(test)]
mod tests {
    use static_assertions::assert_impl_all;

    use super::*;

    assert_impl_all!(Config<String>: Send, Sync, Clone, fmt::Debug);
    assert_impl_all!(ConfigType: Send, Sync, Copy, fmt::Debug);

    #[test]
    fn a_clone_shares_the_value() {
        let config = Config::from_arc(Arc::new(String::from("once")));
        assert!(std::ptr::eq::<String>(&raw const *config, &raw const *config.clone()));
    }

    #[test]
    fn a_type_stands_in_a_constant() {
        const TYPES: &[ConfigType] = &[ConfigType::of::<u8>(), ConfigType::of::<String>()];
        assert_eq!(TYPES[1].type_id(), TypeId::of::<String>());
        assert_eq!(format!("{:?}", TYPES[0]), "ConfigType(u8)");
    }
}
