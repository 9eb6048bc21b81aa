//! Secrets: values that enter no log. The text that replaces them is made in `redactor`, and `spelling` finds them.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;

mod redactor;
mod spelling;

pub(crate) use redactor::{Redactor, StreamRedactor};

/// The shortest value that can be found without replacing ordinary text.
pub(crate) const SHORTEST: usize = 4;

/// A value that the agent keeps out of logs, displays and errors, such as a key that a tool needs.
///
/// `[secret NAME]` replaces the value in prompts of [`Agent::ask`](crate::Agent::ask), [`Agent::start`](crate::Agent::start)
/// and [`Session::say`](crate::Session::say), in steers, answers and decisions that pass through this crate's handles, in
/// replies of models, and in results and errors of tools, before anything is stored or shown. A value is found as it is, in
/// JSON (`\/`, `\u002f`), in addresses (`%2F`), in any mixture of these, and, from eight bytes on, in Base64. Start events and
/// replies that other front ends give to the engine as JSON are stored as they were sent. Events that a tool shows through
/// [`ToolContext::display`](crate::tool::ToolContext::display) are not searched: a tool must keep secrets out of them.
///
/// # Logs of other crates
/// This crate writes no secret to `tracing`, at any level. The crates below it log what they send and receive: `rmcp` the
/// messages of MCP servers, most of them at `TRACE` and `DEBUG`, and those of HTTP their own work at `TRACE`. A subscriber
/// needs a filter that keeps them out, such as
/// `trace,rmcp=off,reqwest=info,hyper=info,hyper_util=info,h2=info,rustls=info`. The default hook of panics writes the text of
/// a panic to the standard error before anybody can search it: a tool must not panic with a secret, or the program must set
/// a hook of its own.
///
/// ```
/// use workflow_agent::Secret;
///
/// let key = Secret::new("bank", "sk-4711-secret");
/// assert_eq!(format!("{key:?}"), "Secret(bank)");
/// ```
#[derive(Clone)]
pub struct Secret {
    name: Arc<str>,
    value: Arc<str>,
}

impl Secret {
    /// A secret. A value of fewer than four bytes is refused by [`AgentBuilder::build`](crate::AgentBuilder::build).
    pub fn new(name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// The value of an environment variable, under the variable's name.
    ///
    /// # Errors
    /// A [`SecretError`] that names the variable, if it is not set or is not Unicode.
    pub fn from_env(variable: &str) -> Result<Self, SecretError> {
        match std::env::var(variable) {
            Ok(value) => Ok(Self::new(variable, value)),
            Err(VarError::NotPresent) => Err(SecretError::NotSet { variable: variable.to_owned() }),
            Err(VarError::NotUnicode(_)) => Err(SecretError::NotUnicode { variable: variable.to_owned() }),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value, for the tool that needs it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// Why an environment variable gives no [`Secret`].
///
/// ```
/// use workflow_agent::Secret;
///
/// let error = Secret::from_env("NO_SUCH_KEY").unwrap_err();
/// assert_eq!(error.to_string(), "no secret: the variable `NO_SUCH_KEY` is not set");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable is not set.
    #[error("no secret: the variable `{variable}` is not set")]
    NotSet {
        /// The name of the variable.
        variable: String,
    },
    /// The value is not Unicode.
    #[error("no secret: the value of the variable `{variable}` is not Unicode")]
    NotUnicode {
        /// The name of the variable.
        variable: String,
    },
}
