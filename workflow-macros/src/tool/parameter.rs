//! The parameters of a tool: owned ones are arguments of the model, borrowed ones are injected.

use std::collections::HashSet;

use proc_macro2::{Ident, Span};
use quote::format_ident;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, FnArg, GenericParam, Generics, Lifetime, Pat, PatType, Path, Signature, Type, TypeImplTrait,
    TypeReference,
};

use crate::mistakes::Mistakes;

/// A parameter other than `self`.
pub(crate) struct Parameter {
    /// Its name; a made up one for a pattern without a name.
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The doc comments and the attributes of serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
}

impl Parameter {
    /// The type that the parameter borrows, if it borrows one.
    pub(crate) fn injected(&self) -> Option<&Type> {
        match plain(&self.ty) {
            Type::Reference(reference) => Some(&reference.elem),
            _ => None,
        }
    }

    /// Whether attributes replace how the type is read or described, so that it need not implement the traits.
    pub(crate) fn is_replaced(&self) -> bool {
        let replaces = |attribute: &Attribute| {
            let list = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
            ["with", "deserialize_with", "schema_with", "skip", "skip_deserializing", "flatten"]
                .into_iter()
                .any(|key| {
                    list.split(|char: char| !char.is_alphanumeric() && char != '_').any(|word| word == key)
                })
        };
        self.attributes.iter().any(replaces)
    }
}

/// Whether two parameters have one name, which the compiler itself reports.
pub(super) fn has_twins(parameters: &[Parameter]) -> bool {
    let mut seen = HashSet::new();
    !parameters.iter().all(|parameter| seen.insert(&parameter.ident))
}

/// Takes from the parameters the attributes that the compiler does not allow there, and reports every mistake.
pub(super) fn take(
    signature: &mut Signature,
    generics: &Generics,
    mistakes: &mut Mistakes,
) -> Vec<Parameter> {
    let generic = generics.params.iter().filter_map(name_of).cloned().collect();
    // The function's own parameters have been reported where they are declared.
    let lifetimes = signature.generics.lifetimes().map(|own| own.lifetime.clone()).collect();
    let scope = Scope { generic, lifetimes };
    let inputs = signature.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    });
    let read = |(index, parameter)| read(index, parameter, &scope, mistakes);
    inputs.enumerate().map(read).collect()
}

/// The generic parameters in scope.
struct Scope {
    /// The types and constants of the impl block.
    generic: Vec<Ident>,
    /// The lifetimes of the function.
    lifetimes: Vec<Lifetime>,
}

fn name_of(own: &GenericParam) -> Option<&Ident> {
    match own {
        GenericParam::Type(own) => Some(&own.ident),
        GenericParam::Const(own) => Some(&own.ident),
        GenericParam::Lifetime(_) => None,
    }
}

fn read(index: usize, parameter: &mut PatType, scope: &Scope, mistakes: &mut Mistakes) -> Parameter {
    let ours = |attribute: &mut Attribute| {
        ["doc", "serde", "schemars"].into_iter().any(|name| attribute.path().is_ident(name))
    };
    let attributes: Vec<Attribute> = parameter.attrs.extract_if(.., ours).collect();
    let conditional =
        |attribute: &&Attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr");
    for condition in parameter.attrs.iter().filter(conditional) {
        mistakes.at(condition, "an argument cannot be conditional: write the tool once per configuration");
    }
    let name = match &*parameter.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(name.ident.clone()),
        _ => None,
    };
    let made_up = || format_ident!("parameter_{index}", span = Span::mixed_site());
    let read =
        Parameter { ident: name.clone().unwrap_or_else(made_up), ty: (*parameter.ty).clone(), attributes };
    match plain(&parameter.ty) {
        Type::Reference(reference) => validate_injected(reference, &read, scope, mistakes),
        ty => {
            if name.is_none() {
                let message =
                    "the model passes arguments by name: write a name, and take the value apart inside";
                mistakes.at(&parameter.pat, message);
            }
            validate_argument(ty, scope, mistakes);
        }
    }
    read
}

fn validate_injected(
    reference: &TypeReference,
    parameter: &Parameter,
    scope: &Scope,
    mistakes: &mut Mistakes,
) {
    if let Some(owned) = owned(&reference.elem) {
        return mistakes.at(reference, format!("an argument is owned: write `{owned}`"));
    }
    if let Some(lifetime) = &reference.lifetime
        && !scope.lifetimes.contains(lifetime)
    {
        mistakes
            .at(lifetime, format!("a borrowed parameter lives as long as the call: leave out `{lifetime}`"));
    }
    if let Some(mutable) = &reference.mutability {
        mistakes.at(mutable, "a borrowed parameter is shared: leave out `mut`");
    }
    for attribute in &parameter.attributes {
        mistakes.at(attribute, "the model never sees a borrowed parameter: leave this out");
    }
}

/// The owned form of a borrowed type that can only be meant as an argument.
fn owned(borrowed: &Type) -> Option<&'static str> {
    match plain(borrowed) {
        Type::Path(path) if path.path.is_ident("str") => Some("String"),
        Type::Slice(_) => Some("Vec<…>"),
        _ => None,
    }
}

fn validate_argument(ty: &Type, scope: &Scope, mistakes: &mut Mistakes) {
    if let Type::Path(path) = ty
        && path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
    {
        return mistakes.at(ty, "the context is injected, not an argument: borrow it, `&ToolContext`");
    }
    Reject { scope, mistakes }.visit_type_mut(&mut ty.clone());
}

/// The type without parentheses and the invisible groups of macros.
fn plain(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            other => return other,
        };
    }
}

/// Reports the parts of a type that no argument can have.
struct Reject<'a> {
    scope: &'a Scope,
    mistakes: &'a mut Mistakes,
}

impl VisitMut for Reject<'_> {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let message = match owned(&reference.elem) {
            Some(owned) => format!("an argument owns its data: write `{owned}`"),
            None => "an argument owns its data: write the type without `&`".to_owned(),
        };
        self.mistakes.at(reference, message);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident != "static" && !self.scope.lifetimes.contains(lifetime) {
            self.mistakes.at(lifetime, "an argument owns its data: write `'static`, or an owned type");
        }
    }

    fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
        self.mistakes.at(ty, "the type of an argument makes its schema: name it instead of `impl …`");
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        if let Some(first) = path.segments.first() {
            if first.ident == "Self" {
                self.mistakes
                    .at(&first.ident, "the type of an argument makes its schema: name it instead of `Self`");
                return;
            }
            if self.scope.generic.contains(&first.ident) {
                let message = format!(
                    "the type of an argument makes its schema, so it cannot depend on `{}`: name a type",
                    first.ident
                );
                self.mistakes.at(&first.ident, message);
                return;
            }
        }
        visit_mut::visit_path_mut(self, path);
    }
}
