//! The number of a rule, and where a text has one.

use std::fmt;

/// The letters of a page's rules, one or two: `S`, `SW`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Letters(char, Option<char>);

/// The number of a rule: the letters of its page, and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    pub(crate) letters: Letters,
    pub(crate) digits: u16,
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.letters, self.digits)
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(first, second) = self;
        write!(formatter, "{first}")?;
        second.iter().try_for_each(|second| write!(formatter, "{second}"))
    }
}

impl Letters {
    /// The letters at the beginning of a text, and what follows them.
    fn at_start(text: &str) -> Option<(Self, &str)> {
        let is_letter = |letter: &char| letter.is_ascii_uppercase();
        let mut letters = text.chars();
        let first = letters.next().filter(is_letter)?;
        let second = letters.next().filter(is_letter);
        let rest = &text[1 + usize::from(second.is_some())..];
        Some((Self(first, second), rest))
    }

    /// The text without these letters at its beginning.
    pub(crate) fn strip(self, text: &str) -> &str {
        Self::at_start(text).filter(|(letters, _)| *letters == self).map_or(text, |(_, rest)| rest)
    }
}

impl Number {
    /// The number at the beginning of a text, and what follows it. One or two letters, up to three digits, and no word
    /// goes on.
    pub(crate) fn at_start(text: &str) -> Option<(Self, &str)> {
        let (letters, rest) = Letters::at_start(text)?;
        let (digits, rest) = digits(rest)?;
        Some((Self { letters, digits }, rest))
    }
}

/// One to three digits with no word behind them, and what follows.
pub(crate) fn digits(text: &str) -> Option<(u16, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let goes_on = rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    (!goes_on && digits.len() <= 3).then(|| digits.parse().ok().map(|digits| (digits, rest)))?
}
