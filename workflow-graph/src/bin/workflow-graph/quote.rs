//! Words of a shell's command line: for the commands that this one proposes.

use std::path::Path;

use crate::text::plain;

/// The word, quoted if a shell would not take it as it is.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-:@%+=,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A command that does something with a stored run.
pub(crate) fn command(
    (action, run, rest): (&str, &str, &[&str]),
    store: &Path,
    document: Option<&Path>,
    script: Option<&Path>,
) -> Vec<String> {
    let mut words: Vec<String> = ["workflow-graph", action, run].map(str::to_owned).to_vec();
    words.extend(rest.iter().map(|&word| word.to_owned()));
    let options = [("--store", Some(store)), ("--document", document), ("--script", script)];
    for (option, path) in options.into_iter().filter_map(|(option, path)| Some((option, path?))) {
        words.extend([option.to_owned(), path.display().to_string()]);
    }
    words
}

/// The words as one line, which a shell takes and a terminal can have.
pub(crate) fn line(words: &[String]) -> String {
    plain(&words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more() {
        assert_eq!(word("runs/r-1.redb"), "runs/r-1.redb");
        assert_eq!(word("{\"a\": 1}"), "'{\"a\": 1}'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
    }
}
