//! Stand-ins for types that cannot stand where they are used. The compiler reports such a type once, where a
//! call needs it. Everywhere else generated code goes through a stand-in, which is harmless for an unusable
//! type. The compiler decides which types are usable.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::visit_mut::VisitMut;
use syn::{GenericArgument, Generics, Path, PathArguments, Type};

use crate::krate::Krate;
use crate::span_range::SpanRange;

/// The use of a type, which decides the trait that it needs.
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
        quote!(#krate::#wrapper::<#ty, { use #krate::Unusable as _; #krate::Probe::<#ty>::#answer }>)
    }
}

/// Brings the answers for unusable types into scope.
pub(crate) fn stand_ins(krate: &Krate) -> TokenStream {
    quote! {
        #[allow(unused_imports, reason = "whether a type needs a stand-in, only the compiler knows")]
        use #krate::Unusable as _;
    }
}

/// Whether the types depend on generic parameters, so that constants cannot ask about them.
pub(crate) fn is_generic(generics: &Generics) -> bool {
    generics.type_params().next().is_some() || generics.const_params().next().is_some()
}

/// The types that a block has named so far. What keeps one from being an event is one mistake, which is reported
/// by its derive or where the type is first named.
pub(crate) struct Mentions {
    generic: bool,
    /// Whether what stands where a type was first named can stand there.
    first: HashMap<String, TokenStream>,
    /// What has been asked.
    asked: HashSet<String>,
}

impl Mentions {
    /// None so far, in an item with these generics.
    pub(crate) fn new(generics: &Generics) -> Self {
        Self { generic: is_generic(generics), first: HashMap::new(), asked: HashSet::new() }
    }

    /// Asks whether a type can be a parameter, and has the compiler say where it stands that it cannot: of a type in an
    /// `Option` there. What has been asked before is asked no more.
    pub(crate) fn ask_input(&mut self, krate: &Krate, ty: &Type) -> Vec<TokenStream> {
        let usable = |ty: &Type| quote!(#krate::Fill::<#ty>::IS_INPUT);
        self.ask(krate, ty, &quote!(#krate::StepInput), &["Option"], &usable)
    }

    /// The same of what is returned, and of the types in it.
    pub(crate) fn ask_output(&mut self, krate: &Krate, ty: &Type) -> Vec<TokenStream> {
        let usable = |ty: &Type| quote!(#krate::Probe::<#ty>::IS_OUTPUT);
        self.ask(krate, ty, &quote!(#krate::StepOutput), &["Option", "Vec", "Result"], &usable)
    }

    fn ask(
        &mut self,
        krate: &Krate,
        ty: &Type,
        bound: &TokenStream,
        around: &[&str],
        usable: &dyn Fn(&Type) -> TokenStream,
    ) -> Vec<TokenStream> {
        let place = SpanRange::of(ty);
        if self.generic {
            return vec![place.associated(ty, bound, "SPEC")];
        }
        let inner = inner(ty).filter(|(name, _)| around.iter().any(|around| name == around));
        let (mut asked, conditions) = match inner {
            Some((_, inner)) => (self.ask(krate, inner, bound, around, usable), vec![usable(inner)]),
            None => (Vec::new(), self.conditions(krate, ty, usable)),
        };
        if conditions.is_empty() {
            asked.push(place.associated(ty, bound, "SPEC"));
        } else if self.asked.insert(quote!(#ty #bound).to_string()) {
            let ty = quote!(#krate::Asked::<#ty, { #(#conditions)&&* }>);
            asked.push(place.associated(place.associated(ty, quote!(#krate::Ask), "Type"), bound, "SPEC"));
        }
        asked
    }

    /// For each name in the type, whether what it lacks has not been reported.
    fn conditions(
        &mut self,
        krate: &Krate,
        ty: &Type,
        usable: &dyn Fn(&Type) -> TokenStream,
    ) -> Vec<TokenStream> {
        let mut named = Named::default();
        named.visit_type_mut(&mut ty.clone());
        let conditions = named.0.iter().map(|path| {
            let first = match self.first.entry(quote!(#path).to_string()) {
                Entry::Occupied(first) => first.get().clone(),
                Entry::Vacant(vacant) => {
                    vacant.insert(usable(ty));
                    quote!(true)
                }
            };
            quote!(#krate::is_asked(#krate::Probe::<#path>::DERIVED, #first))
        });
        conditions.collect()
    }
}

/// The name of a generic type, and its first argument.
fn inner(ty: &Type) -> Option<(&Ident, &Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some((&last.ident, inner)),
        _ => None,
    }
}

/// The paths in a type that may be the names of events: those without arguments, but for those of the language.
#[derive(Default)]
struct Named(Vec<Path>);

impl VisitMut for Named {
    fn visit_path_mut(&mut self, path: &mut Path) {
        let Some(last) = path.segments.last_mut() else { return };
        let name = last.ident.to_string();
        let is_type = name != "String" && name != "Self" && name.starts_with(char::is_uppercase);
        let is_name = is_type && !is_constant(&name);
        if last.arguments.is_none() && is_name {
            self.0.push(path.clone());
        } else if let PathArguments::AngleBracketed(arguments) = &mut last.arguments {
            // Errors, configuration and counts are no events.
            let events = match name.as_str() {
                "Config" => 0,
                "Result" | "FixedList" => 1,
                _ => usize::MAX,
            };
            arguments
                .args
                .iter_mut()
                .take(events)
                .for_each(|argument| self.visit_generic_argument_mut(argument));
        }
    }
}

/// Whether a name looks like that of a constant, which a generic argument may be: `SIZE`. A name of one letter may be a
/// type.
fn is_constant(name: &str) -> bool {
    name.len() > 1
        && name.chars().all(|letter| letter == '_' || letter.is_uppercase() || letter.is_ascii_digit())
}
