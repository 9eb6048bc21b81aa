//! Reads the arguments of `#[tool(…)]`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::ParseStream;
use syn::{Error, LitStr, Path, Result, Token};

use crate::keys::{self, Keys};
use crate::krate::Krate;
use crate::mistakes::Mistakes;
use crate::near::near;

const KEYS: &[&str] = &["read_only", "idempotent", "independent", "approval", "timeout", "name", "crate"];

/// The most characters of a name.
const LONGEST_NAME: usize = 64;

/// The calls that need approval.
pub(crate) enum Approval {
    Never,
    /// Those of tools that act. The text stands for its place.
    Acts(LitStr),
    Always,
    /// Those for whose arguments a function returns `true`.
    When(Path),
}

/// The values of the attribute.
#[derive(Default)]
pub(crate) struct ToolAttribute {
    pub(crate) name: Option<LitStr>,
    /// The path of the library, with the key for its place.
    pub(crate) krate: Option<(Ident, Krate)>,
    read_only: bool,
    idempotent: bool,
    independent: bool,
    approval: Option<Approval>,
    /// In milliseconds.
    timeout: Option<u64>,
}

/// Reads the list of the attribute.
pub(crate) fn parse(list: TokenStream, mistakes: &mut Mistakes) -> ToolAttribute {
    let mut values = ToolAttribute::default();
    Keys::new(KEYS).read(list, mistakes, |key, input| values.set(key, input));
    values.validate(mistakes);
    values
}

/// Reads the attribute on a method.
pub(crate) fn parse_attribute(attribute: &syn::Attribute, mistakes: &mut Mistakes) -> ToolAttribute {
    let mut values = ToolAttribute::default();
    Keys::new(KEYS).read_attribute(attribute, mistakes, |key, input| values.set(key, input));
    values.validate(mistakes);
    if let Some((key, _)) = &values.krate {
        mistakes.at(key, "`crate` is given once for the whole block: write `#[tools(crate = some::path)]`");
    }
    values
}

impl ToolAttribute {
    fn set(&mut self, key: &Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "read_only" => self.read_only = true,
            "idempotent" => self.idempotent = true,
            "independent" => self.independent = true,
            "approval" => self.approval = Some(approval(key, input)?),
            "timeout" => self.timeout = Some(keys::time(key, "\"30s\"", input)?),
            "name" => self.name = Some(name(key, input)?),
            _ => self.krate = Some((key.clone(), Krate::parse_value(key, input)?)),
        }
        Ok(())
    }

    fn validate(&self, mistakes: &mut Mistakes) {
        if let (true, Some(Approval::Acts(text))) = (self.read_only, &self.approval) {
            let message = "a read-only tool never acts, so nobody would be asked: write `\"always\"`, or leave `approval` out";
            mistakes.at(text, message);
        }
    }

    /// The method calls that add the values to a specification.
    pub(crate) fn rules(&self, krate: &Krate) -> TokenStream {
        let read_only = self.read_only.then(|| quote!(.read_only()));
        let idempotent = self.idempotent.then(|| quote!(.idempotent()));
        let independent = self.independent.then(|| quote!(.independent()));
        let approval = self.approval.as_ref().map(|approval| {
            let approval = match approval {
                Approval::Never => quote!(#krate::Approval::Never),
                Approval::Acts(_) => quote!(#krate::Approval::Acts),
                Approval::Always => quote!(#krate::Approval::Always),
                Approval::When(path) => quote!(#krate::Approval::when(#path)),
            };
            quote!(.approval(#approval))
        });
        let timeout = self.timeout.map(|millis| quote!(.timeout(#krate::Duration::from_millis(#millis))));
        quote!(#read_only #idempotent #independent #approval #timeout)
    }
}

/// Reads the value of `approval`: none for always, a text, or the path of a function.
fn approval(key: &Ident, input: ParseStream) -> Result<Approval> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(Approval::Always);
    }
    keys::assign(key, "\"always\"", input)?;
    if input.peek(LitStr) {
        return choice(input.parse()?);
    }
    let wrong = keys::wrong_value(
        input,
        "`approval` takes `\"never\"`, `\"acts\"`, `\"always\"`, or the path of a function of the arguments",
    );
    input.call(Path::parse_mod_style).map(Approval::When).map_err(|_| wrong)
}

fn choice(text: LitStr) -> Result<Approval> {
    let value = text.value();
    let message = match value.as_str() {
        "never" => return Ok(Approval::Never),
        "acts" => return Ok(Approval::Acts(text)),
        "always" => return Ok(Approval::Always),
        mistyped => {
            let meant = ["never", "acts", "always"].into_iter().find(|valid| near(valid, mistyped));
            let meant = meant.map_or_else(String::new, |meant| format!("did you mean `\"{meant}\"`? "));
            format!(
                "unknown approval `{mistyped}`: {meant}write `\"never\"`, `\"acts\"`, `\"always\"`, or the path of a function without quotes"
            )
        }
    };
    Err(Error::new(text.span(), message))
}

fn name(key: &Ident, input: ParseStream) -> Result<LitStr> {
    let text = keys::text(key, "\"get_weather\"", input)?;
    match misfit(&text.value()) {
        Some(misfit) => Err(Error::new(text.span(), misfit)),
        None => Ok(text),
    }
}

/// The reason why a name is none that every model accepts.
pub(crate) fn misfit(name: &str) -> Option<String> {
    let fits = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if name.is_empty() {
        return Some("a name cannot be empty: write `name = \"get_weather\"`".to_owned());
    }
    if let Some(other) = name.chars().find(|char| !fits(*char)) {
        return Some(format!("a tool's name has ASCII letters, digits, `_` and `-`, and no {other:?}"));
    }
    let length = name.len();
    (length > LONGEST_NAME)
        .then(|| format!("a tool's name has {LONGEST_NAME} characters at most, and this one has {length}"))
}

#[cfg(test)]
mod tests {
    use super::misfit;

    #[test]
    fn a_name_fits_if_every_model_accepts_it() {
        for fit in ["a", "get-weather_2", &"x".repeat(64)] {
            assert_eq!(misfit(fit), None);
        }
        for unfit in ["", "get weather", "größe", "a.b", &"x".repeat(65)] {
            assert!(misfit(unfit).is_some(), "{unfit}");
        }
    }
}
