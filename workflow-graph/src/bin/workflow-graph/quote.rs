//! Words of a shell's command line: for the commands that this one proposes.

/// The word, quoted if a shell would not take it as it is.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-:@%+=,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
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
