//! Splits a source into tokens. Words are names here: whether `in` is an operator or a key, the parser decides.

use super::SOURCE_BYTES;
use super::escape;
use super::fault::BadExpression;
use super::tree::Span;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'s> {
    /// At most 2⁶³, which only a minus before it makes an integer of 64 bits.
    Integer(u64),
    Float(f64),
    Text(String),
    Name(&'s str),
    Symbol(&'static str),
    End,
}

/// Longer symbols come before their beginnings.
const SYMBOLS: [&str; 21] = [
    "//", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "(", ")", "[", "]",
    ",", ".",
];

/// Symbols of other languages, each with advice. They are looked for before the symbols of ours.
const REFUSED: [(&str, &str); 20] = [
    ("===", "Write `==`"),
    ("!==", "Write `!=`"),
    ("<>", "Write `!=`"),
    ("**", "There are no powers; multiply, or compute it in a function"),
    ("<<", "There are no operators on bits"),
    (">>", "There are no operators on bits"),
    ("=>", "For greater or equal, write `>=`"),
    ("??", "Write `default(value, otherwise)`"),
    ("?.", "Write `.`; a key of a missing value is missing, too"),
    ("?", "Write `a if condition else b`"),
    (":", "There are no slices and no maps here; compute them in a function or a template"),
    ("{", "There are no maps here; write the map as a template, with an expression in each value"),
    ("}", "There are no maps here; write the map as a template, with an expression in each value"),
    ("^", "There are no operators on bits"),
    ("~", "There are no operators on bits"),
    ("#", "There are no comments in expressions; write it as a comment of the document"),
    ("$", "Inside an expression, write the name alone"),
    (";", "An expression is one value; remove what follows"),
    ("`", "Write texts as 'text' or \"text\""),
    ("@", "Write the name alone"),
];

pub(super) fn tokens(source: &str) -> Result<Vec<(Token<'_>, Span)>, BadExpression> {
    if source.len() > SOURCE_BYTES {
        let message =
            format!("the expression has {} bytes; at most {SOURCE_BYTES} are allowed", source.len());
        return Err(BadExpression::new(0, message).remedy("Compute parts of it in nodes of kind `value`"));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += source[at..].len() - source[at..].trim_start_matches([' ', '\t', '\r', '\n']).len();
        let (token, end) = token(source, at)?;
        let is_last = token == Token::End;
        tokens.push((token, Span { start: at, end }));
        if is_last {
            return Ok(tokens);
        }
        at = end;
    }
}

fn token(source: &str, at: usize) -> Result<(Token<'_>, usize), BadExpression> {
    let rest = &source[at..];
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok((Token::End, at)),
        (Some('\'' | '"'), _) => escape::text(source, at).map(|(text, end)| (Token::Text(text), end)),
        (Some('0'..='9'), _) | (Some('.'), Some('0'..='9')) => number(source, at),
        (Some(first), _) if first == '_' || first.is_alphabetic() => name(source, at),
        (Some(first), _) => symbol(rest, at, first),
    }
}

fn symbol(rest: &str, at: usize, first: char) -> Result<(Token<'static>, usize), BadExpression> {
    let refused = |symbol: &str| BadExpression::new(at, format!("`{symbol}` has no meaning in expressions"));
    if let Some((symbol, remedy)) = REFUSED.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        return Err(refused(symbol).remedy(*remedy));
    }
    if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        return Ok((Token::Symbol(symbol), at + symbol.len()));
    }
    Err(match first {
        '=' => refused("=").remedy("To compare, write `==`; nothing is assigned in expressions"),
        '&' => refused("&").remedy("Write `and` or `&&`"),
        '|' => refused("|").remedy("Write `or` or `||`"),
        '“' | '”' | '‘' | '’' => refused(&first.to_string()).remedy("Write plain quotes, ' or \""),
        other => {
            let shown = other.escape_debug();
            BadExpression::new(at, format!("the character `{shown}` has no meaning in expressions"))
        }
    })
}

fn name(source: &str, at: usize) -> Result<(Token<'_>, usize), BadExpression> {
    let rest = &source[at..];
    let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
    let name = &rest[..length];
    if name.starts_with("__") {
        let message = format!("`{name}` begins with `__`, and such names are refused");
        return Err(BadExpression::new(at, message)
            .remedy(format!("A key is read with quotes, as in `a[\"{name}\"]`")));
    }
    if rest[length..].starts_with(['\'', '"']) {
        let message = format!("`{name}` stands directly before a text; texts have no prefixes");
        return Err(BadExpression::new(at, message).remedy("Remove the prefix, or join texts with `+`"));
    }
    Ok((Token::Name(name), at + length))
}

fn number(source: &str, at: usize) -> Result<(Token<'_>, usize), BadExpression> {
    let rest = &source[at..];
    let digits = |from: usize| rest[from..].bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let mut end = digits(0);
    let mut is_float = false;
    if rest[end..].starts_with('.') {
        is_float = true;
        end += 1;
        end += digits(end);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        if rest[end + 1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
            is_float = true;
            end += 1 + sign;
            end += digits(end);
        }
    }
    let bad = |message: String| BadExpression::new(at, message);
    if let Some(next) = rest[end..].chars().next().filter(|c| *c == '_' || c.is_alphanumeric()) {
        let message = format!("the number `{}` is followed by `{next}`", &rest[..end]);
        return Err(
            bad(message).remedy("Write numbers in decimal, as in 12, 0.5 or 1e3, and a space after them")
        );
    }
    let written = &rest[..end];
    let bytes = written.as_bytes();
    let is_between =
        |i: usize| i > 0 && bytes[i - 1].is_ascii_digit() && bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
    if (0..end).any(|i| bytes[i] == b'_' && !is_between(i)) {
        return Err(bad(format!("in the number `{written}`, `_` may stand only between two digits")));
    }
    let plain = written.replace('_', "");
    let token = if is_float { float(&plain) } else { integer(&plain) };
    token.map(|token| (token, at + end)).map_err(bad)
}

fn float(plain: &str) -> Result<Token<'static>, String> {
    let number = plain.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(Token::Float).ok_or_else(|| format!("the number `{plain}` is beyond what a float holds"))
}

fn integer(plain: &str) -> Result<Token<'static>, String> {
    if plain.starts_with('0') && plain.bytes().any(|digit| digit != b'0') {
        return Err(format!("the number `{plain}` begins with 0; write it without"));
    }
    let number = plain.parse::<u64>().ok().filter(|number| *number <= i64::MIN.unsigned_abs());
    number.map(Token::Integer).ok_or_else(|| beyond(plain))
}

/// The message for an integer that does not fit.
pub(super) fn beyond(written: impl std::fmt::Display) -> String {
    format!("the integer {written} is beyond 64 bits; integers lie between -2⁶³ and 2⁶³-1")
}
