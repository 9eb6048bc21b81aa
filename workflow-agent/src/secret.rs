//! Secrets: values that enter no log, and the text that replaces them. Streams of pieces are covered too.

use std::borrow::Cow;
use std::env::VarError;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// The shortest value that can be found without replacing ordinary text.
pub(crate) const SHORTEST: usize = 4;

/// A value that the agent keeps out of logs, displays and errors, such as a key that a tool needs.
///
/// `[secret NAME]` replaces the value in prompts of [`Agent::ask`](crate::Agent::ask), [`Agent::start`](crate::Agent::start)
/// and [`Session::say`](crate::Session::say), in steers, answers and decisions that pass through this crate's handles, in
/// replies of models, and in results and errors of tools, before anything is stored or shown. Start events and replies that
/// other front ends give to the engine as JSON are stored as they were sent. Events that a tool shows through
/// [`ToolContext::display`](crate::tool::ToolContext::display) are not searched: a tool must keep secrets out of them.
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

/// Replaces secrets in texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor {
    /// The longest value first, so that a value which contains another one is replaced as a whole.
    secrets: Arc<[Secret]>,
}

impl Redactor {
    pub(crate) fn new(mut secrets: Vec<Secret>) -> Self {
        // JSON within a text has quotes, backslashes and line breaks of a value in another form.
        let in_json: Vec<Secret> = secrets.iter().filter_map(in_json).collect();
        secrets.extend(in_json);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
        Self { secrets: secrets.into() }
    }

    /// A redactor for the secrets of all of these.
    pub(crate) fn of_all<'a>(redactors: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(redactors.into_iter().flat_map(|redactor| redactor.secrets.iter().cloned()).collect())
    }

    /// Whether there are none to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut parts = String::new();
        let mut done = 0;
        while let Some((at, secret)) = self.first(&text[done..]) {
            parts.push_str(&text[done..done + at]);
            parts.push_str("[secret ");
            parts.push_str(&secret.name);
            parts.push(']');
            done += at + secret.value.len();
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        parts.push_str(&text[done..]);
        Cow::Owned(parts)
    }

    /// The first secret in a text; of two at one place the longer one.
    fn first(&self, text: &str) -> Option<(usize, &Secret)> {
        let found = self.secrets.iter().filter_map(|secret| Some((text.find(&*secret.value)?, secret)));
        found.min_by_key(|(at, secret)| (*at, std::cmp::Reverse(secret.value.len())))
    }

    /// The text without secrets, shared if it has none.
    pub(crate) fn shared(&self, text: &Arc<str>) -> Arc<str> {
        match self.text(text) {
            Cow::Borrowed(_) => Arc::clone(text),
            Cow::Owned(text) => text.into(),
        }
    }

    /// Removes secrets from all texts of a value, keys included.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            _ if self.secrets.is_empty() => {}
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(key, mut item)| {
                    self.value(&mut item);
                    (self.text(&key).into_owned(), item)
                }));
            }
            Value::Number(number) => {
                if let Cow::Owned(redacted) = self.text(&number.to_string()) {
                    *value = Value::String(redacted);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Begins a stream of pieces.
    pub(crate) fn stream(&self) -> StreamRedactor {
        StreamRedactor { redactor: self.clone(), held: String::new() }
    }
}

/// The value as JSON has it between quotes, if that is another text.
fn in_json(secret: &Secret) -> Option<Secret> {
    let quoted = Value::String(secret.value.to_string()).to_string();
    let value = &quoted[1..quoted.len() - 1];
    (value != &*secret.value).then(|| Secret::new(Arc::clone(&secret.name), value))
}

/// Replaces secrets in a text that comes in pieces, and holds back an end that may be the beginning of one.
#[derive(Debug)]
pub(crate) struct StreamRedactor {
    redactor: Redactor,
    held: String,
}

impl StreamRedactor {
    /// Takes a piece, and returns the text that is safe to show.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.redactor.secrets.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        // Whole secrets first: an end of one is no beginning of another.
        let held = self.redactor.text(&self.held).into_owned();
        let safe = held.len() - self.open_end(&held);
        held[safe..].clone_into(&mut self.held);
        held[..safe].to_owned()
    }

    /// The rest of the stream.
    pub(crate) fn finish(self) -> String {
        self.held
    }

    /// The length of the longest end of `text` with which a secret begins.
    fn open_end(&self, text: &str) -> usize {
        let longest = |secret: &Secret| {
            let ends = secret.value.char_indices().map(|(at, _)| at).skip(1);
            ends.filter(|end| text.ends_with(&secret.value[..*end])).max().unwrap_or(0)
        };
        self.redactor.secrets.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Redactor, Secret};

    fn redactor() -> Redactor {
        Redactor::new(vec![
            Secret::new("a", "abab"),
            Secret::new("long", "xababab"),
            Secret::new("u", "größer"),
        ])
    }

    proptest! {
        /// A18
        #[test]
        fn no_secret_passes_whatever_the_pieces(text in "[abxgröße ]{0,40}", cuts in proptest::collection::vec(0_usize..40, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| text.is_char_boundary(*at)).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let (mut stream, mut shown, mut from) = (redactor().stream(), String::new(), 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                shown += &stream.push(&text[from..cut]);
                from = cut;
            }
            shown += &stream.finish();
            for value in ["abab", "xababab", "größer"] {
                prop_assert!(!shown.contains(value), "{}", shown);
            }
        }
    }

    /// A18
    #[test]
    fn a_value_is_replaced_by_its_name_also_in_json() {
        assert_eq!(redactor().text("my xababab and abab"), "my [secret long] and [secret a]");
        let mut value = json!({"abab": ["größer", 1]});
        redactor().value(&mut value);
        assert_eq!(value, json!({"[secret a]": ["[secret u]", 1]}));
    }

    /// A18
    #[test]
    fn a_value_is_found_as_a_number_and_in_json_within_a_text() {
        let redactor =
            Redactor::new(vec![Secret::new("pin", "4711"), Secret::new("pem", "BEGIN \"k\"\nEND")]);
        let mut value = json!({"pin": 47_110, "free": 12});
        redactor.value(&mut value);
        assert_eq!(value, json!({"pin": "[secret pin]0", "free": 12}));
        let text = json!({"key": "BEGIN \"k\"\nEND"}).to_string();
        assert_eq!(redactor.text(&text), r#"{"key":"[secret pem]"}"#);
    }
}
