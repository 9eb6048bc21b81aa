//! `#[derive(EventSet)]`: "either of", from an enum with one event per variant.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error};

use crate::mistakes::Mistakes;

mod definition;
mod generate;

/// Parses, validates and generates. After a mistake, still emits the set of the variants it understood, so
/// that uses of the set are not reported too.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return Error::into_compile_error(error),
    };
    let mut mistakes = Mistakes::default();
    let definition = definition::parse(&item, &mut mistakes);
    let implementation = generate::event_set(&definition);
    quote!(#implementation #mistakes)
}
