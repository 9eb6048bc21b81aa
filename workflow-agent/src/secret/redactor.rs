//! The text that replaces secrets, in whole texts and in streams of pieces.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::Secret;
use super::spelling::{self, Found};

/// Replaces secrets in texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor {
    secrets: Arc<[Secret]>,
    /// The values, and their spellings in Base64, each with the name of its secret.
    values: Arc<[(Arc<str>, Arc<str>)]>,
    /// Whether a spelling of a value may begin with a byte.
    begins: Arc<[bool]>,
}

impl Redactor {
    pub(crate) fn new(secrets: Vec<Secret>) -> Self {
        let mut values: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let mut begins = vec![false; 256];
        for secret in secrets.iter().filter(|secret| !secret.value.is_empty()) {
            let spelled = spelling::base64(&secret.value).into_iter().map(Arc::from);
            for value in [Arc::clone(&secret.value)].into_iter().chain(spelled) {
                for byte in value.chars().next().into_iter().flat_map(spelling::begins) {
                    begins[usize::from(byte)] = true;
                }
                values.push((Arc::clone(&secret.name), value));
            }
        }
        Self { secrets: secrets.into(), values: values.into(), begins: begins.into() }
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
        self.scan(text, true).0
    }

    /// The text without secrets, up to the place where one may begin that the end of the text cuts. At the end of everything
    /// none is cut.
    fn scan<'a>(&self, text: &'a str, is_end: bool) -> (Cow<'a, str>, usize) {
        let (mut clean, mut done, mut from) = (String::new(), 0, 0);
        let mut end = text.len();
        while let Some(at) = self.next(text, from) {
            match self.at(text, at, is_end) {
                Match::No => from = at + 1,
                Match::Begun => {
                    end = at;
                    break;
                }
                Match::Whole(name, behind) => {
                    clean.push_str(&text[done..at]);
                    clean.push_str("[secret ");
                    clean.push_str(name);
                    clean.push(']');
                    (done, from) = (behind, behind);
                }
            }
        }
        if done == 0 {
            return (Cow::Borrowed(&text[..end]), end);
        }
        clean.push_str(&text[done..end]);
        (Cow::Owned(clean), end)
    }

    /// The next place where a secret may begin.
    fn next(&self, text: &str, from: usize) -> Option<usize> {
        if self.values.is_empty() {
            return None;
        }
        let rest = text.as_bytes().get(from..)?;
        rest.iter().position(|byte| self.begins[usize::from(*byte)]).map(|at| from + at)
    }

    /// The secret at a place; of two the longer one.
    fn at(&self, text: &str, at: usize, is_end: bool) -> Match<'_> {
        let mut found = Match::No;
        for (name, value) in &*self.values {
            match (spelling::at(text, at, value), &found) {
                (Found::Begun | Found::Whole { is_open: true, .. }, _) if !is_end => return Match::Begun,
                (Found::Whole { end, .. }, Match::Whole(_, before)) if *before >= end => {}
                (Found::Whole { end, .. }, _) => found = Match::Whole(name, end),
                _ => {}
            }
        }
        found
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
            _ if self.is_empty() => {}
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

/// The secret at a place of a text.
enum Match<'a> {
    No,
    /// The text ends before the secret does.
    Begun,
    /// Its name and its end.
    Whole(&'a str, usize),
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
        if self.redactor.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let (safe, end) = self.redactor.scan(&self.held, false);
        let safe = safe.into_owned();
        self.held.drain(..end);
        safe
    }

    /// The rest of the stream.
    pub(crate) fn finish(self) -> String {
        self.redactor.text(&self.held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::format_collect, reason = "values are short")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Secret;
    use super::Redactor;

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

    /// The value in random spellings of its characters.
    fn spelled(value: &str, styles: &[u8]) -> String {
        let styles = styles.iter().copied().chain(std::iter::repeat(0));
        let one = |(character, style): (char, u8)| match style {
            1 => character.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
            2 => character.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
            3 => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            4 => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
            5 if character == '/' => "\\/".to_owned(),
            6 => serde_json::to_string(&character.to_string()).unwrap().trim_matches('"').to_owned(),
            _ => character.to_string(),
        };
        value.chars().zip(styles).map(one).collect()
    }

    proptest! {
        /// A18
        #[test]
        fn a_value_is_found_in_every_spelling_and_in_pieces(
            value in "[a/ä🔑\n\\\\=+ -]{4,12}",
            styles in proptest::collection::vec(0_u8..7, 12),
            before in "[a-c %\\\\u]{0,6}",
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let redactor = Redactor::new(vec![Secret::new("key", &*value)]);
            let text = format!("{before}<{}> after", spelled(&value, &styles));
            let clean = redactor.text(&text).into_owned();
            prop_assert!(clean.contains("<[secret key]>"), "{} in {}", clean, text);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.retain(|cut| text.is_char_boundary(*cut));
            cuts.sort_unstable();
            let (mut stream, mut shown, mut from) = (redactor.stream(), String::new(), 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                shown += &stream.push(&text[from..cut]);
                from = cut;
            }
            shown += &stream.finish();
            prop_assert_eq!(shown, clean);
        }
    }

    /// A18
    #[test]
    fn a_value_is_found_in_base64_at_any_place() {
        let redactor = Redactor::new(vec![Secret::new("key", "sk-4711/secret?")]);
        // `user:` and the like before it, in both alphabets.
        for text in [
            "c2stNDcxMS9zZWNyZXQ/",
            "OnNrLTQ3MTEvc2VjcmV0Pw==",
            "dTpzay00NzExL3NlY3JldD8=",
            "c2stNDcxMS9zZWNyZXQ_",
        ] {
            let clean = redactor.text(text).into_owned();
            assert!(clean.contains("[secret key]") && clean.len() <= "[secret key]".len() + 6, "{clean}");
        }
        assert_eq!(redactor.text("c2VjcmV0IG9mIG90aGVycw=="), "c2VjcmV0IG9mIG90aGVycw==");
    }

    /// A18
    #[test]
    fn json_within_json_hides_no_value() {
        let redactor = Redactor::new(vec![Secret::new("pem", "BEGIN \"k\"\nEND/")]);
        let mut text = "BEGIN \"k\"\nEND/".to_owned();
        for _ in 0..3 {
            text = json!({ "key": text }).to_string();
            assert!(redactor.text(&text).contains("[secret pem]"), "{text}");
        }
    }
}
