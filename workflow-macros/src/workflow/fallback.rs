//! What stands in for a workflow with mistakes: a workflow all the same, so that its uses are not reported
//! as well.

use proc_macro2::TokenStream;
use quote::quote;

use super::definition::Definition;
use super::generate::{self, Shim};
use super::output;

/// An impl with an empty table; nothing where the block could not be made a workflow at all.
pub(crate) fn workflow(definition: &Definition) -> TokenStream {
    let item = definition.item();
    if item.trait_.is_some() || item.generics.lifetimes().next().is_some() {
        return TokenStream::new();
    }
    let (krate, name, output) = (definition.krate(), definition.name(), output::output(definition));
    let never = quote!(::core::unreachable!("the workflow does not compile"));
    let function = |name, returns| Shim::new().function(definition, name, returns, &never);
    let (call, check) = (function("call", "StepFuture"), function("check", "Check"));
    let body = quote! {
        #output
        const TABLE: &'static #krate::TableSpec = &#krate::TableSpec::new(#name, "", &[], &[]);
        #call
        #check
    };
    generate::implement(definition, &body)
}
