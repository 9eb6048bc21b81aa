//! The definition of an event set: read from the enum and its attributes, and checked.

use proc_macro2::Ident;
use quote::ToTokens as _;
use syn::{Data, DataEnum, DeriveInput, Fields, Generics, Type, Variant};

use crate::keys::Keys;
use crate::krate::Krate;
use crate::mistakes::Mistakes;

/// An event set as declared.
pub(crate) struct Definition<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) generics: &'a Generics,
    pub(crate) members: Vec<Member<'a>>,
    /// Whether `members` has every variant.
    pub(crate) complete: bool,
    pub(crate) krate: Krate,
}

/// A variant and the type of its event.
pub(crate) struct Member<'a> {
    pub(crate) variant: &'a Ident,
    pub(crate) ty: &'a Type,
}

/// Reads the item and each `#[event_set(…)]` on it.
pub(crate) fn parse<'a>(item: &'a DeriveInput, mistakes: &mut Mistakes) -> Definition<'a> {
    let krate = krate(item, mistakes);
    let members = match &item.data {
        Data::Enum(data) => members(&item.ident, data, mistakes),
        Data::Struct(data) => not_an_enum(data.struct_token, "struct", mistakes),
        Data::Union(data) => not_an_enum(data.union_token, "union", mistakes),
    };
    reject_twins(&members, mistakes);
    let complete = matches!(&item.data, Data::Enum(data) if data.variants.len() == members.len());
    Definition { ident: &item.ident, generics: &item.generics, members, complete, krate }
}

fn krate(item: &DeriveInput, mistakes: &mut Mistakes) -> Krate {
    let (mut krate, mut keys) = (Krate::default(), Keys::new(&["crate"]));
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("event_set")) {
        keys.read_attribute(attribute, mistakes, |key, input| {
            krate = Krate::parse_value(key, input)?;
            Ok(())
        });
    }
    krate
}

fn not_an_enum<'a>(token: impl quote::ToTokens, what: &str, mistakes: &mut Mistakes) -> Vec<Member<'a>> {
    let message =
        format!("an event set is an enum, not a {what}: write `enum`, or derive `Event` for one event");
    mistakes.at(token, message);
    Vec::new()
}

fn members<'a>(ident: &Ident, data: &'a DataEnum, mistakes: &mut Mistakes) -> Vec<Member<'a>> {
    if data.variants.is_empty() {
        mistakes
            .at(ident, format!("`{ident}` has no variants: write one for each event, like `Found(Found)`"));
    }
    data.variants.iter().filter_map(|variant| member(variant, mistakes)).collect()
}

fn member<'a>(variant: &'a Variant, mistakes: &mut Mistakes) -> Option<Member<'a>> {
    let name = &variant.ident;
    match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            return Some(Member { variant: name, ty: &fields.unnamed[0].ty });
        }
        Fields::Unit => mistakes.at(name, format!("`{name}` holds no event: write `{name}(TheEvent)`")),
        fields => {
            mistakes.at(
                fields,
                format!("a variant holds exactly one event, without a name: write `{name}(TheEvent)`"),
            );
        }
    }
    None
}

fn reject_twins(members: &[Member], mistakes: &mut Mistakes) {
    let texts: Vec<_> = members.iter().map(|member| member.ty.to_token_stream().to_string()).collect();
    for (index, member) in members.iter().enumerate() {
        if let Some(first) = texts[..index].iter().position(|text| *text == texts[index]) {
            let first = members[first].variant;
            mistakes
                .at(member.ty, format!("`{first}` holds this event already: write one variant per event"));
        }
    }
}
