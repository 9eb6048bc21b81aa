//! Generates one constant per place where the graph can be wrong. The library evaluates the rules; each
//! constant only has the place of its message.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use super::attribute::StepAttribute;
use super::definition::{Asked, Definition, Step};
use crate::span_range::SpanRange;
use crate::usable;

/// The checks of a workflow, each with its place. A generic workflow has no table before its parameters are
/// known, so the library checks it when an engine is built.
pub(crate) fn checks(definition: &Definition) -> TokenStream {
    if usable::is_generic(&definition.item().generics) {
        return TokenStream::new();
    }
    let rows = definition.steps.iter().enumerate();
    let steps = rows.map(|(row, step)| step_checks(definition, row, step));
    let whole = check(definition, SpanRange::of(definition.self_ty()), "workflow", &[]);
    let named = definition.arguments.output.as_ref();
    let end = check(definition, SpanRange::of(named.unwrap_or(definition.self_ty())), "end", &[]);
    quote!(#(#steps)* #whole #end)
}

fn step_checks(definition: &Definition, row: usize, step: &Step) -> TokenStream {
    let function = &step.method.function;
    let inputs = each(definition, "input", row, &function.parameters);
    let name = check(definition, SpanRange::of(function.ident()), "step", &[row]);
    let output = check(definition, function.output_place(), "output", &[row]);
    let precondition = definition.asked(step).map(|asked| match asked {
        Asked::Nothing => TokenStream::new(),
        Asked::Method(method) => each(definition, "precondition", row, &method.function.parameters),
        Asked::Free(path) => check(definition, SpanRange::of(path), "preconditions", &[row]),
    });
    let catches = step.attribute.catches.as_ref().filter(|_| !definition.caught_by(step).is_empty());
    let catches = catches.map(|catches| check(definition, SpanRange::of(&catches.key), "catches", &[row]));
    quote!(#inputs #name #output #precondition #catches)
}

fn each(definition: &Definition, rule: &str, row: usize, parameters: &[Type]) -> TokenStream {
    let places = parameters.iter().map(SpanRange::of).enumerate();
    places.map(|(index, place)| check(definition, place, rule, &[row, index])).collect()
}

fn check(definition: &Definition, place: SpanRange, rule: &str, indexes: &[usize]) -> TokenStream {
    let (krate, self_ty) = (definition.krate(), definition.self_ty());
    let rule = place.path(quote!(#krate::check), rule);
    let call = place.call(rule, quote!(#krate::Probe::<#self_ty>::TABLE #(, #indexes)*));
    quote!(const _: () = #call;)
}

/// A deprecated call per parameter that may run its step more often than intended, and per workflow that may
/// be too large to check. The library selects them by type. The calls never run.
pub(crate) fn warnings(definition: &Definition) -> Option<TokenStream> {
    let krate = definition.krate();
    let meant = |attribute: &StepAttribute| {
        attribute.reruns
            || attribute.precondition.is_some()
            || attribute.on_end.is_some()
            || attribute.unclear
    };
    let watched = |step: &&Step| step.method.function.clear.inputs && !meant(&step.attribute);
    let watched = definition.steps.iter().filter(watched).flat_map(|step| &step.method.function.parameters);
    let calls: Vec<_> = watched.map(|ty| warning(definition, ty)).chain(size(definition)).collect();
    let body = quote!({ use #krate::warn::Quiet as _; #(#calls;)* });
    (!calls.is_empty()).then(|| quote!(let _ = || #body;))
}

/// The call for a workflow that may be too large to check.
fn size(definition: &Definition) -> Option<TokenStream> {
    let (krate, self_ty) = (definition.krate(), definition.self_ty());
    let is_checked = quote!({ #krate::Probe::<#self_ty>::TABLE.is_checked() });
    let place = SpanRange::of(self_ty);
    let check = place.generic(quote!(#krate::warn::Size), is_checked, "check");
    (!usable::is_generic(&definition.item().generics)).then(|| place.call(check, TokenStream::new()))
}

fn warning(definition: &Definition, ty: &Type) -> TokenStream {
    let krate = definition.krate();
    let place = SpanRange::of(ty);
    let check = place.generic(quote!(#krate::warn::Rerun), ty, "check");
    place.call(check, TokenStream::new())
}
