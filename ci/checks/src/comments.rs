//! The comments of a Rust source, line by line. Only as much of the language is read as tells comments from the rest.

/// One line of a comment, without its slashes and stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// Whom a comment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `//` and `/* */`.
    Plain,
    /// `///` and `/** */`.
    Item,
    /// `//!` and `/*! */`.
    Module,
}

/// All comments of a source, in order.
pub(crate) fn comments(source: &str) -> Vec<Comment> {
    let mut reader = Reader { rest: source, line: 1, comments: Vec::new() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.comments
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    comments: Vec<Comment>,
}

impl Reader<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.line_comment(&rest[..end]);
            self.skip(end);
        } else if rest.starts_with("/*") {
            let end = block_end(rest);
            self.block_comment(&rest[..end]);
            self.skip(end);
        } else if let Some(end) = raw_string_end(rest) {
            self.skip(end);
        } else if let Some(text) = rest.strip_prefix('"') {
            self.skip(1 + quoted_end(text, '"'));
        } else if rest.starts_with('\'') {
            self.skip(char_end(rest));
        } else {
            self.skip(word_end(rest));
        }
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn line_comment(&mut self, comment: &str) {
        let (kind, text) = match comment.strip_prefix("///") {
            Some(text) if !text.starts_with('/') => (Kind::Item, text),
            _ => match comment.strip_prefix("//!") {
                Some(text) => (Kind::Module, text),
                None => (Kind::Plain, comment.trim_start_matches('/')),
            },
        };
        self.push(self.line, kind, text);
    }

    fn block_comment(&mut self, comment: &str) {
        let text = comment.trim_start_matches("/*").trim_end_matches("*/");
        let (kind, text) = match (comment.starts_with("/**"), text.strip_prefix('!')) {
            (_, Some(text)) => (Kind::Module, text),
            (true, None) => (Kind::Item, text),
            (false, None) => (Kind::Plain, text),
        };
        for (offset, line) in text.lines().enumerate() {
            self.push(self.line + offset, kind, line.trim_start().trim_start_matches('*'));
        }
    }

    fn push(&mut self, line: usize, kind: Kind, text: &str) {
        let text = text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned();
        self.comments.push(Comment { line, kind, text });
    }
}

/// Block comments nest.
fn block_end(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < source.len() {
        if source[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if source[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += source[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    source.len()
}

/// Where a raw string ends that begins here: `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`.
fn raw_string_end(source: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        source.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('"') || rest.starts_with('#'))
    })?;
    let after = &source[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let text = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text.find(&close).map_or(text.len(), |end| end + close.len());
    Some(source.len() - text.len() + end)
}

/// Where a text with escapes ends, its closing quote included.
fn quoted_end(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// A quote begins a character, or a lifetime, which has no second quote.
fn char_end(source: &str) -> usize {
    let mut letters = source[1..].chars();
    match (letters.next(), letters.next()) {
        (Some('\\'), _) | (_, Some('\'')) => 1 + quoted_end(&source[1..], '\''),
        _ => 1,
    }
}

/// A whole identifier or number, so that the `r` at the end of `for` begins no string; or one other character.
fn word_end(source: &str) -> usize {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    match source.find(|letter| !is_word(letter)) {
        Some(0) => source.chars().next().map_or(1, char::len_utf8),
        Some(end) => end,
        None => source.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Comment, Kind, comments};

    fn lines(source: &str) -> Vec<(usize, Kind, String)> {
        comments(source).into_iter().map(|Comment { line, kind, text }| (line, kind, text)).collect()
    }

    #[test]
    fn each_line_of_a_comment_has_its_place_and_its_kind() {
        let found = lines("//! Head.\n/// Item.\nfn f() {} // Plain.\n/* One.\n * Two. */");
        let expected = [
            (1, Kind::Module, "Head."),
            (2, Kind::Item, "Item."),
            (3, Kind::Plain, "Plain."),
            (4, Kind::Plain, "One."),
            (5, Kind::Plain, "Two."),
        ];
        assert_eq!(found, expected.map(|(line, kind, text)| (line, kind, text.to_owned())));
    }

    #[test]
    fn slashes_in_texts_and_characters_are_no_comments() {
        assert_eq!(lines(r##"let a = "// no \" // no"; let b = r#"// "no"#; let c = '"'; // yes"##).len(), 1);
        assert_eq!(lines("fn f<'a>(a: &'a str) -> char { '\\'' } // yes").len(), 1);
        assert_eq!(lines("let r#type = br\"// no\"; for\"// no\" // yes").len(), 1);
    }

    #[test]
    fn comments_in_comments_end_with_the_outer_one() {
        assert_eq!(lines("/* a /* b */ c */ // d").len(), 2);
    }
}
