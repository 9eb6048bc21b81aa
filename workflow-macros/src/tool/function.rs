//! Generates what stands for a free function: the callable function, and the tool that `IntoTool` finds through it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Attribute, ItemFn, Lifetime, Safety, Signature, Token, Type};

use super::definition::Definition;
use super::generate::{self, Call};
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
    let inside = inside(&function.sig);
    let (vis, ident, output, body) = (&function.vis, &definition.ident, &definition.output, &function.block);
    let borrows = definition.parameters.iter().any(|parameter| parameter.injected().is_some());
    let context = Lifetime::new("'context", Span::mixed_site());
    let lifetime = if borrows { context.clone() } else { Lifetime::new("'static", Span::mixed_site()) };
    let mut generics = function.sig.generics.clone();
    if borrows {
        generics.params.insert(0, syn::parse_quote!(#context));
    }
    let (generics, _, where_clause) = generics.split_for_impl();
    let names: Vec<_> = definition.parameters.iter().map(|parameter| &parameter.ident).collect();
    let types = definition.parameters.iter().map(|parameter| lived(&parameter.ty, &context));
    let future = if definition.is_clear {
        let place = SpanRange::of(ident);
        // Passes over a parameter of the same name.
        let callee = place.local(&ident.to_string());
        let called = quote!(#callee(#(#names),*));
        place.call(place.path(quote!(#krate::ToolFuture), "new"), called)
    } else {
        quote!({ let _ = (#(#names,)*); #krate::mistaken() })
    };
    let reason = "a tool is async whether or not it waits, and has a parameter for each argument";
    quote! {
        #[allow(clippy::too_many_arguments, reason = #reason)]
        #(#outer)*
        #vis fn #ident #generics (#(#names: #types),*) -> #krate::ToolFuture<#lifetime, #tag, #output> #where_clause {
            #[allow(dead_code, clippy::unused_async, clippy::too_many_arguments, reason = #reason)]
            #(#inner)*
            #inside #body

            #future
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

/// The type with the lifetime of what is injected.
fn lived(ty: &Type, context: &Lifetime) -> Type {
    let mut ty = ty.clone();
    if let Type::Reference(reference) = &mut ty {
        reference.lifetime.get_or_insert_with(|| context.clone());
    }
    ty
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
