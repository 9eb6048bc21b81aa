//! Places in the user's code: a span from one token to another, which stable Rust cannot make. If the first
//! and the last token of an expression have the right spans, the compiler reports the whole place.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// A place: the spans of its first and last token.
#[derive(Clone, Copy)]
pub(crate) struct SpanRange {
    start: Span,
    end: Span,
}

impl SpanRange {
    /// The place of these tokens.
    pub(crate) fn of(tokens: impl ToTokens) -> Self {
        let mut spans = tokens.into_token_stream().into_iter().map(|tree| tree.span());
        let start = spans.next().unwrap_or_else(Span::call_site);
        Self { start, end: spans.last().unwrap_or(start) }
    }

    /// `path::name`, whose errors point here.
    pub(crate) fn path(self, path: impl ToTokens, name: &str) -> TokenStream {
        let path = respan(path, self.start);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #path::#name)
    }

    /// `path::<ty>::name`, whose errors point at the beginning of this place. The type keeps its own place.
    pub(crate) fn generic(self, path: impl ToTokens, ty: impl ToTokens, name: &str) -> TokenStream {
        let path = respan(path, self.start);
        let name = Ident::new(name, self.start);
        quote_spanned!(self.start=> #path::<#ty>::#name)
    }

    /// `<wrapper<ty>>::name`, whose errors point here.
    pub(crate) fn inherent(self, wrapper: impl ToTokens, ty: impl ToTokens, name: &str) -> TokenStream {
        let open = quote_spanned!(self.start=> <);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #open #wrapper<#ty>>::#name)
    }

    /// `<ty as bound>::name`, whose errors point here.
    pub(crate) fn associated(self, ty: impl ToTokens, bound: impl ToTokens, name: &str) -> TokenStream {
        let open = quote_spanned!(self.start=> <);
        let name = Ident::new(name, self.end);
        quote_spanned!(self.end=> #open #ty as #bound>::#name)
    }

    /// `function(arguments)`, whose errors point here.
    pub(crate) fn call(self, function: impl ToTokens, arguments: impl ToTokens) -> TokenStream {
        let arguments = quote_spanned!(self.end=> (#arguments));
        quote!(#function #arguments)
    }

    /// A local variable of generated code, whose errors point here.
    pub(crate) fn local(self, name: &str) -> Ident {
        Ident::new(name, self.hidden())
    }

    /// The span of generated code whose errors point here, and that lints on user code ignore.
    pub(crate) fn hidden(self) -> Span {
        Span::mixed_site().located_at(self.start)
    }
}

/// The same tokens at one span. The contents of groups keep their own places.
fn respan(tokens: impl ToTokens, span: Span) -> TokenStream {
    let at = |mut tree: TokenTree| {
        tree.set_span(span);
        tree
    };
    tokens.into_token_stream().into_iter().map(at).collect()
}
