//! Generates the impls of an event.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Generics, Type, parse_quote};

use super::definition::Definition;
use crate::krate::Krate;
use crate::usable;

/// Generates `Event`, the marker traits of the roles, and the by-value parameter. After a mistake that may
/// concern the roles, generates every marker trait.
pub(crate) fn event(definition: &Definition) -> TokenStream {
    let Definition { name, roles, krate, .. } = definition;
    let stop = if roles.has("stop") { quote!(IsStop<Self>) } else { quote!(NotStop) };
    let given = (!roles.is_empty()).then(|| quote!(const ROLES: #krate::Roles = #krate::#roles;));
    let reply_form = reply(definition).map(|reply| {
        let schema = schema(krate, &quote!(#reply));
        quote! {
            const REPLY_FORM: #krate::Option<#krate::ReplyForm> =
                #krate::Some(#krate::ReplyForm::of::<Self>(#schema));
        }
    });
    let json = json(definition);
    let version = definition.version.map(|version| quote!(const VERSION: u32 = #version;));
    let upgrade = upgrade(definition);
    let event = implement(
        definition,
        "Event",
        &quote! {
            const NAME: &'static str = #name;
            #given
            #version
            #upgrade
            #reply_form
            #json
            type Stop = #krate::#stop;
        },
    );
    let control = (roles.drives_steps() || definition.unclear).then(|| control(definition));
    let display = (roles.has("display") || definition.unclear)
        .then(|| implement(definition, "DisplayEvent", &TokenStream::new()));
    let derived = implement(definition, "Derived", &is_event(definition).unwrap_or_default());
    quote!(#event #control #display #derived)
}

/// The schema of the event, and for an event from outside its reader. An event with type parameters has neither: its
/// schema would ask for bounds that the event does not have.
fn json(definition: &Definition) -> Option<TokenStream> {
    let Definition { roles, krate, ident, .. } = definition;
    if !definition.generics.params.is_empty() {
        return None;
    }
    let schema = schema(krate, &quote!(#ident));
    let form =
        if roles.has("start") || roles.has("external") { quote!(taken::<Self>) } else { quote!(shown) };
    Some(quote!(const JSON: #krate::JsonForm = #krate::JsonForm::#form(#schema);))
}

/// The function that makes the schema of a type, if the type has one.
fn schema(krate: &Krate, ty: &TokenStream) -> TokenStream {
    quote! {{
        #[allow(unused_imports, reason = "whether a type has a schema, only the compiler knows")]
        use #krate::NoSchema as _;
        #krate::Schema::<#ty>::MAKE
    }}
}

/// The upgrade function. The compiler checks its types at the path.
fn upgrade(definition: &Definition) -> Option<TokenStream> {
    let (_, path) = definition.upgrade.as_ref()?;
    let krate = &definition.krate;
    let call = quote_spanned!(path.span()=> |__version, __data| #krate::upgraded(#path(__version, __data)));
    Some(quote!(const UPGRADE: #krate::Option<#krate::Upgrade> = #krate::Some(#call);))
}

/// Generates the impls of an event that drives steps.
fn control(definition: &Definition) -> TokenStream {
    let markers = [("start", "StartEvent"), ("stop", "StopEvent"), ("external", "ExternalEvent")];
    let given = markers.iter().filter(|(role, _)| definition.roles.has(role) || definition.unclear);
    let given = given.map(|(_, marker)| *marker);
    let markers = std::iter::once("ControlEvent").chain(given);
    let markers = markers.map(|marker| implement(definition, marker, &TokenStream::new()));
    let request = request(definition);
    let input = by_value(definition);
    quote!(#(#markers)* #request #input)
}

/// The type of a request's reply; `()` if it is missing.
fn reply(definition: &Definition) -> Option<Type> {
    match &definition.reply {
        Some((_, reply)) => Some(reply.clone()),
        None if definition.roles.has("request") => Some(parse_quote!(())),
        None => None,
    }
}

fn request(definition: &Definition) -> Option<TokenStream> {
    let reply = reply(definition)?;
    let name = format!("{}.reply", definition.name);
    let expired = format!("{}.expired", definition.name);
    let body = quote! {
        type Reply = #reply;
        const REPLY_NAME: &'static str = #name;
        const EXPIRED_NAME: &'static str = #expired;
    };
    Some(implement(definition, "Request", &body))
}

/// Generates the parameter `event: E`, if the event is `Clone`. Only the derive can do so: a blanket impl in
/// the library would cover every type. The bound has a `for<'_>`, since a trivially false bound is an error.
fn by_value(definition: &Definition) -> TokenStream {
    let (krate, ident) = (&definition.krate, definition.ident);
    let mut generics = definition.generics.clone();
    let (_, ty, _) = definition.generics.split_for_impl();
    let bound = if definition.generics.params.is_empty() {
        parse_quote!(for<'__a> #krate::Log: #krate::Gives<#ident>)
    } else {
        parse_quote!(#ident #ty: #krate::Event + #krate::Clone)
    };
    generics.make_where_clause().predicates.push(bound);
    let ty = quote!(#ident #ty);
    input(krate, &ty, &generics)
}

/// Generates `StepInput` and `EventInput` for a type taken by value.
pub(crate) fn input(krate: &Krate, ty: &TokenStream, generics: &Generics) -> TokenStream {
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let stand_ins = usable::stand_ins(krate);
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl #impl_generics #krate::StepInput for #ty #where_clause {
            const SPEC: #krate::InputSpec = #krate::one_input::<Self>();
            type Item<'__a> = Self;

            fn fill(slot: #krate::Slot<'_>) -> #krate::Result<Self, #krate::StepError> {
                #stand_ins
                #krate::Owned::<Self>::owned(&slot)
            }
        }

        #[automatically_derived]
        impl #impl_generics #krate::EventInput for #ty #where_clause {}
    }
}

/// Asks for what serde derives: here, and nowhere else, its lack is reported.
fn is_event(definition: &Definition) -> Option<TokenStream> {
    let Definition { ident, krate, .. } = definition;
    let reply = reply(definition).into_iter();
    definition.generics.params.is_empty().then(|| {
        quote! {
            const IS_EVENT: bool = #krate::serialisable::<#ident>() #(&& #krate::serialisable::<#reply>())*;
        }
    })
}

/// An event is one under the bound that it has what serde derives, and what follows from it under the bound that
/// it is an event. Each bound of a type without parameters stands under a `for`, because one that is plainly false is
/// an error. A type with parameters is an event where these let it be one, as serde's derives do it.
fn implement(definition: &Definition, name: &str, body: &TokenStream) -> TokenStream {
    let (krate, ident) = (&definition.krate, definition.ident);
    let (_, ty, _) = definition.generics.split_for_impl();
    let mut generics = definition.generics.clone();
    let is_generic = !generics.params.is_empty();
    let serialised = if is_generic {
        quote!(#krate::Serialisable + #krate::Send + #krate::Sync + 'static)
    } else {
        quote!(#krate::Serialisable)
    };
    let predicates = &mut generics.make_where_clause().predicates;
    match name {
        "Event" => predicates.push(parse_quote!(for<'__a> #ident #ty: #serialised)),
        "Derived" if !is_generic => {}
        _ => predicates.push(parse_quote!(for<'__a> #ident #ty: #krate::Event)),
    }
    if let (Some(reply), "Event" | "Request") = (reply(definition), name) {
        predicates.push(parse_quote!(for<'__a> #reply: #serialised));
    }
    let (impl_generics, ty, where_clause) = generics.split_for_impl();
    let name = proc_macro2::Ident::new(name, Span::call_site());
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::#name for #ident #ty #where_clause {
            #body
        }
    }
}
