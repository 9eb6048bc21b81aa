//! Reads the arguments of `#[workflow(…)]`.

use proc_macro2::{Ident, TokenStream};
use syn::parse::ParseStream;
use syn::{LitStr, Result, Type};

use crate::keys::{self, Keys};
use crate::krate::Krate;
use crate::mistakes::Mistakes;

/// The values of the attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) output: Option<Type>,
    pub(crate) name: Option<LitStr>,
    pub(crate) krate: Krate,
    /// Whether an argument could not be read.
    pub(crate) unclear: bool,
}

/// Reads the arguments.
pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Arguments {
    let mut arguments = Arguments::default();
    Keys::new(&["output", "name", "crate"]).read(tokens, mistakes, |key, input| arguments.set(key, input));
    arguments.unclear = !mistakes.is_empty();
    arguments
}

impl Arguments {
    fn set(&mut self, key: &Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "output" => self.output = Some(keys::ty(key, "Outcome", input)?),
            "name" => self.name = Some(keys::name(key, "\"research\"", input)?),
            _ => self.krate = Krate::parse_value(key, input)?,
        }
        Ok(())
    }
}
