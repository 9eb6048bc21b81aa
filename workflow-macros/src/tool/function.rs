//! Generates what stands for a free function: the callable function, and the tool that `IntoTool` finds through it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Attribute, Generics, ItemFn, Lifetime, Safety, Signature, Token, Type, parse_quote};

use super::definition::Definition;
use super::generate::{self, Call};
use super::parameter::Parameter;
use crate::krate::Krate;
use crate::levels::level;
use crate::span_range::SpanRange;

/// Generates the function, the type that its future names, and the tool.
pub(super) fn generate(krate: &Krate, function: &ItemFn, definition: &Definition) -> TokenStream {
    let tag = format_ident!("__{}", definition.ident.unraw(), span = Span::mixed_site());
    let (tool, callable) =
        (tool(krate, &tag, function, definition), callable(krate, &tag, function, definition));
    quote!(#callable #tool)
}

/// The attributes that stay on the function that the program sees. All others belong to the one with the body.
fn is_outer(attribute: &Attribute) -> bool {
    let names = [
        "doc",
        "cfg",
        "cfg_attr",
        "deprecated",
        "must_use",
        "inline",
        "cold",
        "track_caller",
        "allow",
        "expect",
        "warn",
        "deny",
        "forbid",
    ];
    names.into_iter().any(|name| attribute.path().is_ident(name))
}

/// The user's function, unchanged, inside a function of the same name and parameters.
fn callable(krate: &Krate, tag: &Ident, function: &ItemFn, definition: &Definition) -> TokenStream {
    let (outer, inner): (Vec<_>, Vec<_>) = function.attrs.iter().partition(|attribute| is_outer(attribute));
    let (vis, ident, output) = (&function.vis, &definition.ident, &definition.output);
    let (inside, body) = (inside(&function.sig), &function.block);
    let lifetimes = Lifetimes::of(definition);
    let (generics, lifetime) = (lifetimes.generics(&function.sig.generics), &lifetimes.future);
    let (generics, _, where_clause) = generics.split_for_impl();
    let parameters = definition.parameters.iter().map(|parameter| {
        let (ident, ty) = (&parameter.ident, lifetimes.lived(&parameter.ty));
        quote!(#ident: #ty)
    });
    // The place of the parentheses, where the compiler suggests generic parameters, so that it suggests them once.
    let parameters = quote_spanned!(function.sig.paren_token.span.join()=> (#(#parameters),*));
    let (moved, future) = future(krate, definition);
    let reason = "a tool is async whether or not it waits, and has a parameter for each argument";
    quote! {
        #[allow(clippy::too_many_arguments, reason = #reason)]
        #(#outer)*
        #vis fn #ident #generics #parameters -> #krate::ToolFuture<#lifetime, #tag, #output> #where_clause {
            #moved
            {
                #[allow(dead_code, clippy::unused_async, clippy::too_many_arguments, reason = #reason)]
                #(#inner)*
                #inside #body

                #future
            }
        }
    }
}

/// Moves the parameters out of reach of the user's function, which may have the name of one, and calls that function.
fn future(krate: &Krate, definition: &Definition) -> (Option<TokenStream>, TokenStream) {
    let names: Vec<_> = definition.parameters.iter().map(|parameter| &parameter.ident).collect();
    if !definition.is_clear {
        return (Some(quote!(let _ = (#(&#names,)*);)), quote!(#krate::mistaken()));
    }
    let place = SpanRange::of(&definition.ident);
    let values: Vec<_> = (0..names.len()).map(|index| place.local(&format!("value_{index}"))).collect();
    let called = place.call(&definition.ident, quote!(#(#values),*));
    let future = place.call(place.path(quote!(#krate::ToolFuture), "new"), called);
    let moves = (!names.is_empty()).then(|| {
        quote! {
            #[allow(clippy::used_underscore_binding, reason = "the user's function may not use it")]
            let (#(#values,)*) = (#(#names,)*);
        }
    });
    (moves, future)
}

/// The lifetime of the injected parameters.
struct Lifetimes {
    /// Its name, which several parameters share. One needs none, and the return type may elide it too.
    injected: Option<Lifetime>,
    /// That of the future.
    future: Lifetime,
}

impl Lifetimes {
    fn of(definition: &Definition) -> Self {
        let named = |name| Lifetime::new(name, Span::mixed_site());
        let injected = definition.parameters.iter().filter_map(Parameter::injected);
        let (injected, future) = match injected.count() {
            0 => (None, named("'static")),
            1 => (None, named("'_")),
            _ => (Some(named("'context")), named("'context")),
        };
        Self { injected, future }
    }

    /// The function's generics. Those of its own are mistakes.
    fn generics(&self, own: &Generics) -> Generics {
        let mut generics = own.clone();
        if let Some(injected) = &self.injected {
            generics.params.insert(0, parse_quote!(#injected));
        }
        generics
    }

    /// The type of a parameter with the lifetime that it has.
    fn lived(&self, ty: &Type) -> Type {
        let (mut ty, Some(injected)) = (ty.clone(), &self.injected) else { return ty.clone() };
        let mut inner = &mut ty;
        loop {
            inner = match inner {
                Type::Group(group) => &mut group.elem,
                Type::Paren(paren) => &mut paren.elem,
                Type::Reference(reference) => {
                    reference.lifetime.get_or_insert_with(|| injected.clone());
                    return ty;
                }
                _ => return ty,
            };
        }
    }
}

/// The signature of the function with the body. Words that a mistake was reported for are missing.
fn inside(signature: &Signature) -> Signature {
    let mut inside = signature.clone();
    inside.asyncness.get_or_insert(Token![async](signature.fn_token.span));
    (inside.safety, inside.abi, inside.variadic) = (Safety::Default, None, None);
    inside
}

/// The hidden type, which has no values, and its tool. The type has the function's visibility, but nobody names it: so a
/// module may have the name of its function, and an import of the function is enough.
fn tool(krate: &Krate, tag: &Ident, function: &ItemFn, definition: &Definition) -> TokenStream {
    let (vis, ident) = (&function.vis, &definition.ident);
    let conditions: Vec<_> = definition.conditions().collect();
    let levels: Vec<_> = function.attrs.iter().filter_map(level).collect();
    let tool = generate::tool(krate, definition, &Call { callee: quote!(#ident), this: None });
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, unreachable_pub, reason = "it stands beside the function")]
        #[derive(::core::fmt::Debug)]
        #[non_exhaustive]
        #vis enum #tag {}

        #(#conditions)*
        #[automatically_derived]
        #[allow(deprecated, reason = "a tool may be deprecated where it is called by hand")]
        #(#levels)*
        impl #krate::ToolFunction for #tag {
            fn tool() -> #krate::FnTool {
                #tool
            }
        }
    }
}
