//! `#[precondition]` on a free function. The macro also makes a type of the same name. So the key
//! `precondition = path::to::it` finds both the function's inputs and the way to ask it. `#[workflow]` reads
//! the preconditions that are methods.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Error, ItemFn};

use crate::function::Function;
use crate::function::signature::validate_precondition;
use crate::keys::Keys;
use crate::krate::Krate;
use crate::mistakes::Mistakes;
use crate::renamed;
use crate::usable::{self, Mentions};

const STRAY: &str =
    "`#[precondition]` works on free functions, and on methods of an impl block that carries `#[workflow]`";

/// Parses, validates and generates. After a mistake, emits the function unchanged.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let krate = krate(arguments, &mut mistakes);
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        mistakes.push(Error::new(Span::call_site(), STRAY));
        return quote!(#item #mistakes);
    };
    if function.sig.receiver().is_some() {
        let message = renamed::instead_of("precondition", "workflow").unwrap_or_else(|| STRAY.to_owned());
        mistakes.push(Error::new(Span::call_site(), message));
    } else {
        validate_precondition(&function.sig, &mut mistakes);
    }
    let implementation =
        if mistakes.is_empty() { implement(&krate, &function) } else { fallback(&krate, &function) };
    quote!(#item #implementation #mistakes)
}

fn krate(arguments: TokenStream, mistakes: &mut Mistakes) -> Krate {
    let mut krate = Krate::default();
    Keys::new(&["crate"]).read(arguments, mistakes, |key, input| {
        krate = Krate::parse_value(key, input)?;
        Ok(())
    });
    krate
}

fn implement(krate: &Krate, item: &ItemFn) -> TokenStream {
    let function = Function::free(&item.sig);
    let ident = function.ident();
    let call = Ident::new("call", Span::mixed_site());
    let check = function.check(krate, &quote!(#ident), &call, &call);
    let (inputs, stand_ins) = (function.inputs(krate), usable::stand_ins(krate));
    let asserted = function.asserted(krate, &mut Mentions::new(&item.sig.generics));
    shadow(krate, item, &quote!({ #stand_ins #inputs }), &call, &quote!(#stand_ins #asserted #check))
}

/// Makes a precondition that says no, so that the steps that name it are not reported too.
fn fallback(krate: &Krate, item: &ItemFn) -> TokenStream {
    if item.sig.receiver().is_some() {
        return TokenStream::new();
    }
    let call = Ident::new("_call", Span::mixed_site());
    let check = quote!(#krate::Check::Answered(#krate::Ok(false)));
    shadow(krate, item, &quote!(&[]), &call, &check)
}

/// Makes the type beside the function. Types and functions have separate namespaces, so one `use` imports
/// both. The type has no values, and its name is the function's rather than one by the naming rules.
fn shadow(
    krate: &Krate,
    item: &ItemFn,
    inputs: &TokenStream,
    call: &Ident,
    check: &TokenStream,
) -> TokenStream {
    let (vis, mut ident) = (&item.vis, item.sig.ident.clone());
    let name = ident.unraw().to_string();
    ident.set_span(ident.span().resolved_at(Span::mixed_site()));
    quote! {
        #[doc(hidden)]
        #[derive(::core::fmt::Debug)]
        #[non_exhaustive]
        #vis enum #ident {}

        #[automatically_derived]
        impl #krate::Precondition for #ident {
            const NAME: &'static str = #name;
            const INPUTS: &'static [#krate::InputSpec] = #inputs;

            fn check(#call: &mut #krate::StepCall) -> #krate::Check {
                #check
            }
        }
    }
}
