//! Generates a tool as an expression: its arguments, its specification, and the call of its function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Type};

use super::definition::Definition;
use super::parameter::Parameter;
use crate::docs;
use crate::krate::Krate;
use crate::span_range::SpanRange;

/// The way to call the function.
pub(crate) struct Call {
    /// The path of the function.
    pub(crate) callee: TokenStream,
    /// The variable that shares `self`.
    pub(crate) this: Option<Ident>,
}

/// The tool, an expression of the type `FnTool`.
pub(crate) fn tool(krate: &Krate, definition: &Definition, call: &Call) -> TokenStream {
    if !definition.is_clear {
        return quote!(#krate::mistaken_tool());
    }
    let (arguments, spec) = (arguments(krate, definition), spec(krate, definition));
    let [given, context] = ["_arguments", "_context"].map(|name| Ident::new(name, Span::mixed_site()));
    let is_readable = is_argument(krate, &quote!(Arguments));
    let shared = call.this.as_ref().map(|this| quote!(let #this = #krate::Arc::clone(&#this);));
    let returned = called(krate, definition, call, &given, &context);
    let output = output(krate, &definition.output, &returned);
    let place = SpanRange::of(&definition.ident);
    let boxed = place.call(
        place.path(krate, "boxed"),
        quote_spanned!(place.hidden()=> async move { let #context = &#context; #output }),
    );
    quote! {{
        #arguments
        #shared
        #krate::function::<Arguments, #is_readable>(
            #spec,
            move |#given: Arguments, #context: #krate::ToolContext| { #shared #boxed },
        )
    }}
}

/// The struct of the arguments, whose derives make the schema and read the JSON, and one check per type.
fn arguments(krate: &Krate, definition: &Definition) -> TokenStream {
    let given = || definition.parameters.iter().filter(|parameter| parameter.injected().is_none());
    let fields = given().map(|parameter| {
        let (ident, attributes, ty) = (&parameter.ident, &parameter.attributes, &parameter.ty);
        if parameter.is_replaced() {
            return quote!(#(#attributes)* #ident: #ty);
        }
        // A type that cannot be an argument is reported once, below, and not by the derives too.
        let is_argument = is_argument(krate, ty);
        quote!(#(#attributes)* #ident: #krate::Field<#ty, #is_argument>)
    });
    let checks = given().filter(|parameter| !parameter.is_replaced()).map(|parameter| {
        let ty = &parameter.ty;
        let check = SpanRange::of(ty).associated(ty, quote!(#krate::Argument), "IS_ARGUMENT");
        quote!(let () = #check;)
    });
    let (serde, schemars) = (krate.text("serde"), krate.text("schemars"));
    let expecting = format!("the arguments of `{}`", definition.name());
    quote! {
        #[allow(non_snake_case, reason = "arguments have the names of the parameters")]
        #[derive(#krate::serde::Deserialize, #krate::schemars::JsonSchema)]
        #[serde(crate = #serde, deny_unknown_fields, expecting = #expecting)]
        #[schemars(crate = #schemars)]
        struct Arguments { #(#fields),* }
        #(#checks)*
    }
}

/// Whether the type can be an argument. The struct of the arguments can unless a derive has reported an attribute.
fn is_argument(krate: &Krate, ty: &impl ToTokens) -> TokenStream {
    quote! {{
        #[allow(unused_imports, reason = "whether a type is an argument, only the compiler knows")]
        use #krate::NoArgument as _;
        #krate::Probe::<#ty>::IS_ARGUMENT
    }}
}

fn spec(krate: &Krate, definition: &Definition) -> TokenStream {
    let (name, rules) = (definition.name(), definition.attribute.rules(krate));
    let description = description(krate, &definition.attributes);
    let is_readable = is_argument(krate, &quote!(Arguments));
    quote!(#krate::spec::<Arguments, #is_readable>(#name, #description) #rules)
}

/// The doc comment: a text, or several that are joined when the program runs, since a macro such as `include_str!` may
/// make one.
fn description(krate: &Krate, attributes: &[Attribute]) -> TokenStream {
    let parts = docs::parts(attributes);
    if parts.iter().all(|part| docs::is_text(part)) {
        let text = docs::text(attributes);
        return quote!(#text);
    }
    quote!(#krate::description(&[#(#parts),*]))
}

/// The call of the function, with every parameter.
fn called(
    krate: &Krate,
    definition: &Definition,
    call: &Call,
    given: &Ident,
    context: &Ident,
) -> TokenStream {
    let values = definition.parameters.iter().map(|parameter| value(krate, parameter, given, context));
    let this = call.this.as_ref().filter(|_| definition.has_self).map(|this| quote!(&#this,));
    let callee = &call.callee;
    quote!(#callee(#this #(#values),*).await)
}

fn value(krate: &Krate, parameter: &Parameter, given: &Ident, context: &Ident) -> TokenStream {
    let (ident, ty) = (&parameter.ident, &parameter.ty);
    if let Some(borrowed) = parameter.injected() {
        let place = SpanRange::of(borrowed);
        return place.call(place.associated(borrowed, quote!(#krate::Injected), "of"), context);
    }
    if parameter.is_replaced() {
        return quote!(#given.#ident);
    }
    let is_argument = is_argument(krate, ty);
    quote!(<#krate::Is<#is_argument> as #krate::Choose<#ty>>::taken(#given.#ident))
}

/// Turns the returned value into the output. The compiler finds out whether the type is a `Result`, also by an alias.
fn output(krate: &Krate, ty: &Type, returned: &TokenStream) -> TokenStream {
    let place = SpanRange::of(ty);
    let [value, kind] = ["value", "kind"].map(|name| place.local(name));
    let method = place.local("output");
    let output = place.call(quote_spanned!(place.hidden()=> #kind.#method), &value);
    quote! {
        let #value = #returned;
        let #kind = {
            #[allow(unused_imports, reason = "whether a type is a `Result`, only the compiler knows")]
            use #krate::{FallibleKind as _, PlainKind as _};
            (&#value).kind()
        };
        #output
    }
}
