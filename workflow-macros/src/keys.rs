//! Reads lists of `key` and `key = value`. The caller knows the keys and the meaning of their values. A
//! mistake in one entry does not hide those in later entries.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, LitBool, LitInt, LitStr, Meta, Path, Result, Token, Type};

use crate::mistakes::Mistakes;
use crate::near::near;

/// The keys that an attribute knows, and those it has so far.
pub(crate) struct Keys {
    valid: &'static [&'static str],
    seen: Vec<Ident>,
}

impl Keys {
    /// Starts without any key.
    pub(crate) fn new(valid: &'static [&'static str]) -> Self {
        Self { valid, seen: Vec::new() }
    }

    /// Reads the list of an attribute on an item.
    pub(crate) fn read_attribute(
        &mut self,
        attribute: &Attribute,
        mistakes: &mut Mistakes,
        entry: impl FnMut(&Ident, ParseStream) -> Result<()>,
    ) {
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => self.read(list.tokens.clone(), mistakes, entry),
            Meta::NameValue(meta) => mistakes.at(&meta.value, list_expected(attribute)),
        }
    }

    /// Reads a list. `entry` gets each known key and the input after it.
    pub(crate) fn read(
        &mut self,
        list: TokenStream,
        mistakes: &mut Mistakes,
        mut entry: impl FnMut(&Ident, ParseStream) -> Result<()>,
    ) {
        let parser = |input: ParseStream| {
            while !input.is_empty() {
                let read = self.read_entry(input, &mut entry);
                if mistakes.catch(read).is_none() {
                    skip_entry(input)?;
                }
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(())
        };
        let read = parser.parse2(list);
        mistakes.catch(read);
    }

    fn read_entry(
        &mut self,
        input: ParseStream,
        entry: &mut impl FnMut(&Ident, ParseStream) -> Result<()>,
    ) -> Result<()> {
        let key = input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), self.expected()))?;
        if !self.valid.iter().any(|valid| key == valid) {
            let meant = self.meant(&key);
            return Err(Error::new(key.span(), format!("unknown key `{key}`: {meant}{}", self.expected())));
        }
        if self.seen.contains(&key) {
            return Err(Error::new(key.span(), format!("`{key}` is given twice: write it once")));
        }
        self.seen.push(key.clone());
        entry(&key, input)?;
        if input.is_empty() || input.peek(Token![,]) { Ok(()) } else { Err(no_value_expected(&key, input)) }
    }

    /// The question whether a mistyped key means another one; empty where only one is valid.
    fn meant(&self, mistyped: &Ident) -> String {
        let mistyped = mistyped.to_string();
        let meant = self.valid.iter().find(|valid| near(valid, &mistyped));
        let meant = meant.filter(|_| self.valid.len() > 1);
        meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "))
    }

    fn expected(&self) -> String {
        let valid: Vec<_> = self.valid.iter().map(|key| format!("`{key}`")).collect();
        match &valid[..] {
            [only] => format!("write {only}, which is all there is"),
            all => format!("write one of {}", all.join(", ")),
        }
    }
}

fn list_expected(attribute: &Attribute) -> String {
    let name = attribute.path().segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    format!("`{name}` takes a list: write `#[{name}(…)]`")
}

fn skip_entry(input: ParseStream) -> Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

fn no_value_expected(key: &Ident, input: ParseStream) -> Error {
    if input.peek(Token![=]) || input.peek(syn::token::Paren) {
        return Error::new(key.span(), format!("`{key}` takes no value: write `{key}`"));
    }
    input.error(format!("expected `,` after `{key}`"))
}

/// Consumes the `=` before a value. `example` shows a value in messages.
pub(crate) fn assign(key: &Ident, example: &str, input: ParseStream) -> Result<()> {
    let assigned = input.parse::<Option<Token![=]>>()?.is_some();
    if assigned && !input.is_empty() && !input.peek(Token![,]) {
        return Ok(());
    }
    Err(Error::new(key.span(), format!("`{key}` needs a value: write `{key} = {example}`")))
}

/// The error for a value of the wrong kind, on the value.
pub(crate) fn wrong_value(input: ParseStream, message: impl Display) -> Error {
    input.fork().parse::<TokenTree>().map_or_else(|error| error, |value| Error::new_spanned(value, &message))
}

/// Reads a string.
pub(crate) fn text(key: &Ident, example: &str, input: ParseStream) -> Result<LitStr> {
    assign(key, example, input)?;
    if input.peek(LitStr) {
        return input.parse();
    }
    Err(wrong_value(input, format!("`{key}` takes a text: write `{key} = {example}`")))
}

/// Reads a choice: the key alone for yes, or `true` or `false`.
pub(crate) fn choice(key: &Ident, input: ParseStream) -> Result<bool> {
    let is_assigned = input.peek(Token![=]);
    if !is_assigned && !input.peek(syn::token::Paren) {
        return Ok(true);
    }
    let message = format!("`{key}` takes `true` or `false`: write `{key}`, or `{key} = false`");
    if !is_assigned {
        return Err(Error::new(key.span(), message));
    }
    assign(key, "false", input)?;
    let wrong = wrong_value(input, message);
    input.parse::<LitBool>().map(|choice| choice.value).map_err(|_| wrong)
}

/// Reads a string that can be a wire name: not empty, without whitespace and control characters.
pub(crate) fn name(key: &Ident, example: &str, input: ParseStream) -> Result<LitStr> {
    let text = text(key, example, input)?;
    let value = text.value();
    if value.is_empty() {
        return Err(Error::new(text.span(), format!("a name cannot be empty: write `{key} = {example}`")));
    }
    if value.chars().any(|char| char.is_whitespace() || char.is_control()) {
        let message =
            format!("a name has no spaces or control characters: write it like `{key} = {example}`");
        return Err(Error::new(text.span(), message));
    }
    Ok(text)
}

/// Reads a whole number from 1.
pub(crate) fn count(key: &Ident, input: ParseStream) -> Result<u32> {
    assign(key, "3", input)?;
    if !input.peek(LitInt) {
        return Err(wrong_value(input, format!("`{key}` takes a whole number: write `{key} = 3`")));
    }
    let number: LitInt = input.parse()?;
    match number.base10_parse() {
        Ok(0) => {
            Err(Error::new(number.span(), format!("`{key} = 0` would never run the step: write 1 or more")))
        }
        Ok(count) => Ok(count),
        Err(_) => Err(Error::new(number.span(), format!("`{key}` takes a whole number up to {}", u32::MAX))),
    }
}

/// Reads a version: a whole number from 1.
pub(crate) fn version(key: &Ident, input: ParseStream) -> Result<u32> {
    assign(key, "2", input)?;
    if !input.peek(LitInt) {
        return Err(wrong_value(input, format!("`{key}` takes a whole number: write `{key} = 2`")));
    }
    let number: LitInt = input.parse()?;
    number.base10_parse().ok().filter(|version| *version > 0).ok_or_else(|| {
        Error::new(number.span(), format!("`{key}` takes a whole number from 1 to {}", u32::MAX))
    })
}

/// Reads a list of names in brackets, with at least one. `example` is one of them.
pub(crate) fn names(key: &Ident, example: &str, input: ParseStream) -> Result<Vec<Ident>> {
    assign(key, &format!("[{example}]"), input)?;
    let message = format!("`{key}` takes a list of steps by their names: write `{key} = [{example}]`");
    if !input.peek(syn::token::Bracket) {
        return Err(wrong_value(input, message));
    }
    let listed;
    let bracket = syn::bracketed!(listed in input);
    let names = Punctuated::<Ident, Token![,]>::parse_terminated(&listed);
    let names = names.map_err(|error| {
        // Consumes the rest of the brackets, which would be reported as well.
        let _ = listed.parse::<TokenStream>();
        Error::new(error.span(), message)
    })?;
    if names.is_empty() {
        let message = format!(
            "`{key}` names no step: name those whose failures the step takes, or leave `{key}` out to take those of all"
        );
        return Err(Error::new(bracket.span.join(), message));
    }
    Ok(names.into_iter().collect())
}

/// Reads a string, or strings in brackets, with at least one. `example` is one of them.
pub(crate) fn texts(key: &Ident, example: &str, input: ParseStream) -> Result<Vec<LitStr>> {
    let forms = format!("`{key} = {example}`, or several in brackets");
    if !input.peek(Token![=]) {
        return Err(Error::new(key.span(), format!("`{key}` takes its value behind `=`: write {forms}")));
    }
    assign(key, example, input)?;
    if input.peek(LitStr) {
        return Ok(vec![input.parse()?]);
    }
    let message = format!("`{key}` takes a text: write {forms}");
    if !input.peek(syn::token::Bracket) {
        return Err(wrong_value(input, message));
    }
    let listed;
    let bracket = syn::bracketed!(listed in input);
    let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&listed);
    let texts = texts.map_err(|error| {
        // Consumes the rest of the brackets, which would be reported as well.
        let _ = listed.parse::<TokenStream>();
        Error::new(error.span(), &message)
    })?;
    if texts.is_empty() {
        return Err(Error::new(bracket.span.join(), message));
    }
    Ok(texts.into_iter().collect())
}

/// Reads a type.
pub(crate) fn ty(key: &Ident, example: &str, input: ParseStream) -> Result<Type> {
    assign(key, example, input)?;
    let wrong = wrong_value(input, format!("`{key}` takes a type: write `{key} = {example}`"));
    input.parse().map_err(|_| wrong)
}

/// Reads the path of a function.
pub(crate) fn path(key: &Ident, example: &str, input: ParseStream) -> Result<Path> {
    assign(key, example, input)?;
    let wrong =
        wrong_value(input, format!("`{key}` takes the path of a function: write `{key} = {example}`"));
    input.parse().map_err(|_| wrong)
}

/// Reads the name of a method.
pub(crate) fn method(key: &Ident, example: &str, input: ParseStream) -> Result<Ident> {
    assign(key, example, input)?;
    let message = format!("`{key}` takes the name of a method of this impl block: write `{key} = {example}`");
    let wrong = wrong_value(input, message);
    let method = input.parse().map_err(|_| wrong.clone())?;
    // `start.customer` is one mistake, and not a method `start` with something behind it.
    if input.is_empty() || input.peek(Token![,]) { Ok(method) } else { Err(wrong) }
}

/// Reads an expression.
pub(crate) fn expression(key: &Ident, example: &str, input: ParseStream) -> Result<Expr> {
    assign(key, example, input)?;
    input.parse()
}

/// Reads a duration as a string, a whole number from 1 with a unit. Returns milliseconds.
pub(crate) fn time(key: &Ident, example: &str, input: ParseStream) -> Result<u64> {
    let text = text(key, example, input)?;
    let value = text.value();
    let (number, unit) =
        value.split_at(value.find(|char: char| !char.is_ascii_digit()).unwrap_or(value.len()));
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis));
    time.filter(|time| *time > 0).ok_or_else(|| {
        let form = "a whole number from 1 with `ms`, `s`, `m`, `h` or `d` behind it";
        Error::new(text.span(), format!("`{key}` takes {form}: write it like `{key} = {example}`"))
    })
}
