//! Text that is JSON already, such as that of a `RawValue`, part by part into a writer that checks. A part that would
//! lose its value is refused at its place, as one of a Rust value is.

use serde::de::IgnoredAny;
use serde::ser::Error as _;
use serde_json::{Error, Number, from_str};

use super::JsonWriter;
use crate::error::UnfitValue;

/// Writes the value of the text.
pub(super) fn write(text: &str, to: &mut JsonWriter) -> Result<(), Error> {
    // From here on the text is one value of JSON, so the reader below needs no errors of its own.
    let IgnoredAny = from_str(text)?;
    Reader { rest: text }.value(to)
}

/// Reads text that is known to be JSON.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Recursion is safe, since the writer bounds the depth.
    fn value(&mut self, to: &mut JsonWriter) -> Result<(), Error> {
        match self.next() {
            Some('{') => self.object(to.object()?),
            Some('[') => self.list(to.list(None)?),
            Some('"') => to.text(&self.string()?),
            Some('-' | '0'..='9') => {
                let number = number(self.scalar()).map_err(|problem| to.refused(problem))?;
                to.put(number.into())
            }
            _ => to.put(from_str(self.scalar())?),
        }
    }

    fn object(&mut self, to: &mut JsonWriter) -> Result<(), Error> {
        self.skip();
        while self.next() == Some('"') {
            let key = to.key_text(&self.string()?)?;
            self.next();
            self.skip();
            self.value(to.key(key))?;
            self.comma();
        }
        self.skip();
        to.close()
    }

    fn list(&mut self, to: &mut JsonWriter) -> Result<(), Error> {
        self.skip();
        while self.next().ok_or_else(|| Error::custom("the list has no end"))? != ']' {
            self.value(to)?;
            self.comma();
        }
        self.skip();
        to.close()
    }

    /// The next character that is no white space.
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    /// Skips a character of punctuation.
    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn comma(&mut self) {
        if self.next() == Some(',') {
            self.skip();
        }
    }

    /// A string with its quotes resolved.
    fn string(&mut self) -> Result<String, Error> {
        let mut escaped = false;
        let closes = |character: char| {
            let closes = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            closes
        };
        let length =
            self.rest.get(1..).and_then(|rest| rest.find(closes)).map_or(self.rest.len(), |at| at + 2);
        from_str(self.take(length))
    }

    /// A number, `true`, `false` or `null`.
    fn scalar(&mut self) -> &'t str {
        let ends = |character: char| matches!(character, ',' | ']' | '}') || character.is_ascii_whitespace();
        self.take(self.rest.find(ends).unwrap_or(self.rest.len()))
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// The number, if a reader gets the value that is written there.
fn number(text: &str) -> Result<Number, UnfitValue> {
    let number: Option<Number> = from_str(text).ok();
    if text.contains(['.', 'e', 'E']) {
        let keeps =
            |number: &Number| decimal(text).is_some_and(|value| decimal(&number.to_string()) == Some(value));
        return number.filter(keeps).ok_or(UnfitValue::Imprecise);
    }
    // `-0` is a float for `serde_json`. With `serde_json/arbitrary_precision` any integer keeps its text.
    let keeps = |number: &Number| {
        number.is_i64() || number.is_u64() || text.parse::<i64>().is_ok() || number.to_string() == text
    };
    number.filter(keeps).ok_or(UnfitValue::OutOfRange)
}

/// The value of a number's text: whether it is negative, its digits without zeros at their ends, and the power of ten
/// with which they are multiplied. `None` if that is out of range.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some((is_negative, String::new(), 0));
    }
    let shift = i64::try_from(digits.len() - significant.len()).ok()? - i64::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(shift)?;
    Some((is_negative, significant.trim_start_matches('0').to_owned(), exponent))
}
