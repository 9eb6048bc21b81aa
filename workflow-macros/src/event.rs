//! `#[derive(Event)]`: name, roles, version, and the marker traits of the roles.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error};

use crate::mistakes::Mistakes;

mod definition;
mod generate;
mod roles;

pub(crate) use generate::input as by_value_input;

/// Parses, validates and generates. After a mistake, still emits what it understood, so that uses of the
/// event are not reported too.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return Error::into_compile_error(error),
    };
    let mut mistakes = Mistakes::default();
    let definition = definition::parse(&item, &mut mistakes);
    let implementation = definition::can_be_event(&item).then(|| generate::event(&definition));
    quote!(#implementation #mistakes)
}
