//! Generates `impl ToolSet`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Generics, ItemImpl};

use super::block::Block;
use crate::krate::Krate;
use crate::levels::level;
use crate::span_range::SpanRange;
use crate::tool::generate::{self, Call};

/// Generates the set; nothing for a block that can never be one.
pub(super) fn tool_set(krate: &Krate, block: &Block) -> TokenStream {
    let item = &block.item;
    if item.trait_.is_some() {
        return TokenStream::new();
    }
    let this = Ident::new("_this", Span::mixed_site());
    // A lifetime has been reported, and could not be shared.
    let usable = block.tools.iter().filter(|_| item.generics.lifetimes().next().is_none());
    let tools = usable.map(|tool| {
        let (conditions, ident) = (tool.conditions(), &tool.ident);
        let call = Call { callee: quote!(Self::#ident), this: Some(this.clone()) };
        let tool = generate::tool(krate, tool, &call);
        quote!(#(#conditions)* #krate::shared(#tool))
    });
    let (generics, self_ty) = (shared(krate, item), &item.self_ty);
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let levels = item.attrs.iter().filter_map(level);
    quote! {
        #[automatically_derived]
        #[allow(deprecated, reason = "a tool may be deprecated where it is called by hand")]
        #(#levels)*
        impl #impl_generics #krate::ToolSet for #self_ty #where_clause {
            fn into_tools(self) -> #krate::Vec<#krate::Arc<dyn #krate::Tool>> {
                let #this = #krate::Arc::new(self);
                #krate::Vec::from([#(#tools),*])
            }
        }
    }
}

/// The generics of the block. Calls share the value between threads: the compiler reports at the type if that cannot be,
/// and nowhere else.
fn shared(krate: &Krate, item: &ItemImpl) -> Generics {
    let (mut generics, self_ty) = (item.generics.clone(), &item.self_ty);
    let (place, predicates) = (SpanRange::of(self_ty), &mut generics.make_where_clause().predicates);
    let (send, sync) = (place.path(krate, "Send"), place.path(krate, "Sync"));
    if item.generics.lifetimes().next().is_none() {
        predicates.push(syn::parse_quote!(#self_ty: #send + #sync + 'static));
    }
    generics
}
