//! The number of a rule, and where a text has one.

use std::fmt;

/// The number of a rule: the letter of its pages, and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    pub(crate) letter: char,
    pub(crate) digits: u16,
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.letter, self.digits)
    }
}

impl Number {
    /// The number at the beginning of a text, and what follows it. A letter and up to three digits, and no word goes on.
    pub(crate) fn at_start(text: &str) -> Option<(Self, &str)> {
        let letter = text.chars().next().filter(char::is_ascii_uppercase)?;
        let (digits, rest) = digits(&text[1..])?;
        Some((Self { letter, digits }, rest))
    }
}

/// One to three digits with no word behind them, and what follows.
pub(crate) fn digits(text: &str) -> Option<(u16, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let goes_on = rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    (!goes_on && digits.len() <= 3).then(|| digits.parse().ok().map(|digits| (digits, rest)))?
}
