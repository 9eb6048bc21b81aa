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
    "limit",
    "limit_key",
    "key",
    "on_error",
    "catches",
    "on_end",
    "spawn",
    "reruns",
    "loops",
    "name",
];

/// The keys that mean nothing for a step that runs once, at the end.
const UNFIT_FOR_CLEAN_UP: &[&str] = &["max_executions", "concurrency", "on_error", "reruns", "loops"];

/// The ends that `on_end` knows, with their constants.
const ENDS: [(&str, &str); 4] =
    [("failed", "FAILED"), ("stalled", "STALLED"), ("cancelled", "CANCELLED"), ("timed_out", "TIMED_OUT")];

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
    /// The engine's limit of the step's attempts.
    pub(crate) limit: Option<LitStr>,
    /// The method that makes the key at the limit.
    pub(crate) limit_key: Option<Ident>,
    /// The method that makes the idempotency key of an execution.
    pub(crate) key: Option<Ident>,
    pub(crate) catches: Option<Catches>,
    /// The constants of the ends at which a clean-up step runs.
    pub(crate) on_end: Option<Vec<Ident>>,
    /// The keys that say how often the step runs and what its failure means, for their places.
    pub(crate) repetition: Vec<Ident>,
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
        if UNFIT_FOR_CLEAN_UP.contains(&key.to_string().as_str()) {
            self.repetition.push(key.clone());
        }
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
            "spawn" => {
                let own_task = keys::choice(key, input)?;
                self.adjust("spawn", &quote!(#own_task));
            }
            "retry" => self.retry = Some(keys::expression(key, "RetryPolicy::none()", input)?),
            "compact" => self.compact = Some(keys::method(key, "shorten", input)?),
            "limit" => self.limit = Some(keys::name(key, "\"bank\"", input)?),
            "limit_key" => self.limit_key = Some(keys::method(key, "customer", input)?),
            "key" => self.key = Some(keys::method(key, "payment", input)?),
            "on_error" => self.set_on_error(key, input)?,
            "on_end" => self.on_end = Some(ends(key, input)?),
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

/// Reads the ends of `on_end`: none for all, a text, or texts in brackets.
fn ends(key: &Ident, input: ParseStream) -> Result<Vec<Ident>> {
    if input.is_empty() || input.peek(syn::Token![,]) {
        return Ok(vec![Ident::new("ANY", key.span())]);
    }
    let texts = keys::texts(key, "\"failed\"", input)?;
    texts.iter().map(end).collect()
}

fn end(text: &LitStr) -> Result<Ident> {
    let value = text.value();
    if let Some((_, constant)) = ENDS.iter().find(|(name, _)| *name == value) {
        return Ok(Ident::new(constant, text.span()));
    }
    let message = if value == "completed" {
        "no clean-up runs when a run has completed: let a step emit the stop event after it".to_owned()
    } else {
        let names: Vec<String> = ENDS.iter().map(|(name, _)| format!("`\"{name}\"`")).collect();
        format!("unknown end `{value}`: write one of {}, or `on_end` alone for all", names.join(", "))
    };
    Err(Error::new(text.span(), message))
}

fn path(key: &Ident, input: ParseStream) -> Result<Path> {
    keys::assign(key, "ready", input)?;
    let wrong =
        keys::wrong_value(input, "`precondition` takes the path of a function: write `precondition = ready`");
    input.parse().map_err(|_| wrong)
}
