//! Generates the impls of an event set.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use super::definition::{Definition, Member};
use crate::event;
use crate::krate::Krate;
use crate::span_range::SpanRange;
use crate::usable::{self, Use};

/// The most members of one type-level tuple.
const TUPLE: usize = 8;

/// Generates the impls that make the set an input and an output.
pub(crate) fn event_set(definition: &Definition) -> TokenStream {
    let pattern = implement(definition, "Pattern", &pattern(definition));
    let from_event = implement(definition, "FromEvent", &from_event(definition));
    let set = implement(definition, "EventSet", &TokenStream::new());
    let output = implement(definition, "StepOutput", &output(definition));
    let (_, ty, _) = definition.generics.split_for_impl();
    let ident = definition.ident;
    let input = event::by_value_input(&definition.krate, &quote!(#ident #ty), definition.generics);
    quote!(#pattern #from_event #set #output #input)
}

fn pattern(definition: &Definition) -> TokenStream {
    let Definition { members, krate, .. } = definition;
    let events = members.iter().map(|member| declared(definition, member.ty, "TYPE"));
    quote_spanned! {Span::mixed_site()=>
        const EVENTS: &'static [#krate::EventType] = &[#(#events),*];
        type Item<'__a> = Self;

        fn lend(slot: #krate::Slot<'_>) -> #krate::Result<&Self, #krate::StepError> {
            #krate::borrow_set(slot)
        }

        fn item(event: &#krate::AnyEvent) -> #krate::Option<Self> {
            <Self as #krate::FromEvent>::from_event(event)
        }
    }
}

fn from_event(definition: &Definition) -> TokenStream {
    let Definition { members, krate, .. } = definition;
    let event = Ident::new("event", Span::mixed_site());
    let attempts = members.iter().map(|Member { variant, ty }| {
        let taken = SpanRange::of(ty).call(as_member(krate, ty, "take"), &event);
        quote_spanned! {Span::mixed_site()=>
            if let #krate::Some(member) = #taken {
                return #krate::Some(Self::#variant(member));
            }
        }
    });
    quote! {
        const MEMBERS: &'static [#krate::EventType] = <Self as #krate::Pattern>::EVENTS;

        fn from_event(#event: &#krate::AnyEvent) -> #krate::Option<Self> {
            #(#attempts)*
            #krate::None
        }
    }
}

fn output(definition: &Definition) -> TokenStream {
    let krate = &definition.krate;
    let ones: Vec<_> =
        definition.members.iter().map(|member| declared(definition, member.ty, "Events")).collect();
    let events = each(krate, &ones);
    let emitted = Ident::new("emitted", Span::mixed_site());
    let arms = definition.members.iter().map(|Member { variant, ty }| {
        let member = SpanRange::of(ty).local("member");
        let event = SpanRange::of(ty).call(as_member(krate, ty, "into_event"), &member);
        quote!(Self::#variant(#member) => #emitted.push_member(#event),)
    });
    let rest = (!definition.complete || definition.members.is_empty()).then(|| quote!(_ => {}));
    quote! {
        const SPEC: #krate::OutputSpec = #krate::OutputSpec::OneOf(<Self as #krate::Pattern>::EVENTS);
        type Events = #events;

        fn emit(self, #emitted: &mut #krate::Emitted) -> #krate::Result<(), #krate::StepError> {
            match self {
                #(#arms)*
                #rest
            }
            #krate::Ok(())
        }
    }
}

/// The declaration of a member.
fn declared(definition: &Definition, ty: &Type, name: &str) -> TokenStream {
    let krate = &definition.krate;
    let member = if usable::is_generic(definition.generics) {
        quote!(#krate::AsMember::<#ty, true>)
    } else {
        Use::Member.of(krate, ty)
    };
    SpanRange::of(ty).associated(member, quote!(#krate::Declared), name)
}

/// A tuple of all of them. More than fit are nested in the last place.
fn each(krate: &Krate, ones: &[TokenStream]) -> TokenStream {
    if ones.len() <= TUPLE {
        return quote!(#krate::Each<(#(#ones,)*)>);
    }
    let (here, rest) = ones.split_at(TUPLE - 1);
    let rest = each(krate, rest);
    quote!(#krate::Each<(#(#here,)* #rest)>)
}

fn as_member(krate: &Krate, ty: &Type, name: &str) -> TokenStream {
    SpanRange::of(ty).associated(ty, quote!(#krate::SetMember), name)
}

fn implement(definition: &Definition, name: &str, body: &TokenStream) -> TokenStream {
    let (krate, ident) = (&definition.krate, definition.ident);
    let (impl_generics, ty, where_clause) = definition.generics.split_for_impl();
    let name = Ident::new(name, Span::call_site());
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::#name for #ident #ty #where_clause {
            #body
        }
    }
}
