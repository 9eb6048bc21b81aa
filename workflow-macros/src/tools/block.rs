//! Splits the impl block into the block to emit, without our attributes, and the tools in it.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned as _;
use syn::{Generics, ImplItem, ImplItemFn, ItemImpl, Path, parse_quote};

use crate::mistakes::Mistakes;
use crate::tool;
use crate::tool::attribute;
use crate::tool::definition::Definition;

/// An impl block without our attributes, and its tools.
pub(super) struct Block {
    pub(super) item: ItemImpl,
    pub(super) tools: Vec<Definition>,
    /// The path of the first `#[tool]`.
    name: Option<Path>,
}

/// Removes our attributes from the block.
pub(super) fn parse(mut item: ItemImpl, mistakes: &mut Mistakes) -> Block {
    let (mut tools, mut name, generics) = (Vec::new(), None, item.generics.clone());
    for method in item.items.iter_mut().filter_map(method) {
        tools.extend(read(method, &generics, &mut name, mistakes));
    }
    Block { item, tools, name }
}

impl Block {
    /// Mentions `#[tool]` once more, since the emitted block lacks it and its import would look unused.
    pub(super) fn attribute_name(&self) -> Option<TokenStream> {
        let name = self.name.as_ref()?;
        Some(quote_spanned! {name.span()=>
            const _: () = {
                #[allow(unused_imports, reason = "a path that needs no import is just as good")]
                use #name as _;
            };
        })
    }
}

fn method(item: &mut ImplItem) -> Option<&mut ImplItemFn> {
    match item {
        ImplItem::Fn(method) => Some(method),
        _ => None,
    }
}

fn read(
    method: &mut ImplItemFn,
    generics: &Generics,
    name: &mut Option<Path>,
    mistakes: &mut Mistakes,
) -> Option<Definition> {
    let attributes = tool::take(&mut method.attrs);
    let (first, surplus) = attributes.split_first()?;
    name.get_or_insert_with(|| first.path().clone());
    tool::reject_twins(surplus, mistakes);
    let values = attribute::parse_attribute(first, mistakes);
    let definition = Definition::read(values, &method.attrs, &mut method.sig, generics, mistakes);
    // Comes first, so that a lint level of the user follows and takes precedence.
    let levels = parse_quote! {
        #[allow(
            clippy::unused_async,
            clippy::too_many_arguments,
            clippy::unused_self,
            reason = "a tool is async whether or not it waits, and has a parameter for each argument"
        )]
    };
    method.attrs.insert(0, levels);
    Some(definition)
}
