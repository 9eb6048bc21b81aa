//! Types that stand in for themselves only if they can. A type that cannot stand where it is used is reported
//! once, where a call needs it; everywhere else generated code goes through one of these, which makes something
//! harmless of it. Which is which, the compiler finds out.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Generics, Path, Type};

use crate::krate::Krate;
use crate::place::Place;

/// Where a type stands, and so which trait it needs.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Output,
    Member,
}

impl Use {
    /// The stand-in for the type.
    pub(crate) fn of(self, krate: &Krate, ty: &Type) -> TokenStream {
        let (wrapper, answer) = match self {
            Self::Output => (quote!(AsOutput), quote!(IS_OUTPUT)),
            Self::Member => (quote!(AsMember), quote!(IS_MEMBER)),
        };
        quote!(#krate::#wrapper::<#ty, { use #krate::Unusable as _; #krate::Kind::<#ty>::#answer }>)
    }
}

/// Brings into scope what answers for types that cannot stand where they are used.
pub(crate) fn stand_ins(krate: &Krate) -> TokenStream {
    quote! {
        #[allow(unused_imports, reason = "whether a type needs a stand-in, only the compiler knows")]
        use #krate::Unusable as _;
    }
}

/// Whether constants can ask what a type is: not where it may depend on a parameter.
pub(crate) fn is_generic(generics: &Generics) -> bool {
    generics.type_params().next().is_some() || generics.const_params().next().is_some()
}

/// The types that a block has named so far. What keeps one from being an event is one mistake, which is reported
/// by its derive or where the type is first named.
pub(crate) struct Mentions {
    generic: bool,
    /// Whether the place where a type was first named can have what stands there.
    first: HashMap<String, TokenStream>,
    /// What has been asked.
    asked: HashSet<String>,
}

impl Mentions {
    /// None so far, in an item with these generics.
    pub(crate) fn new(generics: &Generics) -> Self {
        Self { generic: is_generic(generics), first: HashMap::new(), asked: HashSet::new() }
    }

    /// Asks whether a type can be a parameter, or be returned, and says where it stands that it cannot. What
    /// has been asked before is asked no more.
    pub(crate) fn ask(&mut self, krate: &Krate, ty: &Type, bound: &str) -> Option<TokenStream> {
        let place = Place::of(ty);
        let (bound, usable) = match bound {
            "input" => (quote!(#krate::StepInput), quote!(#krate::Fill::<#ty>::IS_INPUT)),
            _ => (quote!(#krate::StepOutput), quote!(#krate::Kind::<#ty>::IS_OUTPUT)),
        };
        let mut named = Named::default();
        named.visit_type_mut(&mut ty.clone());
        if self.generic || named.0.is_empty() {
            return Some(place.associated(ty, bound, "SPEC"));
        }
        if !self.asked.insert(quote!(#ty #bound).to_string()) {
            return None;
        }
        let asked = named.0.iter().map(|path| match self.first.entry(quote!(#path).to_string()) {
            Entry::Occupied(first) => {
                let first = first.get();
                quote!(#krate::is_asked(#krate::Kind::<#path>::DERIVED, #first))
            }
            Entry::Vacant(vacant) => {
                vacant.insert(usable.clone());
                quote!(#krate::is_asked(#krate::Kind::<#path>::DERIVED, true))
            }
        });
        let asked = quote!(#krate::Asked::<#ty, { #(#asked)&&* }>);
        Some(place.associated(place.associated(asked, quote!(#krate::Ask), "Type"), bound, "SPEC"))
    }
}

/// The paths in a type that may be the names of events: those without arguments, but for those of the language.
#[derive(Default)]
struct Named(Vec<Path>);

impl VisitMut for Named {
    fn visit_path_mut(&mut self, path: &mut Path) {
        let is_event =
            |name: String| name != "String" && name != "Self" && name.starts_with(char::is_uppercase);
        let last = path.segments.last().filter(|last| last.arguments.is_none());
        if last.is_some_and(|last| is_event(last.ident.to_string())) {
            self.0.push(path.clone());
        }
        visit_mut::visit_path_mut(self, path);
    }
}
