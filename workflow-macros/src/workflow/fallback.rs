//! What stands in for a workflow with mistakes: a workflow all the same, so that its uses are not reported
//! as well.

use proc_macro2::TokenStream;
use quote::quote;

use super::definition::Definition;
use super::generate::{self, Shim};
use super::output;
use crate::function::signature::is_output_nameable;

/// An impl with an empty table; nothing where even the output cannot be told.
pub(crate) fn workflow(definition: &Definition) -> TokenStream {
    let generics = &definition.item().generics;
    let nameable = definition.steps.iter().all(|step| is_output_nameable(step.method.function.signature));
    if definition.item().trait_.is_some() || generics.lifetimes().next().is_some() || definition.steps.is_empty() || !nameable {
        return TokenStream::new();
    }
    let (krate, name, output) = (definition.krate(), definition.name(), output::output(definition));
    let never = quote!(::core::unreachable!("the workflow does not compile"));
    let (call, check) = (Shim::new().function(definition, "call", "StepFuture", &never), Shim::new().function(definition, "check", "Check", &never));
    let body = quote! {
        #output
        const TABLE: &'static #krate::TableSpec = &#krate::TableSpec::new(#name, "", &[]);
        #call
        #check
    };
    generate::implement(definition, &body)
}
