//! Texts in quotes, with the escapes of Python and of JSON. It finds where a text ends and what it says.

use super::fault::BadExpression;

/// The text whose opening quote is at `at`, and the offset behind its closing quote.
pub(super) fn text(source: &str, at: usize) -> Result<(String, usize), BadExpression> {
    let quote = source[at..].chars().next().unwrap_or('"');
    let mut reader = Reader { source, at: at + 1 };
    let mut text = String::new();
    loop {
        let begin = reader.at;
        match reader.next() {
            Some(c) if c == quote => return Ok((text, reader.at)),
            Some('\\') => reader.escape(begin, &mut text)?,
            Some('\n') => {
                let message = "a text ends at the end of its line";
                return Err(BadExpression::new(begin, message).remedy("Write a line break as `\\n`"));
            }
            Some(c) => text.push(c),
            None => {
                let message = format!("the text that begins here has no closing {quote}");
                return Err(BadExpression::new(at, message).remedy(format!("Add {quote} at its end")));
            }
        }
    }
}

struct Reader<'s> {
    source: &'s str,
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.source[self.at..].chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads what follows the backslash at `begin`. As in Python, an unknown escape is the two characters themselves, so
    /// `'\d+'` is a regular expression.
    fn escape(&mut self, begin: usize, text: &mut String) -> Result<(), BadExpression> {
        match self.next() {
            Some(c @ ('\\' | '\'' | '"' | '/')) => text.push(c),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('a') => text.push('\u{7}'),
            Some('v') => text.push('\u{b}'),
            Some('x') => text.push(self.character(begin, 2)?),
            Some('u') => text.push(self.unit(begin)?),
            Some('U') => text.push(self.character(begin, 8)?),
            Some(first @ '0'..='7') => text.push(self.octal(begin, first)?),
            // A line may end behind a backslash. At the end, the caller finds that the text has none.
            Some('\n') | None => {}
            Some(other) => text.extend(['\\', other]),
        }
        Ok(())
    }

    fn hexadecimal(&mut self, begin: usize, digits: usize) -> Result<u32, BadExpression> {
        let hexadecimal = self.source.get(self.at..self.at + digits);
        let hexadecimal = hexadecimal.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = hexadecimal.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += if code.is_some() { digits } else { 0 };
        code.ok_or_else(|| {
            BadExpression::new(begin, format!("an escape lacks its {digits} hexadecimal digits"))
                .remedy("Write two for `\\x`, four for `\\u`, eight for `\\U`")
        })
    }

    fn character(&mut self, begin: usize, digits: usize) -> Result<char, BadExpression> {
        let code = self.hexadecimal(begin, digits)?;
        char::from_u32(code).ok_or_else(|| no_character(begin, code))
    }

    /// Up to three digits, as in Python.
    fn octal(&mut self, begin: usize, first: char) -> Result<char, BadExpression> {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.source[self.at..].chars().next().and_then(|c| c.to_digit(8)) else {
                break;
            };
            code = code * 8 + digit;
            self.at += 1;
        }
        char::from_u32(code).ok_or_else(|| no_character(begin, code))
    }

    /// A `\u`, or two of them that are one character, as in JSON.
    fn unit(&mut self, begin: usize) -> Result<char, BadExpression> {
        let code = self.hexadecimal(begin, 4)?;
        if !(0xD800..0xDC00).contains(&code) || !self.source[self.at..].starts_with("\\u") {
            return char::from_u32(code).ok_or_else(|| no_character(begin, code));
        }
        self.at += 2;
        let low = self.hexadecimal(begin, 4)?;
        let pair = u16::try_from(code).ok().zip(u16::try_from(low).ok());
        let pair = pair.and_then(|(high, low)| char::decode_utf16([high, low]).next()?.ok());
        pair.ok_or_else(|| no_character(begin, code))
    }
}

fn no_character(begin: usize, code: u32) -> BadExpression {
    BadExpression::new(begin, format!("the escape names U+{code:04X}, which is no character"))
}
