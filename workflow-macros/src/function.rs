//! The common part of steps and preconditions: a signature whose parameters the library fills by type.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{FnArg, Generics, ReturnType, Signature, Type, parse_quote_spanned};

use crate::krate::Krate;
use crate::lifetimes;
use crate::span_range::SpanRange;
use crate::usable::{self, Mentions, Use};
use signature::{is_callable, is_nameable, shared};

pub(crate) mod signature;

/// A function whose parameters the library fills.
pub(crate) struct Function<'a> {
    pub(crate) signature: &'a Signature,
    /// The types of the parameters without `self`, without the function's own lifetimes.
    pub(crate) parameters: Vec<Type>,
    /// The return type, without the function's own lifetimes.
    pub(crate) output: Type,
    /// The parts of the signature that generated code can use despite reported mistakes.
    pub(crate) clear: Clear,
    /// Whether the types may depend on generic parameters of the impl block.
    generic: bool,
    /// Whether the function is not a method of a workflow.
    free: bool,
}

/// The parts of a signature that generated code can use.
#[derive(Clone, Copy)]
pub(crate) struct Clear {
    /// Whether generated code can name the parameters' types.
    pub(crate) inputs: bool,
    /// Whether generated code can name the return type.
    pub(crate) output: bool,
    /// Whether generated code can call the function.
    pub(crate) call: bool,
}

impl Clear {
    fn of(signature: &Signature) -> Self {
        Self {
            inputs: is_nameable(signature, &signature.inputs),
            output: is_nameable(signature, &signature.output),
            call: is_callable(signature),
        }
    }
}

impl<'a> Function<'a> {
    /// Reads the signature of a function in an item with these generics.
    pub(crate) fn of(signature: &'a Signature, generics: &Generics) -> Self {
        let own = &signature.generics;
        let types = parameters(signature).map(|ty| shared(ty).unwrap_or_else(|| ty.clone()));
        let parameters = types.map(|ty| lifetimes::elided(&ty, own)).collect();
        let output = lifetimes::elided(&declared_output(signature), own);
        let clear = Clear::of(signature);
        Self { signature, parameters, output, clear, generic: usable::is_generic(generics), free: false }
    }

    /// Reads the signature of a free function.
    pub(crate) fn free(signature: &'a Signature) -> Self {
        Self { free: true, ..Self::of(signature, &signature.generics) }
    }

    /// The name of the function.
    pub(crate) fn ident(&self) -> &'a Ident {
        &self.signature.ident
    }

    /// Whether the function is asynchronous.
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some()
    }

    /// The type and the trait that give the events of the return type. All its lifetimes are static.
    pub(crate) fn ending(&self, krate: &Krate) -> (TokenStream, TokenStream) {
        let ty = lifetimes::made_static(&declared_output(self.signature), &self.signature.generics);
        if self.generic {
            return (quote!(#ty), quote!(#krate::StepOutput));
        }
        (Use::Output.of(krate, &ty), quote!(#krate::Ending))
    }

    /// The place of the return type; without one, of the function's name.
    pub(crate) fn output_place(&self) -> SpanRange {
        match &self.signature.output {
            ReturnType::Default => SpanRange::of(self.ident()),
            ReturnType::Type(_, ty) => SpanRange::of(ty),
        }
    }

    /// The declarations of the parameters as a constant slice. Needs `Unusable` in scope.
    pub(crate) fn inputs(&self, krate: &Krate) -> TokenStream {
        if !self.clear.inputs {
            return quote!(&[#krate::UNKNOWN_INPUT]);
        }
        let specs = self.parameters.iter().map(|ty| {
            let spec = SpanRange::of(ty).inherent(quote!(#krate::Fill), ty, "INPUT");
            let schema = is_config(ty).then(|| config_schema(krate, ty));
            quote!(#spec #schema)
        });
        quote!(&[#(#specs),*])
    }

    /// Fills every parameter from `slots`. Needs `Unusable` in scope, as do the functions below.
    pub(crate) fn filled(&self, krate: &Krate, slots: &Ident) -> TokenStream {
        let filled = self.parameters.iter().enumerate().map(|(index, ty)| fill(krate, slots, index, ty));
        quote!(#(#filled)*)
    }

    /// Reports the parameters that are no inputs. No other code reports them.
    pub(crate) fn asserted(&self, krate: &Krate, mentions: &mut Mentions) -> TokenStream {
        let parameters = self.parameters.iter().filter(|_| self.clear.inputs);
        let specs = parameters.flat_map(|ty| mentions.ask_input(krate, ty));
        quote!(#(let _ = #specs;)*)
    }

    /// Reports a return type that is no output. No other code reports it.
    pub(crate) fn asserted_output(&self, krate: &Krate, mentions: &mut Mentions) -> TokenStream {
        let specs = self.clear.output.then(|| mentions.ask_output(krate, &self.output)).into_iter().flatten();
        quote!(#(let _ = #specs;)*)
    }

    /// The call itself with the filled parameters. `path` names the function.
    pub(crate) fn called(&self, path: &TokenStream, this: &Ident) -> TokenStream {
        let this = self.signature.receiver().map(|_| quote!(&#this,));
        let arguments = self.parameters.iter().enumerate().map(|(index, ty)| parameter(index, ty));
        quote!(#path(#this #(#arguments),*))
    }

    /// The index of the first parameter of this type.
    pub(crate) fn place_of(&self, ty: &Type) -> Option<usize> {
        let text = |ty: &Type| quote!(#ty).to_string();
        self.parameters.iter().position(|own| text(own) == text(ty))
    }

    /// Calls a compaction with the filled parameters of a step, as a boxed future.
    pub(crate) fn compacted(&self, krate: &Krate, this: &Ident, step: &Function) -> Option<TokenStream> {
        let given = |(place, ty): (usize, &Type)| parameter(place, ty);
        let taken = self.parameters.iter().map(|ty| step.place_of(ty));
        let taken = taken.map(|place| Some(given((place?, step.parameters.get(place?)?))));
        let taken: Vec<Ident> = taken.collect::<Option<_>>()?;
        let all = step.parameters.iter().enumerate().map(given);
        let (ident, this) = (self.ident(), self.signature.receiver().map(|_| quote!(#this,)));
        let called = quote!(Self::#ident(#this #(#taken),*).await);
        let done = self.output_place().associated(&self.output, quote!(#krate::Compacted), "compacted");
        let done = self.output_place().call(done, called);
        let future = self.boxed(krate, &done);
        Some(quote!({ let _ = (#(&#all,)*); #krate::Ok(#future) }))
    }

    /// Whether the function declares no return type.
    pub(crate) fn returns_nothing(&self) -> bool {
        matches!(self.signature.output, ReturnType::Default)
    }

    /// The key of a step at its limit: at once from a sync function, later from an async one.
    pub(crate) fn keyed(
        &self,
        krate: &Krate,
        [this, call]: [&Ident; 2],
        step: &Function,
    ) -> Option<TokenStream> {
        let key = self.key(krate, [this, call], step)?;
        if self.is_async() {
            let moved = (!self.parameters.is_empty()).then(|| quote!(let mut #call = #call.take();));
            let key = self.boxed(krate, &key);
            return Some(quote!({ #moved #krate::Check::Pending(#key) }));
        }
        Some(
            quote!(#krate::Check::Answered((|| -> #krate::Result<#krate::String, #krate::StepError> { #key })())),
        )
    }

    /// Makes a key of a step, as the end of a block. Fills those of the step's parameters that the function takes.
    pub(crate) fn key(
        &self,
        krate: &Krate,
        [this, call]: [&Ident; 2],
        step: &Function,
    ) -> Option<TokenStream> {
        let taken = self.parameters.iter().map(|ty| step.place_of(ty));
        let taken: Vec<usize> = taken.collect::<Option<_>>()?;
        let slots = Ident::new("slots", Span::mixed_site());
        let filled = step.parameters.iter().enumerate().map(|(index, ty)| {
            if taken.contains(&index) {
                fill(krate, &slots, index, ty)
            } else {
                quote!(#krate::skip(&mut #slots);)
            }
        });
        let opened = (!taken.is_empty()).then(|| quote!(let (mut #slots, _) = #call.open(); #(#filled)*));
        let given = taken.iter().filter_map(|place| Some(parameter(*place, step.parameters.get(*place)?)));
        let (ident, this) = (self.ident(), self.signature.receiver().map(|_| quote!(&#this,)));
        let awaited = self.is_async().then(|| quote!(.await));
        let key = self.output_place().associated(&self.output, quote!(#krate::LimitKey), "limit_key");
        let key = self.output_place().call(key, quote!(Self::#ident(#this #(#given),*) #awaited));
        Some(quote!(#opened #key))
    }

    /// The answer of a precondition: at once from a sync function, later from an async one.
    pub(crate) fn check(&self, krate: &Krate, path: &TokenStream, this: &Ident, call: &Ident) -> TokenStream {
        if !self.clear.call || matches!(self.signature.output, ReturnType::Default) {
            return quote!(#krate::Check::Answered(#krate::Ok(false)));
        }
        let filled = self.opened(krate, call);
        let taken = (self.is_async() && filled.is_some()).then(|| quote!(let mut #call = #call.take();));
        let awaited = self.is_async().then(|| quote!(.await));
        let verdict = self.output_place().associated(&self.output, quote!(#krate::Verdict), "verdict");
        let called = self.called(path, this);
        let answer = self.output_place().call(verdict, quote!(#called #awaited));
        let answer = quote!(#filled #answer);
        if self.is_async() {
            let answer = self.boxed(krate, &answer);
            return quote!({ #taken #krate::Check::Pending(#answer) });
        }
        quote!(#krate::Check::Answered((|| -> #krate::Result<bool, #krate::StepError> { #answer })()))
    }

    /// Opens the call and fills every parameter from it.
    fn opened(&self, krate: &Krate, call: &Ident) -> Option<TokenStream> {
        let slots = Ident::new("slots", Span::mixed_site());
        let filled = self.filled(krate, &slots);
        (!self.parameters.is_empty()).then(|| quote!(let (mut #slots, _) = #call.open(); #filled))
    }

    /// A boxed future of this body. The compiler reports at the function's name if the future is not `Send`.
    pub(crate) fn boxed(&self, krate: &Krate, body: &TokenStream) -> TokenStream {
        let place = SpanRange::of(self.ident());
        let (path, name) =
            if self.free { (quote!(#krate::Box), "pin") } else { (quote!(#krate::Launch::<Self>), "ask") };
        place.call(place.path(path, name), quote_spanned!(place.hidden()=> async move { #body }))
    }
}

/// Fills a parameter from the next of `slots`.
fn fill(krate: &Krate, slots: &Ident, index: usize, ty: &Type) -> TokenStream {
    let (place, parameter) = (SpanRange::of(ty), parameter(index, ty));
    let fill = place.generic(quote!(#krate::Fill), ty, "fill");
    let filled = place.call(fill, quote!(&mut #slots));
    quote_spanned! {place.hidden()=>
        let #parameter = match #filled {
            #krate::Ok(filled) => filled,
            #krate::Err(error) => return #krate::Err(error),
        };
    }
}

fn parameter(index: usize, ty: &Type) -> Ident {
    SpanRange::of(ty).local(&format!("parameter_{index}"))
}

fn parameters(signature: &Signature) -> impl Iterator<Item = &Type> {
    signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(&*parameter.ty),
        FnArg::Receiver(_) => None,
    })
}

fn declared_output(signature: &Signature) -> Type {
    match &signature.output {
        ReturnType::Default => parse_quote_spanned!(signature.ident.span()=> ()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    }
}

/// Whether the type looks like `Config<C>` or `&Config<C>`. The compiler knows what it is; a wrong guess has no effect.
fn is_config(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_config(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Config"),
        _ => false,
    }
}

/// Adds the schema of a configuration to its parameter, if its type has one.
fn config_schema(krate: &Krate, ty: &Type) -> TokenStream {
    quote! {
        .with_schema({
            #[allow(unused_imports, reason = "whether a type has a schema, only the compiler knows")]
            use #krate::NoSchema as _;
            #krate::ConfigSchema::<#ty>::MAKE
        })
    }
}
