//! The path of the library in generated code: `::workflow_core`, for tools `::workflow_agent`, or the value of
//! `crate = …`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::{LitStr, Path, Result, parse_quote};

use crate::keys;

/// `path::__private`, the one module through which generated code reaches the library.
pub(crate) struct Krate(Path);

impl Default for Krate {
    fn default() -> Self {
        Self(parse_quote!(::workflow_core))
    }
}

impl Krate {
    /// The library of agents, for tools.
    pub(crate) fn agent() -> Self {
        Self(parse_quote!(::workflow_agent))
    }

    /// The path of a crate that the library re-exports for generated code, as the derives of that crate take it.
    pub(crate) fn text(&self, reexported: &str) -> String {
        let path = &self.0;
        format!("{}::__private::{reexported}", quote!(#path)).replace(' ', "")
    }

    /// Reads the value of the key `crate`: a path, or a string with one.
    pub(crate) fn parse_value(key: &Ident, input: ParseStream) -> Result<Self> {
        keys::assign(key, "some::path", input)?;
        if input.peek(LitStr) {
            return input.parse::<LitStr>()?.parse_with(Path::parse_mod_style).map(Self);
        }
        let wrong = keys::wrong_value(input, "`crate` takes a path: write `crate = some::path`");
        Path::parse_mod_style(input).map(Self).map_err(|_| wrong)
    }
}

impl ToTokens for Krate {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let path = &self.0;
        tokens.extend(quote!(#path::__private));
    }
}
