//! The type of a run's result: the declared output, or the one stop event among the outputs of the steps. The
//! compiler finds that event by a fold over the types.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::definition::{Definition, Step};
use crate::krate::Krate;
use crate::span_range::SpanRange;
use crate::usable;

/// `type Output`, whose errors point at the declared type, or at the workflow's own.
pub(crate) fn output(definition: &Definition) -> TokenStream {
    let named = definition.arguments.output.as_ref();
    let output = named.map_or_else(|| found(definition), ToTokens::to_token_stream);
    quote_spanned!(named.unwrap_or(definition.self_ty()).span()=> type Output = #output;)
}

fn found(definition: &Definition) -> TokenStream {
    let krate = definition.krate();
    // That there is no stop event is found with the other rules of the graph, unless there is no one graph.
    let first = if usable::is_generic(&definition.item().generics) { "NotStop" } else { "Unclear" };
    let first = Ident::new(first, Span::call_site());
    let first = quote!(#krate::#first);
    let found = definition.steps.iter().fold(first, |found, step| {
        let place = step.method.function.output_place();
        place.associated(events(krate, step), quote!(#krate::FindStop<#found>), "Found")
    });
    SpanRange::of(definition.self_ty()).associated(found, quote!(#krate::OnlyStop), "Event")
}

fn events(krate: &Krate, step: &Step) -> TokenStream {
    let function = &step.method.function;
    if !function.clear.output {
        return quote!(#krate::Unclear);
    }
    let (output, bound) = function.ending(krate);
    function.output_place().associated(output, bound, "Events")
}
