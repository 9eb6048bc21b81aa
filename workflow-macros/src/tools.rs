//! `#[tools]` on an impl block: emits the block itself, and a `ToolSet` of its `#[tool]` methods that share the value.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Item;

use crate::keys::Keys;
use crate::krate::Krate;
use crate::mistakes::Mistakes;
use crate::tool::unchanged;

mod block;
mod generate;
mod validate;

const STRAY: &str = "`#[tools]` works on an impl block: write it above `impl TheTools { … }`";

/// Parses, validates and generates. A block with mistakes remains a set of tools for the rest of the program.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let block = match syn::parse2(item.clone()) {
        Ok(Item::Impl(block)) => block,
        Ok(_) => return unchanged(item, STRAY),
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#item #error);
        }
    };
    let mut mistakes = Mistakes::default();
    let krate = krate(arguments, &mut mistakes);
    let block = block::parse(block, &mut mistakes);
    validate::validate(&block, &mut mistakes);
    let (item, names, set) = (&block.item, block.attribute_name(), generate::tool_set(&krate, &block));
    quote!(#item #names #set #mistakes)
}

fn krate(arguments: TokenStream, mistakes: &mut Mistakes) -> Krate {
    let mut krate = Krate::agent();
    Keys::new(&["crate"]).read(arguments, mistakes, |key, input| {
        krate = Krate::parse_value(key, input)?;
        Ok(())
    });
    krate
}
