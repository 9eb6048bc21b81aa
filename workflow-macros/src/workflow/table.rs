//! Generates the constant table: a row per step, in declaration order.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Expr;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::definition::{Asked, Definition, Step};
use crate::docs;
use crate::function::Function;
use crate::krate::Krate;
use crate::span_range::SpanRange;
use crate::usable;

/// The table as a constant.
pub(crate) fn table(definition: &Definition) -> TokenStream {
    let (krate, name) = (definition.krate(), definition.name());
    let description = docs::text(&definition.item().attrs);
    let output = members(definition);
    let rows = definition.steps.iter().map(|step| row(definition, step));
    let stand_ins = usable::stand_ins(krate);
    quote! {{
        #stand_ins
        &#krate::TableSpec::new(#name, #description, #output, &[#(#rows),*])
    }}
}

/// The events that the output can hold, if the library can tell. Without an output, the compiler reports that
/// at the same place, and so once.
fn members(definition: &Definition) -> TokenStream {
    if definition.arguments.unclear {
        return quote!(&[]);
    }
    let (krate, named) = (definition.krate(), definition.arguments.output.as_ref());
    quote_spanned! {named.unwrap_or(definition.self_ty()).span()=>
        #krate::Probe::<Self>::OUTPUT_EVENTS
    }
}

fn row(definition: &Definition, step: &Step) -> TokenStream {
    let (krate, name, function) = (definition.krate(), step.name(), &step.method.function);
    // A step without parameters has been reported.
    let inputs = if function.parameters.is_empty() { unclear(krate) } else { function.inputs(krate) };
    let output = output(krate, function);
    let description = Some(step.description()).filter(|text| !text.is_empty());
    let description = description.map(|text| quote!(.description(#text)));
    let precondition = definition.asked(step).map(|asked| precondition(definition, &asked));
    let mut policy = step.attribute.policy.clone();
    if step.attribute.unclear {
        // The unreadable part may have been meant to allow what the step does.
        policy.push(quote!(.loops().max_executions(1)));
    }
    let policy = (!policy.is_empty()).then(|| quote!(.policy(#krate::StepPolicy::DEFAULT #(#policy)*)));
    let caught = definition.caught_by(step);
    let catches = (!caught.is_empty()).then(|| quote!(.catches(&[#(#caught),*])));
    let on_end = step
        .attribute
        .on_end
        .as_ref()
        .map(|ends| quote!(.on_end(#krate::OnEnd::NONE #(.and(#krate::OnEnd::#ends))*)));
    let retry = step.attribute.retry.as_ref().map(retry);
    let compacts = definition.compaction(step).map(|_| quote!(.compacts()));
    let limit = step.attribute.limit.as_ref().map(|limit| quote!(.limit(#limit)));
    let key = step.attribute.key.as_ref().map(|key| key.unraw().to_string());
    let key = key.map(|key| quote!(.key(#key)));
    quote! {
        #krate::StepSpec::new(#name, #inputs, #output) #description #precondition #policy #catches #on_end #retry #compacts #limit #key
    }
}

/// Wraps the retry policy in a function, so that building an engine makes the policy rather than the
/// compiler.
fn retry(policy: &Expr) -> TokenStream {
    quote!(.retry(|| #policy))
}

fn unclear(krate: &Krate) -> TokenStream {
    quote!(&[#krate::UNKNOWN_INPUT])
}

fn output(krate: &Krate, function: &Function) -> TokenStream {
    if !function.clear.output {
        return quote!(#krate::UNKNOWN_OUTPUT);
    }
    function.output_place().inherent(quote!(#krate::Probe), &function.output, "OUTPUT")
}

fn precondition(definition: &Definition, asked: &Asked) -> TokenStream {
    let krate = definition.krate();
    let (name, inputs) = match asked {
        Asked::Method(method) => {
            let name = method.function.ident().unraw().to_string();
            (quote!(#name), method.function.inputs(krate))
        }
        Asked::Nothing => (quote!(""), quote!(&[])),
        Asked::Free(path) => {
            let associated = |name| SpanRange::of(path).associated(path, quote!(#krate::Precondition), name);
            (associated("NAME"), associated("INPUTS"))
        }
    };
    quote!(.precondition(#krate::PreconditionSpec::new(#name, #inputs)))
}
