//! Generates the shims that call the step of a row, ask its precondition, or run its compaction.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::definition::{Asked, Definition, Step};
use super::generate::Shim;
use super::graph;
use crate::function::Function;
use crate::krate::Krate;
use crate::span_range::SpanRange;
use crate::usable::{self, Mentions};

/// Generates `Workflow::call`.
pub(crate) fn call(definition: &Definition) -> TokenStream {
    let (krate, shim) = (definition.krate(), Shim::new());
    let arms = definition.steps.iter().enumerate().map(|(row, step)| {
        let key = identified(definition, &shim, step);
        let body = started(krate, &shim, &step.method.function, key.as_ref());
        quote!(#row => #body,)
    });
    let (step, stand_ins) = (&shim.step, usable::stand_ins(krate));
    let Shim { this, call, .. } = &shim;
    quote_spanned! {Span::mixed_site()=>
        fn call(#this: #krate::Arc<Self>, #step: usize, mut #call: #krate::StepCall) -> #krate::StepFuture {
            #stand_ins
            match #step { #(#arms)* _ => #krate::absent() }
        }
    }
}

/// What the types in signatures are asked, in the order in which they stand: steps first, because it is their
/// events that preconditions take.
fn asserted(definition: &Definition) -> TokenStream {
    let krate = definition.krate();
    let mut mentions = Mentions::new(&definition.item().generics);
    let steps = definition.steps.iter().map(|step| &step.method.function);
    let mut asserted: TokenStream = steps
        .flat_map(|step| [step.asserted(krate, &mut mentions), step.asserted_output(krate, &mut mentions)])
        .collect();
    let preconditions = definition.preconditions.iter().map(|precondition| &precondition.function);
    asserted.extend(preconditions.map(|asked| asked.asserted(krate, &mut mentions)));
    asserted
}

/// Sets the idempotency key of the execution, if a method makes it.
fn identified(definition: &Definition, shim: &Shim, step: &Step) -> Option<TokenStream> {
    let (krate, function) = (definition.krate(), &step.method.function);
    let key = definition.key(step)?.function;
    // Mistakes in either signature have been reported.
    let is_clear = key.clear.call && key.clear.output && function.clear.inputs && !key.returns_nothing();
    let made = is_clear.then(|| key.key(krate, [&shim.this, &shim.call], function)).flatten()?;
    let call = &shim.call;
    Some(quote_spanned!(Span::mixed_site()=>
        let key: #krate::Result<#krate::String, #krate::StepError> = { #made };
        match key {
            #krate::Ok(key) => #call.set_key(&key),
            #krate::Err(error) => return #krate::Err(error),
        }
    ))
}

/// Generates the future of one step.
fn started(krate: &Krate, shim: &Shim, function: &Function, key: Option<&TokenStream>) -> TokenStream {
    let Shim { this, call, .. } = shim;
    if !function.clear.call || !function.is_async() {
        return quote!(#krate::never());
    }
    let slots = Ident::new("slots", Span::mixed_site());
    let filled = function.filled(krate, &slots);
    let ident = function.ident();
    let called = function.called(&quote!(Self::#ident), this);
    let place = function.output_place();
    let output = &function.output;
    let emitted = quote_spanned!(place.hidden()=> #krate::Probe::<#output>::emit(#called.await, batch));
    function.boxed(
        krate,
        &quote_spanned!(Span::mixed_site()=>
            #key
            let (mut #slots, batch) = #call.open();
            #filled
            match #emitted {
                #krate::Ok(()) => #krate::Ok(#call.committed()),
                #krate::Err(error) => #krate::Err(error),
            }
        ),
    )
}

/// Generates `Workflow::compact`, if a step has a compaction.
pub(crate) fn compact(definition: &Definition) -> Option<TokenStream> {
    let (krate, shim) = (definition.krate(), Shim::new());
    let steps = definition.steps.iter().enumerate();
    let arms: Vec<TokenStream> =
        steps.filter_map(|(row, step)| compacted(definition, &shim, row, step)).collect();
    let (step, stand_ins) = (&shim.step, usable::stand_ins(krate));
    let Shim { this, call, .. } = &shim;
    (!arms.is_empty()).then(|| {
        quote_spanned! {Span::mixed_site()=>
            fn compact<'__a>(#this: &'__a Self, #step: usize, #call: &'__a mut #krate::StepCall) -> #krate::Result<#krate::Compaction<'__a>, #krate::StepError> {
                #stand_ins
                match #step { #(#arms)* _ => #krate::Err(#krate::no_such_row()) }
            }
        }
    })
}

fn compacted(definition: &Definition, shim: &Shim, row: usize, step: &Step) -> Option<TokenStream> {
    let (krate, function) = (definition.krate(), &step.method.function);
    let compaction = definition.compaction(step)?.function;
    // Mistakes in either signature have been reported.
    let is_clear = compaction.clear.call && function.clear.call && compaction.is_async();
    let compacted = is_clear.then(|| compaction.compacted(krate, &shim.this, function)).flatten()?;
    let (call, slots) = (&shim.call, Ident::new("slots", Span::mixed_site()));
    let filled = function.filled(krate, &slots);
    Some(quote_spanned!(Span::mixed_site()=> #row => {
        let (mut #slots, _) = #call.open();
        #filled
        #compacted
    }))
}

/// Generates `Workflow::limit_key`, if a step has a key at its limit.
pub(crate) fn limit_key(definition: &Definition) -> Option<TokenStream> {
    let (krate, shim) = (definition.krate(), Shim::new());
    let steps = definition.steps.iter().enumerate();
    let arms: Vec<TokenStream> =
        steps.filter_map(|(row, step)| keyed(definition, &shim, row, step)).collect();
    let (step, stand_ins) = (&shim.step, usable::stand_ins(krate));
    let Shim { this, call, .. } = &shim;
    (!arms.is_empty()).then(|| {
        quote_spanned! {Span::mixed_site()=>
            fn limit_key(#this: &#krate::Arc<Self>, #step: usize, #call: &mut #krate::StepCall) -> #krate::Check<#krate::String> {
                #stand_ins
                match #step { #(#arms)* _ => #krate::Check::Answered(#krate::Ok(#krate::String::new())) }
            }
        }
    })
}

fn keyed(definition: &Definition, shim: &Shim, row: usize, step: &Step) -> Option<TokenStream> {
    let (krate, function) = (definition.krate(), &step.method.function);
    let key = definition.limit_key(step)?.function;
    // Mistakes in either signature have been reported.
    let is_clear = key.clear.call && key.clear.output && function.clear.inputs && !key.returns_nothing();
    let keyed = is_clear.then(|| key.keyed(krate, [&shim.this, &shim.call], function)).flatten()?;
    let clone = cloned(krate, shim, &key).filter(|_| key.is_async());
    Some(quote!(#row => { #clone #keyed }))
}

fn cloned(krate: &Krate, shim: &Shim, function: &Function) -> Option<TokenStream> {
    let this = &shim.this;
    function.signature.receiver().map(|_| quote!(let #this = #krate::Arc::clone(#this);))
}

/// Generates `Workflow::check`.
pub(crate) fn check(definition: &Definition) -> TokenStream {
    let (krate, shim) = (definition.krate(), Shim::new());
    let arms = definition.steps.iter().enumerate().filter_map(|(row, step)| {
        let asked = asked(definition, &shim, step)?;
        Some(quote!(#row => #asked))
    });
    let (step, warnings, stand_ins) = (&shim.step, graph::warnings(definition), usable::stand_ins(krate));
    let asserted = asserted(definition);
    let Shim { this, call, .. } = &shim;
    quote_spanned! {Span::mixed_site()=>
        fn check(#this: &#krate::Arc<Self>, #step: usize, #call: &mut #krate::StepCall) -> #krate::Check {
            #stand_ins
            #asserted
            #warnings
            match #step { #(#arms)* _ => #krate::Check::Answered(#krate::Ok(true)) }
        }
    }
}

fn asked(definition: &Definition, shim: &Shim, step: &Step) -> Option<TokenStream> {
    let (krate, call) = (definition.krate(), &shim.call);
    Some(match definition.asked(step)? {
        Asked::Free(path) => {
            let check = SpanRange::of(path).associated(path, quote!(#krate::Precondition), "check");
            quote!({ #check(#call) })
        }
        Asked::Nothing => quote!(#krate::Check::Answered(#krate::Ok(false)),),
        Asked::Method(method) => {
            let function = &method.function;
            let ident = function.ident();
            let clone = cloned(krate, shim, function).filter(|_| function.is_async());
            let check = function.check(krate, &quote!(Self::#ident), &shim.this, call);
            quote!({ #clone #check })
        }
    })
}
