//! Mistakes in the description of a provider. Errors of calls are `ModelError`.

use crate::model::ModelError;

/// Why a model of a provider cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The name has no provider, or an unknown one.
    #[error("`{name}` names no known provider: {}write `provider::model` with one of {known}", question(.meant.as_deref()))]
    UnknownProvider {
        /// The name.
        name: String,
        /// The name that was probably meant, if there is one.
        meant: Option<String>,
        /// The known providers.
        known: String,
    },
    /// The name has a provider that only the feature `genai` adds.
    #[error("`{name}` needs the feature `genai` of `workflow-agent`, which adds the provider `{provider}`")]
    NeedsGenai {
        /// The name.
        name: String,
        /// The provider.
        provider: String,
    },
    /// The name has a provider and nothing after it.
    #[error("`{name}` names no model: write its name after `::`")]
    NoModel {
        /// The name.
        name: String,
    },
    /// Every call would fail, since no silence is short enough.
    #[error("the calls of `{name}` have no time: give `idle_timeout` more than 0")]
    NoTime {
        /// Provider and model.
        name: String,
    },
    /// No key was given, and the variable has none.
    #[error("`{name}` needs a key: set the variable {variable}, or call `key` or `without_key`")]
    MissingKey {
        /// Provider and model.
        name: String,
        /// The variable that should have the key.
        variable: String,
    },
    /// A key or a header has characters that no header can carry.
    #[error("the value of the header `{header}` for `{name}` has characters that no header can carry")]
    UnusableHeader {
        /// Provider and model.
        name: String,
        /// The header.
        header: String,
    },
    /// The endpoint is no address of a server.
    #[error("the endpoint of `{name}` is unusable: {reason}")]
    UnusableEndpoint {
        /// Provider and model.
        name: String,
        /// The problem, and its remedy.
        reason: String,
    },
    /// The proxy is no address of a server.
    #[error("the proxy of `{name}` is unusable: write a URL such as `http://proxy:3128`")]
    UnusableProxy {
        /// Provider and model.
        name: String,
    },
    /// An option that the client sets itself.
    #[error("the option `{option}` of `{name}` belongs to the agent's requests: remove it")]
    ReservedOption {
        /// Provider and model.
        name: String,
        /// The option.
        option: String,
    },
    /// A setting that has no effect for this provider.
    #[error("`{setting}` has no effect for `{name}`: remove it")]
    UnsupportedSetting {
        /// Provider and model.
        name: String,
        /// The method that was called.
        setting: String,
    },
    /// The HTTP client could not be built.
    #[error("no HTTP client for `{name}`: {reason}")]
    Client {
        /// Provider and model.
        name: String,
        /// The error of its builder.
        reason: String,
    },
    /// The format of the provider cannot express the request.
    #[error(transparent)]
    Request(#[from] ModelError),
}

fn question(meant: Option<&str>) -> String {
    meant.map(|meant| format!("did you mean `{meant}`? If not, ")).unwrap_or_default()
}
