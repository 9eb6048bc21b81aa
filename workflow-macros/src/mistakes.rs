//! The mistakes found so far. Validation goes on after each, so that all of them are reported at once.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

/// Every mistake of one macro call.
#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    /// Adds one.
    pub(crate) fn push(&mut self, mistake: Error) {
        match &mut self.0 {
            Some(earlier) => earlier.combine(mistake),
            None => self.0 = Some(mistake),
        }
    }

    /// Adds one that covers these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// The value, or one more mistake.
    pub(crate) fn catch<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|mistake| self.push(mistake)).ok()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl ToTokens for Mistakes {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.as_ref().map(Error::to_compile_error));
    }
}
