//! Generates `impl Workflow` and the checks beside it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::definition::Definition;
use super::{call, graph, output, table};
use crate::levels::level;

/// Generates table, shims and checks; nothing for a block that can never be a workflow.
pub(crate) fn workflow(definition: &Definition) -> TokenStream {
    let item = definition.item();
    if item.trait_.is_some() || item.generics.lifetimes().next().is_some() {
        return TokenStream::new();
    }
    let krate = definition.krate();
    let table = table::table(definition);
    let (call, check, compact) = (call::call(definition), call::check(definition), call::compact(definition));
    let limit_key = call::limit_key(definition);
    let output = output::output(definition);
    let body = quote! {
        #output
        const TABLE: &'static #krate::TableSpec = #table;
        #call
        #check
        #limit_key
        #compact
    };
    let implementation = implement(definition, &body);
    // A block without steps has been reported.
    let checks = (!definition.steps.is_empty()).then(|| graph::checks(definition));
    quote!(#implementation #checks)
}

/// `impl Workflow` with this body, and with the lint levels of the user's block.
fn implement(definition: &Definition, body: &TokenStream) -> TokenStream {
    let (krate, self_ty) = (definition.krate(), definition.self_ty());
    let (impl_generics, _, where_clause) = definition.item().generics.split_for_impl();
    let levels = definition.item().attrs.iter().filter_map(level);
    quote! {
        #[automatically_derived]
        #(#levels)*
        impl #impl_generics #krate::Workflow for #self_ty #where_clause {
            #body
        }
    }
}

/// The parameters of a shim, which user code cannot see.
pub(crate) struct Shim {
    pub(crate) this: Ident,
    pub(crate) step: Ident,
    pub(crate) call: Ident,
}

impl Shim {
    /// Creates the names of the parameters.
    pub(crate) fn new() -> Self {
        let name = |name| Ident::new(name, Span::mixed_site());
        Self { this: name("this"), step: name("step"), call: name("call") }
    }
}
