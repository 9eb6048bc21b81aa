//! Lifetimes in types that move out of a signature, where the method's own lifetimes have no meaning.

use proc_macro2::Span;
use syn::visit_mut::{self, VisitMut};
use syn::{Generics, Lifetime, Type, TypeReference};

/// The type with the method's own lifetimes elided, for expressions.
pub(crate) fn elided(ty: &Type, own: &Generics) -> Type {
    renamed(ty, Rename { own, to: "'_", references: false })
}

/// The type with elided and own lifetimes made static, for associated types, where no lifetime can be elided.
pub(crate) fn made_static(ty: &Type, own: &Generics) -> Type {
    renamed(ty, Rename { own, to: "'static", references: true })
}

fn renamed(ty: &Type, mut rename: Rename<'_>) -> Type {
    let mut ty = ty.clone();
    rename.visit_type_mut(&mut ty);
    ty
}

struct Rename<'a> {
    own: &'a Generics,
    to: &'static str,
    references: bool,
}

impl Rename<'_> {
    fn lifetime(&self, span: Span) -> Lifetime {
        Lifetime::new(self.to, span)
    }

    fn is_own(&self, lifetime: &Lifetime) -> bool {
        lifetime.ident == "_" || self.own.lifetimes().any(|own| own.lifetime == *lifetime)
    }
}

impl VisitMut for Rename<'_> {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if self.is_own(lifetime) {
            *lifetime = self.lifetime(lifetime.span());
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if self.references && reference.lifetime.is_none() {
            reference.lifetime = Some(self.lifetime(reference.and_token.span));
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }
}
