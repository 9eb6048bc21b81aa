//! The layers of a configuration: reading them, merging them, and reading the typed value from the result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::source::{ConfigSource, Sources};
use super::{ConfigError, ConfigOrigin};
use crate::panics::{Panicked, caught};

/// The layers of a configuration `C`. A later layer replaces values of an earlier one.
///
/// Objects are merged key by key, at any depth; other values, arrays included, are replaced as a whole. The result is
/// checked against `C` once. Without any layer `C` is read from `{}`, so its serde defaults apply.
///
/// A layer is read when it is added. An error of that is reported when the layers are resolved.
///
/// ```
/// use serde_json::json;
/// use workflow_core::ConfigLayers;
///
/// #[derive(Default, serde::Serialize, serde::Deserialize)]
/// struct ResearchConfig {
///     top_k: usize,
///     rerank: bool,
/// }
///
/// let layers = ConfigLayers::<ResearchConfig>::defaults(ResearchConfig { top_k: 5, rerank: false })
///     .layer(json!({ "rerank": true }))
///     .env("RESEARCH");
/// ```
pub struct ConfigLayers<C> {
    layers: Layers,
    /// `C` is made of the layers only when a run needs it.
    config: PhantomData<fn() -> C>,
}

impl<C> ConfigLayers<C> {
    /// No layer yet.
    ///
    /// ```
    /// let layers = workflow_core::ConfigLayers::<Vec<u8>>::new();
    /// assert_eq!(format!("{layers:?}"), "ConfigLayers []");
    /// ```
    pub fn new() -> Self {
        Self { layers: Layers::default(), config: PhantomData }
    }

    /// A first layer, given in the program: usually a whole `C`.
    ///
    /// ```
    /// use workflow_core::ConfigLayers;
    /// let layers = ConfigLayers::<u32>::defaults(5);
    /// assert_eq!(format!("{layers:?}"), "ConfigLayers [Defaults]");
    /// ```
    pub fn defaults(value: impl Serialize) -> Self {
        Self::new().with_value(ConfigOrigin::Defaults, &value)
    }

    /// Adds a layer: any value that serialises to the values to replace, for example `serde_json::json!`.
    ///
    /// ```
    /// use workflow_core::ConfigLayers;
    /// let layers = ConfigLayers::<u32>::new().layer(7);
    /// assert_eq!(format!("{layers:?}"), "ConfigLayers [Layer { position: 1 }]");
    /// ```
    pub fn layer(self, value: impl Serialize) -> Self {
        let position = self.layers.parts.len() + 1;
        self.with_value(ConfigOrigin::Layer { position }, &value)
    }

    /// Adds a JSON file. It is read now and must exist.
    ///
    /// ```
    /// use workflow_core::ConfigLayers;
    /// let layers = ConfigLayers::<Vec<u8>>::new().json_file("research.json");
    /// assert_eq!(format!("{layers:?}"), r#"ConfigLayers [File { path: "research.json" }]"#);
    /// ```
    pub fn json_file(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        self.with(ConfigOrigin::File { path: path.to_owned() }, read_json(path))
    }

    /// Adds the environment variables that begin with the prefix and an underscore, with their current values.
    ///
    /// The rest of the name is the key in lower case, with two underscores for a dot. With the prefix `RESEARCH`, the
    /// variable `RESEARCH_TOP_K` (or `RESEARCH__TOP_K`) is `top_k`, and `RESEARCH_STORE__PATH` is `store.path`. A value
    /// that is JSON counts as JSON, and any other as text. A text that looks like a number needs quotes:
    /// `RESEARCH_KEY='"0815"'`.
    ///
    /// ```
    /// use workflow_core::ConfigLayers;
    /// let layers = ConfigLayers::<Vec<u8>>::new().env("RESEARCH");
    /// assert_eq!(format!("{layers:?}"), r#"ConfigLayers [Environment { prefix: "RESEARCH" }]"#);
    /// ```
    pub fn env(self, prefix: &str) -> Self {
        let value = read_variables(prefix, std::env::vars_os());
        self.with(ConfigOrigin::Environment { prefix: prefix.to_owned() }, value)
    }

    /// Adds a source that is asked for a layer of each run.
    ///
    /// The order, lowest first: all layers given here, wherever `source` stands; the sources in the order of their addition;
    /// the run's own layer. They are merged key by key.
    ///
    /// [`ConfigSource`] has an example.
    pub fn source(mut self, source: impl ConfigSource) -> Self {
        self.layers.asked.sources.push(Arc::new(source));
        self
    }

    /// Marks a field of the sources' layers as secret, by its keys with dots between them: `store.key`.
    ///
    /// No journal has it. An engine that resumes the run asks the [sources](Self::source) for it again. A field that the
    /// run's own layer gives is recorded with that layer. Without a source, and for a path that no layer of a source has,
    /// nothing happens: a misspelt path leaves the secret in the journal.
    ///
    /// Errors of a run for which such a source gave a layer name the path of the bad value, and never quote a value.
    pub fn secret(mut self, path: impl AsRef<str>) -> Self {
        self.layers.asked.secrets.push(path.as_ref().split('.').map(str::to_owned).collect());
        self
    }

    fn with_value(self, origin: ConfigOrigin, value: &impl Serialize) -> Self {
        let value = ConfigError::json_of(value, &origin);
        self.with(origin, value)
    }

    fn with(mut self, origin: ConfigOrigin, value: Result<Value, ConfigError>) -> Self {
        self.layers.parts.push(Layer { origin, value });
        self
    }

    pub(super) fn into_untyped(self) -> Layers {
        self.layers
    }
}

impl<C: DeserializeOwned + Send + Sync + 'static> ConfigLayers<C> {
    /// Merges the layers, with a run's own value as the last one, and reads `C` from the result.
    #[cfg(test)]
    pub(crate) fn resolve(&self, per_run: Option<&Value>) -> Result<Arc<C>, ConfigError> {
        self.layers.resolve(per_run)
    }
}

impl<C> Default for ConfigLayers<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Clone for ConfigLayers<C> {
    fn clone(&self) -> Self {
        Self { layers: self.layers.clone(), config: PhantomData }
    }
}

impl<C: Serialize> From<C> for ConfigLayers<C> {
    fn from(defaults: C) -> Self {
        Self::defaults(defaults)
    }
}

/// Shows the origins of the layers, and never their contents: a configuration may hold secrets.
impl<C> fmt::Debug for ConfigLayers<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigLayers ")?;
        f.debug_list().entries(self.layers.parts.iter().map(|layer| &layer.origin)).finish()
    }
}

/// Layers without their configuration type, which is named when they are resolved.
#[derive(Clone, Default)]
pub(super) struct Layers {
    parts: Vec<Layer>,
    /// The sources that are asked for each run.
    pub(super) asked: Sources,
}

#[derive(Clone)]
struct Layer {
    origin: ConfigOrigin,
    value: Result<Value, ConfigError>,
}

impl Layers {
    /// The errors of reading the layers.
    pub(super) fn problems(&self) -> impl Iterator<Item = &ConfigError> {
        self.parts.iter().filter_map(|layer| layer.value.as_ref().err())
    }

    pub(super) fn resolve<C: DeserializeOwned>(
        &self,
        per_run: Option<&Value>,
    ) -> Result<Arc<C>, ConfigError> {
        let parts = self.readable(per_run)?;
        let mut merged = Value::Object(Map::new());
        for (_, value) in &parts {
            merge(&mut merged, (*value).clone());
        }
        // A panic of the type's own `Deserialize` is an error like any other, of one run and not of all that are
        // resumed.
        let read = caught(|| serde_path_to_error::deserialize(merged));
        match read {
            Ok(read) => read.map(Arc::new).map_err(|error| invalid::<C>(&parts, error)),
            Err(Panicked { message }) => Err(ConfigError::Invalid {
                type_name: std::any::type_name::<C>(),
                path: ".".into(),
                origin: None,
                source: Arc::new(serde_json::Error::custom(format_args!(
                    "its `Deserialize` panicked: {message}"
                ))),
            }),
        }
    }

    fn readable<'a>(&'a self, per_run: Option<&'a Value>) -> Result<Vec<Part<'a>>, ConfigError> {
        let registered = self.parts.iter().map(|layer| match &layer.value {
            Ok(value) => Ok((&layer.origin, value)),
            Err(error) => Err(error.clone()),
        });
        registered.chain(per_run.map(|value| Ok((&ConfigOrigin::Run, value)))).collect()
    }
}

type Part<'a> = (&'a ConfigOrigin, &'a Value);

pub(super) fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn invalid<C>(parts: &[Part<'_>], error: serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let segments: Vec<_> = error.path().iter().cloned().collect();
    ConfigError::Invalid {
        type_name: std::any::type_name::<C>(),
        path: error.path().to_string(),
        origin: supplier(parts, &segments).cloned(),
        source: Arc::new(error.into_inner()),
    }
}

/// The layer that supplied the value at a path: the last one with a value there, unless several contributed to an
/// object there.
fn supplier<'a>(parts: &[Part<'a>], path: &[Segment]) -> Option<&'a ConfigOrigin> {
    let mut holders = parts.iter().rev().filter_map(|(origin, value)| Some((*origin, descend(value, path)?)));
    let (origin, value) = holders.next()?;
    (!value.is_object() || holders.next().is_none()).then_some(origin)
}

fn descend<'a>(value: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        Segment::Enum { variant } => Some(value.get(variant).unwrap_or(value)),
        Segment::Unknown => Some(value),
    })
}

fn read_json(path: &Path) -> Result<Value, ConfigError> {
    let text = std::fs::read(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source: Arc::new(source) })?;
    serde_json::from_slice(&text)
        .map_err(|source| ConfigError::NotJson { path: path.to_owned(), source: Arc::new(source) })
}

/// Reads variables in the order of their names, so that two colliding ones always resolve alike.
fn read_variables(
    prefix: &str,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Value, ConfigError> {
    let variables: BTreeMap<_, _> = variables.collect();
    let mut merged = Value::Object(Map::new());
    for (name, value) in &variables {
        // A name that is not Unicode cannot begin with the prefix and contain a key.
        if let Some((name, key)) = name.to_str().and_then(|name| Some((name, key_of(name, prefix)?))) {
            let text = value.to_str().ok_or_else(|| ConfigError::NotUnicode { variable: name.to_owned() })?;
            merge(&mut merged, nested(name, key, text)?);
        }
    }
    Ok(merged)
}

fn key_of<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let key = name.strip_prefix(prefix)?.strip_prefix('_')?;
    Some(key.strip_prefix('_').unwrap_or(key))
}

fn nested(name: &str, key: &str, text: &str) -> Result<Value, ConfigError> {
    let key = key.to_lowercase();
    if key.split("__").any(str::is_empty) {
        return Err(ConfigError::Unnamed { variable: name.to_owned() });
    }
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    Ok(key.rsplit("__").fold(value, |value, key| Map::from_iter([(key.to_owned(), value)]).into()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Research {
        top_k: u32,
        models: Vec<String>,
        store: Store,
    }

    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Store {
        path: String,
        cache: bool,
    }

    impl Default for Research {
        fn default() -> Self {
            Self { top_k: 3, models: vec!["small".into()], store: Store::default() }
        }
    }

    fn variables(pairs: &[(&str, &str)]) -> Result<Value, ConfigError> {
        read_variables("RESEARCH", pairs.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn failure(layers: &ConfigLayers<Research>, per_run: Option<&Value>) -> (String, Option<ConfigOrigin>) {
        match layers.resolve(per_run).unwrap_err() {
            ConfigError::Invalid { path, origin, .. } => (path, origin),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn without_layers_the_serde_defaults_apply() {
        assert_eq!(*ConfigLayers::<Research>::new().resolve(None).unwrap(), Research::default());
    }

    #[test]
    fn a_whole_value_is_a_first_layer() {
        let layers: ConfigLayers<Research> = Research { top_k: 9, ..Research::default() }.into();
        assert_eq!(layers.resolve(None).unwrap().top_k, 9);
    }

    #[test]
    fn a_later_layer_wins_key_by_key_and_the_run_wins_last() {
        let layers = ConfigLayers::<Research>::defaults(Research::default())
            .layer(json!({ "top_k": 4, "store": { "path": "a", "cache": true } }))
            .layer(json!({ "store": { "path": "b" } }));
        let config = layers.resolve(Some(&json!({ "top_k": 5 }))).unwrap();
        assert_eq!((config.top_k, &*config.store.path, config.store.cache), (5, "b", true));
    }

    #[test]
    fn arrays_are_replaced_as_a_whole() {
        let layers = ConfigLayers::<Research>::defaults(json!({ "models": ["a", "b"] }));
        let config = layers.resolve(Some(&json!({ "models": ["c"] }))).unwrap();
        assert_eq!(config.models, ["c"]);
    }

    #[test]
    fn an_object_replaces_a_scalar_and_a_scalar_an_object() {
        let mut base = json!({ "a": 1, "b": { "c": 2 } });
        merge(&mut base, json!({ "a": { "x": 3 }, "b": 4 }));
        assert_eq!(base, json!({ "a": { "x": 3 }, "b": 4 }));
    }

    #[test]
    fn an_invalid_value_is_named_by_its_path_and_its_layer() {
        let layers = ConfigLayers::<Research>::defaults(Research::default())
            .layer(json!({ "store": { "cache": "maybe" } }))
            .layer(json!({ "store": { "path": "b" } }));
        let (path, origin) = failure(&layers, None);
        assert_eq!(path, "store.cache");
        assert_eq!(origin, Some(ConfigOrigin::Layer { position: 2 }));
    }

    #[test]
    fn an_invalid_element_is_named_by_its_index_and_blamed_on_the_run() {
        let run = json!({ "models": ["a", 1] });
        let (path, origin) = failure(&ConfigLayers::defaults(Research::default()), Some(&run));
        assert_eq!((&*path, origin), ("models[1]", Some(ConfigOrigin::Run)));
    }

    #[test]
    fn a_missing_value_is_blamed_on_no_single_layer_when_several_made_the_object() {
        #[derive(Debug, Deserialize)]
        struct Strict {
            #[expect(dead_code, reason = "only its absence matters")]
            needed: u8,
        }
        let layers = ConfigLayers::<Strict>::defaults(json!({ "a": 1 })).layer(json!({ "b": 1 }));
        let ConfigError::Invalid { path, origin, source, type_name } = layers.resolve(None).unwrap_err()
        else {
            panic!("an invalid value was expected")
        };
        assert_eq!((&*path, origin), (".", None));
        assert!(source.to_string().contains("missing field `needed`"));
        assert!(type_name.ends_with("Strict"));
    }

    #[test]
    fn an_unknown_key_is_named_where_the_type_denies_it() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Closed {}
        let layers = ConfigLayers::<Closed>::new().layer(json!({ "typo": 1 }));
        let ConfigError::Invalid { path, origin, .. } = layers.resolve(None).unwrap_err() else {
            panic!("an invalid value was expected")
        };
        assert_eq!((&*path, origin), ("typo", Some(ConfigOrigin::Layer { position: 1 })));
    }

    #[test]
    fn variables_become_lower_case_keys_nested_at_two_underscores() {
        let found = variables(&[
            ("RESEARCH_TOP_K", "5"),
            ("RESEARCH__MODELS", r#"["a"]"#),
            ("RESEARCH_STORE__PATH", "/tmp/x y"),
            ("RESEARCHER_TOP_K", "6"),
            ("OTHER", "7"),
        ]);
        let expected = json!({ "top_k": 5, "models": ["a"], "store": { "path": "/tmp/x y" } });
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn quotes_keep_a_number_text_and_an_empty_value_is_text() {
        let found = variables(&[("RESEARCH_KEY", r#""0815""#), ("RESEARCH_NOTE", "")]);
        assert_eq!(found.unwrap(), json!({ "key": "0815", "note": "" }));
    }

    #[test]
    fn a_variable_without_a_key_is_an_error() {
        for name in ["RESEARCH_", "RESEARCH_A____B", "RESEARCH_A__"] {
            let error = variables(&[(name, "1")]).unwrap_err();
            assert!(matches!(error, ConfigError::Unnamed { variable } if variable == name));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_unicode_is_an_error() {
        use std::os::unix::ffi::OsStringExt;
        let value = OsString::from_vec(vec![0xff]);
        let error = read_variables("RESEARCH", [("RESEARCH_A".into(), value)].into_iter()).unwrap_err();
        assert!(matches!(error, ConfigError::NotUnicode { variable } if variable == "RESEARCH_A"));
    }

    #[test]
    fn the_environment_of_the_process_is_read() {
        // Cargo sets `CARGO_PKG_NAME` and its siblings for every test it runs.
        let layers = ConfigLayers::<BTreeMap<String, Value>>::new().env("CARGO_PKG");
        assert_eq!(layers.resolve(None).unwrap()["name"], json!(env!("CARGO_PKG_NAME")));
    }

    #[test]
    fn a_file_that_cannot_be_read_surfaces_when_the_layers_are_resolved() {
        let layers = ConfigLayers::<Research>::defaults(Research::default()).json_file("/no/such/file.json");
        assert!(matches!(layers.resolve(None).unwrap_err(), ConfigError::Unreadable { .. }));
        assert_eq!(layers.into_untyped().problems().count(), 1);
    }

    #[test]
    fn a_file_is_a_layer_unless_it_is_not_json() {
        let path = std::env::temp_dir().join(format!("workflow-config-{}.json", std::process::id()));
        std::fs::write(&path, r#"{ "top_k": 8 }"#).unwrap();
        let good = ConfigLayers::<Research>::new().json_file(&path);
        std::fs::write(&path, "{ top_k").unwrap();
        let bad = ConfigLayers::<Research>::new().json_file(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(good.resolve(None).unwrap().top_k, 8);
        assert!(matches!(bad.resolve(None).unwrap_err(), ConfigError::NotJson { .. }));
    }

    #[test]
    fn a_layer_without_a_json_form_is_an_error() {
        let layers = ConfigLayers::<Research>::new().layer(BTreeMap::from([((1, 2), 3)]));
        let error = layers.resolve(None).unwrap_err();
        assert!(matches!(error, ConfigError::Unfit { origin: ConfigOrigin::Layer { position: 1 }, .. }));
    }

    #[test]
    fn debug_output_never_shows_a_value() {
        let layers = ConfigLayers::<Research>::defaults(json!({ "key": "secret" }));
        assert!(!format!("{layers:?}").contains("secret"));
    }
}
