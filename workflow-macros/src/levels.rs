//! The lint levels that a user sets on an item, for the code generated beside it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Attribute;

/// `#[allow(…)]`, also for `#[expect(…)]`: an expected lint may occur in only one of the two items.
pub(crate) fn level(attribute: &Attribute) -> Option<TokenStream> {
    let list = attribute.meta.require_list().ok()?;
    let silences = list.path.is_ident("allow") || list.path.is_ident("expect");
    let tokens = &list.tokens;
    silences.then(|| quote!(#[allow(#tokens)]))
}
