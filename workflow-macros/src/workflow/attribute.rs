//! Reads the arguments of `#[step(…)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse::ParseStream;
use syn::{Attribute, Error, Expr, LitStr, Path, Result};

use crate::keys::{self, Keys};
use crate::mistakes::Mistakes;

const KEYS: &[&str] = &[
    "precondition",
    "max_executions",
    "concurrency",
    "timeout",
    "retry",
    "compact",
    "at_most_once",
    "on_error",
    "catches",
    "spawn",
    "reruns",
    "loops",
    "name",
];

/// The values of the attribute.
#[derive(Default)]
pub(crate) struct StepAttribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) precondition: Option<Path>,
    /// Whether a precondition is given, but its path could not be read.
    pub(crate) precondition_unclear: bool,
    /// Whether an argument could not be read.
    pub(crate) unclear: bool,
    pub(crate) reruns: bool,
    /// The expression that makes the retry policy.
    pub(crate) retry: Option<Expr>,
    /// The method that compacts the input of the step.
    pub(crate) compact: Option<Ident>,
    pub(crate) catches: Option<Catches>,
    /// The method calls that turn the default policy into that of the step.
    pub(crate) policy: Vec<TokenStream>,
}

/// The steps whose failures a step catches.
pub(crate) struct Catches {
    /// The key itself, for its place.
    pub(crate) key: Ident,
    pub(crate) names: Vec<Ident>,
}

/// Reads the attribute.
pub(crate) fn parse(attribute: &Attribute, mistakes: &mut Mistakes) -> StepAttribute {
    let (mut values, earlier) = (StepAttribute::default(), mistakes.count());
    Keys::new(KEYS).read_attribute(attribute, mistakes, |key, input| values.set(key, input));
    values.unclear = mistakes.count() > earlier;
    values
}

impl StepAttribute {
    fn set(&mut self, key: &Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "name" => self.name = Some(keys::name(key, "\"respond\"", input)?),
            "precondition" => {
                self.precondition_unclear = true;
                self.precondition = Some(path(key, input)?);
                self.precondition_unclear = false;
            }
            "max_executions" | "concurrency" => {
                let count = keys::count(key, input)?;
                self.adjust(&key.to_string(), &quote!(#count));
            }
            "timeout" => {
                let millis = keys::time(key, "\"30s\"", input)?;
                self.adjust("timeout", &quote!(::core::time::Duration::from_millis(#millis)));
            }
            "retry" => self.retry = Some(keys::expression(key, "RetryPolicy::none()", input)?),
            "compact" => self.compact = Some(keys::method(key, "shorten", input)?),
            "on_error" => self.set_on_error(key, input)?,
            "catches" => {
                let names = keys::names(key, "retrieve", input)?;
                self.catches = Some(Catches { key: key.clone(), names });
            }
            flag => {
                self.reruns |= flag == "reruns";
                self.adjust(flag, &TokenStream::new());
            }
        }
        Ok(())
    }

    fn set_on_error(&mut self, key: &Ident, input: ParseStream) -> Result<()> {
        let reaction = keys::text(key, "\"continue\"", input)?;
        match reaction.value().as_str() {
            "continue" => self.adjust("continue_on_error", &TokenStream::new()),
            "fail" => {}
            other => {
                let message = format!("unknown reaction `{other}`: write `\"continue\"` or `\"fail\"`");
                return Err(Error::new(reaction.span(), message));
            }
        }
        Ok(())
    }

    fn adjust(&mut self, method: &str, argument: &TokenStream) {
        let method = Ident::new(method, Span::call_site());
        self.policy.push(quote!(.#method(#argument)));
    }
}

fn path(key: &Ident, input: ParseStream) -> Result<Path> {
    keys::assign(key, "ready", input)?;
    let wrong =
        keys::wrong_value(input, "`precondition` takes the path of a function: write `precondition = ready`");
    input.parse().map_err(|_| wrong)
}
