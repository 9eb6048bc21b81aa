//! The text of an error with those of its sources, each once.

use std::error::Error;
use std::fmt::{self, Write as _};

use super::cause::said;
use crate::panics::caught;
use crate::text::Beginning;

/// The text of an error and of its sources, outermost first: `a: b: c`.
///
/// Each level occurs once. Many errors end their own text with that of their source; this adds only what such a text
/// lacks. Use it to print an error that wraps one of this library, whose texts contain their sources. A panic of a
/// `Display` becomes text. At most 32 sources are read, so an error that is its own source ends too. A text of more than
/// 16 KiB is cut there, and ends with how many bytes were cut.
///
/// ```
/// use std::io;
/// use workflow_core::errors::chain;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("cannot read the order: {source}")]
/// struct ReadOrder { source: io::Error }
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("cannot ship")]
/// struct Ship { source: ReadOrder }
///
/// let source = ReadOrder { source: io::Error::other("the disk is full") };
/// assert_eq!(chain(&Ship { source }), "cannot ship: cannot read the order: the disk is full");
/// ```
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut levels, mut last) = (Vec::new(), Beginning::default());
    for level in sources_of(error) {
        last = Beginning::default();
        let _ = write!(last, "{}", Text(level));
        levels.push(last.take());
        // It fills the text, so nothing of its sources would be in it.
        if last.is_cut() {
            break;
        }
    }
    let mut joined = Joined::default();
    levels.into_iter().rev().for_each(|level| joined.put_before(level));
    last.end(joined.text)
}

/// The most sources that are read.
pub(super) const MOST_SOURCES: usize = 32;

/// An error and its sources, outermost first. A `source` that panics ends them.
fn sources_of<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    // An error that is its own source would never end.
    std::iter::successors(Some(error), |error| source_of(*error)).take(MOST_SOURCES + 1)
}

/// The source of an error; `None` if `source` panics.
pub(super) fn source_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    caught(|| error.source()).unwrap_or_default()
}

/// The texts of the inner levels of a chain.
#[derive(Default)]
struct Joined {
    text: String,
    /// Where each level's text ends, outermost first.
    ends: Vec<usize>,
}

impl Joined {
    /// Puts the text of the next outer level before the others, without what it repeats of them.
    fn put_before(&mut self, mut level: String) {
        if level.is_empty() {
            return;
        }
        let repeated = self.ends.iter().rev().find(|end| ends_with(&level, &self.text[..**end]));
        let repeated = repeated.copied().unwrap_or(0);
        let own = level.len();
        if repeated == 0 && !self.text.is_empty() {
            level.truncate(level.trim_end().len());
            level.push_str(": ");
        }
        let shift = level.len();
        level.push_str(&self.text[repeated..]);
        let inner = self.ends.iter().filter(|end| **end > repeated).map(|end| end - repeated + shift);
        self.ends = std::iter::once(own.min(shift)).chain(inner).collect();
        self.text = level;
    }
}

/// Whether the text, or a line of it, ends with this one as words of its own, perhaps quoted or in brackets.
fn ends_with(text: &str, end: &str) -> bool {
    let is_closing = |c: char| c.is_whitespace() || matches!(c, ')' | ']' | '.' | '`' | '\'' | '"');
    let found = text.strip_suffix(end).or_else(|| text.trim_end_matches(is_closing).strip_suffix(end));
    let found = found.or_else(|| text.split_once(&format!("{end}\n")).map(|(before, _)| before));
    found.is_some_and(|before| !before.ends_with(char::is_alphanumeric))
}

struct Text<'a>(&'a dyn Error);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, "Display", |f| fmt::Display::fmt(self.0, f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Level(&'static str, Option<Box<Level>>);

    impl fmt::Display for Level {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Level {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|source| &**source as _)
        }
    }

    fn of<const N: usize>(levels: [&'static str; N]) -> String {
        let chained = levels.into_iter().rev().fold(None, |source, text| Some(Box::new(Level(text, source))));
        chain(&*chained.expect("there is a level"))
    }

    #[test]
    fn each_level_is_there_once() {
        assert_eq!(of(["a"]), "a");
        assert_eq!(of(["a", "b", "c"]), "a: b: c");
        assert_eq!(of(["a: b", "b", "c"]), "a: b: c");
        assert_eq!(of(["a: b: c", "b: c", "c"]), "a: b: c");
        assert_eq!(of(["a: b: c", "b", "c"]), "a: b: c");
        assert_eq!(of(["a: b", "b", "c", "d"]), "a: b: c: d");
        assert_eq!(of(["a", "b: c", "c", "d"]), "a: b: c: d");
    }

    #[test]
    fn transparent_and_empty_levels_add_nothing() {
        assert_eq!(of(["a", "a", "b"]), "a: b");
        assert_eq!(of(["a", "", "b"]), "a: b");
        assert_eq!(of(["", "b"]), "b");
        assert_eq!(of([""]), "");
    }

    #[test]
    fn a_source_in_brackets_is_not_repeated_and_part_of_a_word_is_no_source() {
        assert_eq!(of(["a (b)", "b", "c"]), "a (b): c");
        assert_eq!(of(["list:\n- b\n- c", "b"]), "list:\n- b\n- c");
        assert_eq!(of(["thread", "read"]), "thread: read");
        assert_eq!(of(["thread", "read", "read"]), "thread: read");
    }

    #[test]
    fn a_line_break_at_the_end_stays_only_if_nothing_follows() {
        assert_eq!(of(["a\n"]), "a\n");
        assert_eq!(of(["a\n", "b"]), "a: b");
    }

    // S80
    #[test]
    fn a_long_text_is_cut_with_its_sources() {
        let long: &'static str = "x".repeat(10_000_000).leak();
        let outer: &'static str = format!("a: {long}").leak();
        for (levels, whole) in [
            (vec!["a", long, "b"], outer.len()),
            (vec![outer, long], outer.len()),
            (vec!["a", "b", long], outer.len() + 3),
        ] {
            let chained =
                levels.into_iter().rev().fold(None, |source, text| Some(Box::new(Level(text, source))));
            let text = chain(&*chained.unwrap());
            let (kept, note) = text.split_once(" … (").unwrap();
            let cut: usize = note.strip_suffix(" bytes cut)").unwrap().parse().unwrap();
            assert_eq!(kept.len() + cut, whole);
            assert!(text.len() <= 16 * 1024 && text.starts_with("a: "));
        }
    }

    /// An error that is its own source.
    #[derive(Debug)]
    struct Endless;

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("again")
        }
    }

    impl Error for Endless {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&Self)
        }
    }

    #[test]
    fn an_error_that_is_its_own_source_ends() {
        assert_eq!(sources_of(&Endless).count(), MOST_SOURCES + 1);
        assert_eq!(chain(&Endless), "again");
    }
}
