//! Types that stand in for themselves only if they can. A type that cannot stand where it is used is reported
//! once, where a call needs it; everywhere else generated code goes through one of these, which makes something
//! harmless of it. Which is which, the compiler finds out.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Generics, Type};

use crate::krate::Krate;

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
