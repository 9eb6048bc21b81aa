//! Removal of keys from texts that become errors. The secrets of an agent are another matter: they are in `tool`.

use std::fmt;

/// Stands for a removed key.
const MARK: &str = "[redacted]";

/// How many first characters of a long key are enough to recognise a part of it.
const TELLING: usize = 8;

/// Keys that must not appear in errors.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| !secret.is_empty()).collect();
        // A key that contains another one goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Removes the keys and their recognisable parts. Of a text that `was_cut`, the end may be the beginning of a key.
    pub(crate) fn redact(&self, text: &str, was_cut: bool) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = without_parts(&text.replace(secret, MARK), secret);
            if was_cut {
                let kept = text.len() - cut_part(&text, secret);
                if kept < text.len() {
                    text.truncate(kept);
                    text.push_str(MARK);
                }
            }
        }
        text
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// Removes words that begin like the key. Providers repeat a wrong key with its middle left out.
fn without_parts(text: &str, secret: &str) -> String {
    let Some((end, _)) = secret.char_indices().nth(TELLING).filter(|_| secret.len() >= 2 * TELLING) else {
        return text.to_owned();
    };
    let mut parts = text.split(&secret[..end]);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | ')' | '<' | '>');
        clean.push_str(MARK);
        clean.push_str(&part[part.find(is_end).unwrap_or(part.len())..]);
    }
    clean
}

/// The length of the longest end of `text` that is a beginning of `secret`.
fn cut_part(text: &str, secret: &str) -> usize {
    let starts = secret.char_indices().map(|(at, _)| at).skip(1).chain([secret.len()]);
    starts.filter(|end| text.ends_with(&secret[..*end])).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Secrets;

    /// A80
    #[test]
    fn no_cut_leaves_a_part_of_a_key() {
        let key = "sk-0123456789abcdef";
        let secrets = Secrets::new([key.to_owned()]);
        let text = format!("wrong key {key}, or sk-01234****cdef. Or {key}");
        for end in 0..=text.len() {
            let clean = secrets.redact(&text[..end], end < text.len());
            assert!(!clean.contains("sk-0"), "{clean}");
        }
        let all = secrets.redact(&text, false);
        assert_eq!(all, "wrong key [redacted], or [redacted] Or [redacted]");
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }

    /// A80
    #[test]
    fn short_keys_go_too_and_other_text_stays() {
        let secrets = Secrets::new(["abc".to_owned(), String::new()]);
        assert_eq!(secrets.redact("abcd ab", false), "[redacted]d ab");
        assert_eq!(secrets.redact("größe ab", true), "größe [redacted]");
    }
}
