//! The declaration of one tool, free function or method: read from its attributes and its signature, and checked.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::{Attribute, Generics, ReturnType, Signature, Type, parse_quote_spanned};

use super::attribute::{self, ToolAttribute};
use super::parameter::{self, Parameter};
use super::signature;
use crate::docs;
use crate::mistakes::Mistakes;

/// A tool as declared.
pub(crate) struct Definition {
    pub(crate) attribute: ToolAttribute,
    /// The attributes of the function, without ours.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) ident: Ident,
    pub(crate) parameters: Vec<Parameter>,
    /// The return type.
    pub(crate) output: Type,
    /// Whether the first parameter is `self`.
    pub(crate) has_self: bool,
    /// Whether generated code can call the function and name the types of its parameters.
    pub(crate) is_clear: bool,
}

impl Definition {
    /// Reads a tool in an item with these generics. Removes from the parameters the attributes that are for us.
    pub(crate) fn read(
        attribute: ToolAttribute,
        attributes: &[Attribute],
        signature: &mut Signature,
        generics: &Generics,
        mistakes: &mut Mistakes,
    ) -> Self {
        validate_docs(attributes, &signature.ident, mistakes);
        validate_name(&attribute, &signature.ident, mistakes);
        let earlier = mistakes.count();
        signature::validate(signature, mistakes);
        let parameters = parameter::take(signature, generics, mistakes);
        let is_clear = mistakes.count() == earlier && !parameter::has_twins(&parameters);
        Self {
            attribute,
            attributes: attributes.to_vec(),
            ident: signature.ident.clone(),
            parameters,
            output: output(signature),
            has_self: signature.receiver().is_some(),
            is_clear,
        }
    }

    /// The name of the tool for the model.
    pub(crate) fn name(&self) -> String {
        let own = || self.ident.unraw().to_string();
        self.attribute.name.as_ref().map_or_else(own, syn::LitStr::value)
    }

    /// The `cfg` attributes of the function.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }
}

fn validate_docs(attributes: &[Attribute], ident: &Ident, mistakes: &mut Mistakes) {
    if docs::parts(attributes).is_empty() {
        let message = "a tool needs a doc comment: the model reads it";
        mistakes.at(ident, message);
    }
}

fn validate_name(values: &ToolAttribute, ident: &Ident, mistakes: &mut Mistakes) {
    let own = ident.unraw().to_string();
    if values.name.is_none()
        && let Some(misfit) = attribute::misfit(&own)
    {
        mistakes.at(ident, format!("{misfit}: write `#[tool(name = \"…\")]`"));
    }
}

fn output(signature: &Signature) -> Type {
    match &signature.output {
        ReturnType::Default => parse_quote_spanned!(signature.ident.span()=> ()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    }
}
