//! Errors of configurations, and the origins of their layers.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::error::{UnfitValue, at, chain};
use crate::json::fit;

/// The origin of a configuration layer.
///
/// ```
/// use workflow_core::ConfigOrigin;
/// assert_eq!(ConfigOrigin::Environment { prefix: "RESEARCH".into() }.to_string(), "the environment (`RESEARCH_…`)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigOrigin {
    /// The defaults written in the program.
    Defaults,
    /// A value given in the program.
    Layer {
        /// The layer's number, from 1.
        position: usize,
    },
    /// A JSON file.
    File {
        /// The path, as the program gave it.
        path: PathBuf,
    },
    /// A source that is asked for each run, see [`ConfigLayers::source`](crate::ConfigLayers::source).
    Source,
    /// Environment variables.
    Environment {
        /// The prefix of their names.
        prefix: String,
    },
    /// The value for one run.
    Run,
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("the defaults"),
            Self::Layer { position } => write!(f, "layer {position}"),
            Self::File { path } => write!(f, "the file `{}`", path.display()),
            Self::Environment { prefix } => write!(f, "the environment (`{prefix}_…`)"),
            Self::Source => f.write_str("a source"),
            Self::Run => f.write_str("the run's own value"),
        }
    }
}

/// A configuration that cannot be resolved.
///
/// ```
/// use workflow_core::errors::ConfigError;
///
/// fn is_the_operators_to_fix(error: &ConfigError) -> bool {
///     matches!(error, ConfigError::Unreadable { .. } | ConfigError::NotJson { .. })
/// }
/// # let error = ConfigError::NotUnicode { variable: "APP_X".into() };
/// # assert!(!is_the_operators_to_fix(&error));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file layer could not be read.
    #[error("cannot read the config file `{}`", path.display())]
    Unreadable {
        /// The path, as the program gave it.
        path: PathBuf,
        /// The error of the file system.
        source: Arc<std::io::Error>,
    },
    /// A file layer is not JSON.
    #[error("the config file `{}` is not JSON", path.display())]
    NotJson {
        /// The path, as the program gave it.
        path: PathBuf,
        /// The place where the text stops being JSON.
        source: Arc<serde_json::Error>,
    },
    /// A layer given as a value has no JSON that could be read back.
    #[error("the config value of {origin} cannot be written as JSON: {}{problem}", at(path))]
    Unfit {
        /// The layer.
        origin: ConfigOrigin,
        /// Where in the layer, as in `tools[2].price`; empty for the whole.
        path: String,
        /// The problem at that place.
        problem: UnfitValue,
    },
    /// An environment variable has the prefix, but its name contains no key.
    #[error("the environment variable `{variable}` names no config key: a part of its name is empty")]
    Unnamed {
        /// The full name of the variable.
        variable: String,
    },
    /// The value of an environment variable is not Unicode.
    #[error("the environment variable `{variable}` is not Unicode")]
    NotUnicode {
        /// The full name of the variable.
        variable: String,
    },
    /// A source could not answer.
    #[error("a source of the configuration is unavailable: {}", chain(&**source))]
    Unavailable {
        /// Its error.
        r#source: Arc<dyn Error + Send + Sync>,
    },
    /// The merged layers are no value of the configuration type.
    #[error("`{path}` is not valid in the config `{type_name}`{}: {source}", given_by(origin.as_ref()))]
    Invalid {
        /// The configuration type.
        type_name: &'static str,
        /// The dotted path of the bad value: `store.path`, `tools[2].name`. A single dot is the whole.
        path: String,
        /// The layer that supplied the value, if exactly one did.
        origin: Option<ConfigOrigin>,
        /// The problem of the value.
        r#source: Arc<serde_json::Error>,
    },
}

impl ConfigError {
    /// The error of a [`ConfigSource`](crate::ConfigSource) that cannot answer now.
    ///
    /// ```
    /// use workflow_core::errors::ConfigError;
    ///
    /// let error = ConfigError::unavailable("no route to the vault");
    /// assert_eq!(error.to_string(), "a source of the configuration is unavailable: no route to the vault");
    /// ```
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable { source: Arc::from(source.into()) }
    }

    /// The JSON of a layer that is a value. All of it can be read back, from a journal too.
    pub(crate) fn json_of(value: &impl Serialize, origin: &ConfigOrigin) -> Result<Value, Self> {
        fit(value, usize::MAX).map_err(|misfit| {
            let (path, problem) = misfit.into_unfit();
            Self::Unfit { origin: origin.clone(), path, problem }
        })
    }
}

fn given_by(origin: Option<&ConfigOrigin>) -> String {
    origin.map(|origin| format!(", given by {origin}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_path_type_layer_and_problem() {
        let source = serde_json::from_str::<u8>("true").unwrap_err();
        let error = ConfigError::Invalid {
            type_name: "app::Research",
            path: "store.path".into(),
            origin: Some(ConfigOrigin::Run),
            source: Arc::new(source),
        };
        let text = "`store.path` is not valid in the config `app::Research`, given by the run's own value: ";
        assert!(error.to_string().starts_with(&format!("{text}invalid type: boolean")));
        assert!(error.source().is_none(), "the text has it");
    }
}
