//! A place in the user's code: the span from one token to another, which stable Rust cannot make. Tokens that
//! begin and end there are reported as all of it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// Where something stands.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    start: Span,
    end: Span,
}

impl Place {
    /// Where these tokens stand.
    pub(crate) fn of(tokens: impl ToTokens) -> Self {
        let mut spans = tokens.into_token_stream().into_iter().map(|tree| tree.span());
        let start = spans.next().unwrap_or_else(Span::call_site);
        Self { start, end: spans.last().unwrap_or(start) }
    }

    /// `path::name`, reported here.
    pub(crate) fn path(self, path: impl ToTokens, name: &str) -> TokenStream {
        let path = respan(path, self.start);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #path::#name)
    }

    /// `path::<ty>::name`, reported at the beginning of this place. The type stays where it is.
    pub(crate) fn generic(self, path: impl ToTokens, ty: impl ToTokens, name: &str) -> TokenStream {
        let path = respan(path, self.start);
        let name = Ident::new(name, self.start);
        quote_spanned!(self.start=> #path::<#ty>::#name)
    }

    /// `<wrapper<ty>>::name`, reported here.
    pub(crate) fn inherent(self, wrapper: impl ToTokens, ty: impl ToTokens, name: &str) -> TokenStream {
        let open = quote_spanned!(self.start=> <);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #open #wrapper<#ty>>::#name)
    }

    /// `<ty as bound>::name`, reported here.
    pub(crate) fn associated(self, ty: impl ToTokens, bound: impl ToTokens, name: &str) -> TokenStream {
        let open = quote_spanned!(self.start=> <);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #open #ty as #bound>::#name)
    }

    /// `function(arguments)`, reported here.
    pub(crate) fn call(self, function: impl ToTokens, arguments: impl ToTokens) -> TokenStream {
        let arguments = quote_spanned!(self.end=> (#arguments));
        quote!(#function #arguments)
    }

    /// A local variable of generated code, reported here.
    pub(crate) fn local(self, name: &str) -> Ident {
        Ident::new(name, self.hidden())
    }

    /// The span of generated code that is reported here, and that lints for the user's code pass over.
    pub(crate) fn hidden(self) -> Span {
        Span::mixed_site().located_at(self.start)
    }
}

/// The same tokens, all of them at one span; what stands in a group stays where it is.
fn respan(tokens: impl ToTokens, span: Span) -> TokenStream {
    let at = |mut tree: TokenTree| {
        tree.set_span(span);
        tree
    };
    tokens.into_token_stream().into_iter().map(at).collect()
}
