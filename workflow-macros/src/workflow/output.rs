//! What a run ends with: the type that is named, or the one stop event among the steps' outputs, which the
//! compiler finds by folding over them.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::definition::Definition;
use crate::place::Place;

/// `type Output`, reported at the type that is named, or at the workflow's own.
pub(crate) fn output(definition: &Definition) -> TokenStream {
    let named = definition.arguments.output.as_ref();
    let output = named.map_or_else(|| found(definition), |named| named.to_token_stream());
    quote_spanned!(named.unwrap_or(definition.self_ty()).span()=> type Output = #output;)
}

fn found(definition: &Definition) -> TokenStream {
    let krate = definition.krate();
    let found = definition.steps.iter().fold(quote!(#krate::NotStop), |found, step| {
        let function = &step.method.function;
        let place = function.output_place();
        let events = place.associated(function.static_output(krate), quote!(#krate::StepOutput), "Events");
        place.associated(events, quote!(#krate::FindStop<#found>), "Found")
    });
    Place::of(definition.self_ty()).associated(found, quote!(#krate::OnlyStop), "Event")
}
