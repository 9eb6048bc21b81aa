//! The static table: a row per step, in declaration order.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::definition::{Asked, Definition, Step};
use crate::docs;
use crate::place::Place;

/// The table as a constant.
pub(crate) fn table(definition: &Definition) -> TokenStream {
    let (krate, name) = (definition.krate(), definition.name());
    let description = docs::text(&definition.item().attrs);
    let output = members(definition);
    let rows = definition.steps.iter().map(|step| row(definition, step));
    quote!(&#krate::TableSpec::new(#name, #description, #output, &[#(#rows),*]))
}

/// The events that the output can be made of, if the library can tell. Where there is no output, it is missed
/// at the same place, and so once.
fn members(definition: &Definition) -> TokenStream {
    let (krate, named) = (definition.krate(), definition.arguments.output.as_ref());
    quote_spanned! {named.unwrap_or(definition.self_ty()).span()=>
        {
            #[allow(unused_imports)]
            use #krate::Unusable as _;
            #krate::Kind::<<Self as #krate::Workflow>::Output>::MEMBERS
        }
    }
}

fn row(definition: &Definition, step: &Step) -> TokenStream {
    let (krate, name, function) = (definition.krate(), step.name(), &step.method.function);
    let inputs = function.inputs(krate);
    let output = function.output_place().associated(&function.output, quote!(#krate::StepOutput), "SPEC");
    let description = Some(step.description()).filter(|text| !text.is_empty());
    let description = description.map(|text| quote!(.description(#text)));
    let precondition = definition.asked(step).map(|asked| precondition(definition, &asked));
    let policy = &step.attribute.policy;
    let policy = (!policy.is_empty()).then(|| quote!(.policy(#krate::StepPolicy::DEFAULT #(#policy)*)));
    quote!(#krate::StepSpec::new(#name, #inputs, #output) #description #precondition #policy)
}

fn precondition(definition: &Definition, asked: &Asked) -> TokenStream {
    let krate = definition.krate();
    let (name, inputs) = match asked {
        Asked::Method(method) => {
            let name = method.function.ident().unraw().to_string();
            (quote!(#name), method.function.inputs(krate))
        }
        Asked::Free(path) => {
            let associated = |name| Place::of(path).associated(path, quote!(#krate::Precondition), name);
            (associated("NAME"), associated("INPUTS"))
        }
    };
    quote!(.precondition(#krate::PreconditionSpec::new(#name, #inputs)))
}
