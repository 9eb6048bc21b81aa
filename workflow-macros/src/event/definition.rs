//! The definition of an event: read from the item and its attributes, and checked.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Data, DeriveInput, Generics, Path, Result, Type, parse_quote};

use super::roles::Roles;
use crate::keys::{self, Keys};
use crate::krate::Krate;
use crate::mistakes::Mistakes;

const KEYS: &[&str] = &[
    "start", "stop", "display", "external", "control", "request", "reply", "name", "version", "upgrade",
    "crate",
];

/// An event as declared.
pub(crate) struct Definition<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) generics: &'a Generics,
    pub(crate) name: String,
    pub(crate) roles: Roles,
    pub(crate) reply: Option<(Ident, Type)>,
    pub(crate) version: Option<u32>,
    /// The key, and the function that upgrades older versions.
    pub(crate) upgrade: Option<(Ident, Path)>,
    pub(crate) krate: Krate,
    /// Whether a mistake leaves open what the author meant.
    pub(crate) unclear: bool,
}

/// Reads the item and each `#[event(…)]` on it.
pub(crate) fn parse<'a>(item: &'a DeriveInput, mistakes: &mut Mistakes) -> Definition<'a> {
    let mut definition = Definition {
        ident: &item.ident,
        generics: &item.generics,
        name: item.ident.unraw().to_string(),
        roles: Roles::default(),
        reply: None,
        version: None,
        upgrade: None,
        krate: Krate::default(),
        unclear: false,
    };
    let mut keys = Keys::new(KEYS);
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
        keys.read_attribute(attribute, mistakes, |key, input| definition.set(key, input));
    }
    definition.validate(item, mistakes);
    definition.unclear = !mistakes.is_empty();
    definition
}

impl Definition<'_> {
    fn set(&mut self, key: &Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "reply" => {
                let reply = keys::ty(key, "TheReply", input);
                self.reply = Some((key.clone(), reply.clone().unwrap_or_else(|_| parse_quote!(()))));
                reply?;
            }
            "version" => {
                // Counts as given even if its value is wrong, so that `upgrade` is not reported too.
                self.version = Some(1);
                self.version = Some(keys::version(key, input)?);
            }
            "upgrade" => self.upgrade = Some((key.clone(), keys::path(key, "from_earlier", input)?)),
            "name" => self.name = keys::name(key, "\"shop.order\"", input)?.value(),
            "crate" => self.krate = Krate::parse_value(key, input)?,
            _ => self.roles.add(key.clone()),
        }
        Ok(())
    }

    fn validate(&self, item: &DeriveInput, mistakes: &mut Mistakes) {
        if let Data::Union(data) = &item.data {
            mistakes.at(data.union_token, "an event cannot be a union: write a struct or an enum");
        }
        for lifetime in item.generics.lifetimes() {
            let message =
                format!("an event owns its data: leave out `{}` and hold owned values", lifetime.lifetime);
            mistakes.at(lifetime, message);
        }
        self.roles.validate(mistakes);
        self.validate_request(mistakes);
        if let (None, Some((key, _))) = (self.version, &self.upgrade) {
            let message = "an upgrade leads to a version: write `version = 2, upgrade = …`";
            mistakes.at(key, message);
        }
    }

    fn validate_request(&self, mistakes: &mut Mistakes) {
        match (self.roles.given("request"), &self.reply) {
            (Some(request), None) => {
                mistakes.at(
                    request,
                    "a request says what it is answered with: write `request, reply = TheReply`",
                );
            }
            (None, Some((key, _))) => {
                mistakes.at(key, "only a request has a reply: write `request, reply = TheReply`");
            }
            _ => {}
        }
    }
}

/// Whether the item could be an event, whatever its attributes are.
pub(crate) fn can_be_event(item: &DeriveInput) -> bool {
    !matches!(item.data, Data::Union(_)) && item.generics.lifetimes().next().is_none()
}
