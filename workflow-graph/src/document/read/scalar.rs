//! Resolves scalars by the core schema of YAML 1.2: text, number, truth value or nothing.

use granit_parser::{ScalarStyle, Tag};
use serde_json::Number;

use super::{Code, Kind, Problems, Text};
use crate::problem::sink::At;

pub(super) struct Scalar<'a> {
    pub(super) text: &'a str,
    pub(super) style: ScalarStyle,
    pub(super) tag: Option<&'a Tag>,
    pub(super) at: At,
}

impl Scalar<'_> {
    pub(super) fn is_plain(&self) -> bool {
        self.style == ScalarStyle::Plain && self.tag.is_none()
    }

    pub(super) fn kind(&self, problems: &mut Problems, span: (u32, u32)) -> Kind {
        let text = || Kind::Text(Text { value: self.text.into(), span });
        let wanted = match self.tag {
            None if self.style == ScalarStyle::Plain => None,
            None => return text(),
            Some(tag) => match tag.core_suffix() {
                Some("str") => return text(),
                Some(wanted @ ("null" | "bool" | "int" | "float")) => Some(wanted),
                _ => {
                    check_tag(self.tag, "str", self.at, problems);
                    return text();
                }
            },
        };
        let kind = self.resolve(problems).unwrap_or_else(text);
        let fits = match (wanted, &kind) {
            (None, _)
            | (Some("null"), Kind::Null)
            | (Some("bool"), Kind::Bool(_))
            | (Some("float"), Kind::Number(_)) => true,
            (Some("int"), Kind::Number(number)) => !number.is_f64(),
            _ => false,
        };
        if !fits {
            let message =
                format!("`{}` is not what its tag `!!{}` says", self.text, wanted.unwrap_or_default());
            problems.add(Code::WrongType, self.at, message, "remove the tag, or correct the value");
        }
        kind
    }

    fn resolve(&self, problems: &mut Problems) -> Option<Kind> {
        match self.text {
            "" | "~" | "null" | "Null" | "NULL" => return Some(Kind::Null),
            "true" | "True" | "TRUE" => return Some(Kind::Bool(true)),
            "false" | "False" | "FALSE" => return Some(Kind::Bool(false)),
            _ => {}
        }
        // Everything else that is no text begins like a number.
        if !self.text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
            return None;
        }
        let number = match number(self.text) {
            Read::Text => return None,
            Read::Number(number) => return Some(Kind::Number(number)),
            Read::Outside => self.text,
        };
        let message = format!("the number `{number}` is none that JSON can hold exactly");
        problems.add(Code::TooLarge, self.at, message, "quote it, or write a smaller number or a fraction");
        Some(Kind::Null)
    }
}

enum Read {
    Number(Number),
    Text,
    /// A number, but infinite, none, or too large.
    Outside,
}

fn number(text: &str) -> Read {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Read::Outside;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            let value = u64::from_str_radix(digits, radix);
            return match value {
                _ if !is_number => Read::Text,
                Ok(value) => Read::Number(value.into()),
                Err(_) => Read::Outside,
            };
        }
    }
    if digits(unsigned) {
        let value = if is_negative {
            text.parse::<i64>().map(Number::from)
        } else {
            unsigned.parse::<u64>().map(Number::from)
        };
        return value.map_or(Read::Outside, Read::Number);
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, "")) => digits(whole),
        Some((whole, fraction)) => (whole.is_empty() || digits(whole)) && digits(fraction),
        None => digits(mantissa),
    };
    if !is_mantissa || exponent.is_some_and(|exponent| !digits(exponent)) {
        return Read::Text;
    }
    match text.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => Read::Number(number),
        None => Read::Outside,
    }
}

/// Tags of the core schema say what the notation says already. Others would ask for types that JSON lacks.
pub(super) fn check_tag(tag: Option<&Tag>, expected: &str, at: At, problems: &mut Problems) {
    let Some(tag) = tag else { return };
    if tag.core_suffix() == Some(expected) || (tag.handle().is_empty() && tag.suffix() == "!") {
        return;
    }
    let message =
        format!("the tag `{}{}` is none that the format knows", tag.original_handle(), tag.suffix());
    problems.add(Code::Syntax, at, message, "remove the tag");
}
