//! Stand-ins for types that cannot stand where they are used. The compiler reports such a type once, where a
//! call needs it. Everywhere else generated code goes through a stand-in, which is harmless for an unusable
//! type. The compiler decides which types are usable.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Generics, Type};

use crate::krate::Krate;

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
        quote!(#krate::#wrapper::<#ty, { use #krate::Unusable as _; #krate::Kind::<#ty>::#answer }>)
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
