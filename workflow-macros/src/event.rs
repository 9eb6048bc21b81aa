//! `#[derive(Event)]`: name, roles and the marker traits that follow from the roles.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error};

use crate::mistakes::Mistakes;

mod definition;
mod generate;
mod roles;

pub(crate) use generate::input as by_value_input;

/// Parse, validate, generate. With mistakes, what could be understood is still emitted, so that the uses of
/// the event are not reported as well.
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
