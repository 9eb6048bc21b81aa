//! The configurations registered with an engine, by type.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::layers::Layers;
use super::source::Sources;
use super::{AnyConfig, ConfigError, ConfigLayers, ConfigType};

/// The layers of every configuration type an engine was given.
#[derive(Default)]
pub(crate) struct ConfigSet {
    registered: HashMap<TypeId, Registered>,
}

struct Registered {
    layers: Layers,
    /// The resolved value without a run's own layer. Resolved once, because most runs have none.
    plain: OnceLock<Result<AnyConfig, ConfigError>>,
}

impl ConfigSet {
    /// Registers the layers of `C`, and replaces earlier ones.
    pub(crate) fn insert<C: 'static>(&mut self, layers: ConfigLayers<C>) {
        let registered = Registered { layers: layers.into_untyped(), plain: OnceLock::new() };
        self.registered.insert(TypeId::of::<C>(), registered);
    }

    /// The errors of reading layers, which an engine reports when it is built.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &ConfigError> {
        self.registered.values().flat_map(|registered| registered.layers.problems())
    }

    /// The sources of this type; `None` if it has none.
    pub(crate) fn sources(&self, config: &ConfigType) -> Option<&Sources> {
        let registered = self.registered.get(&config.type_id())?;
        Some(&registered.layers.asked).filter(|sources| !sources.is_empty())
    }

    /// The sources of every type that has some.
    pub(crate) fn all_sources(&self) -> impl Iterator<Item = &Sources> {
        let all = self.registered.values().map(|registered| &registered.layers.asked);
        all.filter(|sources| !sources.is_empty())
    }

    /// Whether all layers of this type could be read.
    pub(crate) fn is_readable(&self, config: &ConfigType) -> bool {
        let registered = self.registered.get(&config.type_id());
        registered.is_none_or(|registered| registered.layers.problems().next().is_none())
    }

    /// The configuration of one run; without registered layers it is read from `{}`.
    pub(crate) fn resolve_for(
        &self,
        config: &ConfigType,
        per_run: Option<&Value>,
    ) -> Result<AnyConfig, ConfigError> {
        (config.resolve)(self, per_run)
    }

    pub(super) fn resolve_as<C: DeserializeOwned + Send + Sync + 'static>(
        &self,
        per_run: Option<&Value>,
    ) -> Result<AnyConfig, ConfigError> {
        match (self.registered.get(&TypeId::of::<C>()), per_run) {
            (None, _) => erased::<C>(&Layers::default(), per_run),
            (Some(Registered { layers, plain }), None) => {
                plain.get_or_init(|| erased::<C>(layers, None)).clone()
            }
            (Some(Registered { layers, .. }), Some(_)) => erased::<C>(layers, per_run),
        }
    }
}

fn erased<C: DeserializeOwned + Send + Sync + 'static>(
    layers: &Layers,
    per_run: Option<&Value>,
) -> Result<AnyConfig, ConfigError> {
    layers.resolve::<C>(per_run).map(|config| config as AnyConfig)
}

impl fmt::Debug for ConfigSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSet").field("registered", &self.registered.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Limits {
        #[serde(default = "seven")]
        retries: u8,
    }

    fn seven() -> u8 {
        7
    }

    fn retries(set: &ConfigSet, per_run: Option<&Value>) -> Result<u8, ConfigError> {
        let config = set.resolve_for(&ConfigType::of::<Limits>(), per_run)?;
        Ok(config.downcast::<Limits>().unwrap().retries)
    }

    #[test]
    fn a_type_without_layers_resolves_from_its_defaults_and_the_runs_value() {
        let set = ConfigSet::default();
        assert_eq!(retries(&set, None).unwrap(), 7);
        assert_eq!(retries(&set, Some(&json!({ "retries": 1 }))).unwrap(), 1);
    }

    #[test]
    fn registered_layers_are_resolved_once_unless_a_run_adds_to_them() {
        let mut set = ConfigSet::default();
        set.insert(ConfigLayers::<Limits>::defaults(json!({ "retries": 2 })));
        let limits = ConfigType::of::<Limits>();
        let [first, second] = [(); 2].map(|()| set.resolve_for(&limits, None).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(retries(&set, Some(&json!({ "retries": 3 }))).unwrap(), 3);
        assert_eq!(retries(&set, None).unwrap(), 2);
    }

    #[test]
    fn layers_registered_again_replace_the_first() {
        let mut set = ConfigSet::default();
        set.insert(ConfigLayers::<Limits>::new().json_file("/no/such/file.json"));
        assert_eq!(set.problems().count(), 1);
        set.insert(ConfigLayers::<Limits>::new());
        assert_eq!(set.problems().count(), 0);
    }

    #[test]
    fn a_problem_is_reported_to_every_run() {
        let mut set = ConfigSet::default();
        set.insert(ConfigLayers::<Limits>::defaults(json!({ "retries": 300 })));
        for _ in 0..2 {
            assert!(
                matches!(retries(&set, None), Err(ConfigError::Invalid { path, .. }) if path == "retries")
            );
        }
    }
}
