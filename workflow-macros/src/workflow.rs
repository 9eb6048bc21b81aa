//! `#[workflow]` on an impl block: the block as it stands, a static table of its steps, and the shim that
//! calls them.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Item};

use crate::mistakes::Mistakes;
use crate::renamed;

mod arguments;
mod attribute;
mod block;
mod call;
mod definition;
mod generate;
mod graph;
mod output;
mod table;
mod validate;

const STRAY_WORKFLOW: &str = "`#[workflow]` works on an impl block: write it above `impl TheWorkflow { … }`";
const STRAY_STEP: &str = "`#[step]` works only on methods of an impl block that carries `#[workflow]`";

/// Parse, validate, generate. A block with mistakes stays a workflow as far as the rest of the program can
/// tell, and what is right of it is checked with what the compiler knows.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let block = match syn::parse2(item.clone()) {
        Ok(Item::Impl(block)) => block,
        Ok(_) => return unchanged(item, &Error::new(Span::call_site(), STRAY_WORKFLOW)),
        Err(error) => return unchanged(item, &error),
    };
    let mut mistakes = Mistakes::default();
    let arguments = arguments::parse(arguments, &mut mistakes);
    let block = block::parse(block);
    let definition = definition::parse(&block, &arguments, &mut mistakes);
    validate::validate(&definition, &mut mistakes);
    let (item, names) = (&block.item, block.attribute_names());
    let implementation = generate::workflow(&definition);
    quote!(#item #names #implementation #mistakes)
}

/// `#[step]` where no `#[workflow]` has read it.
pub(crate) fn stray_step(item: &TokenStream) -> TokenStream {
    let message = renamed::instead_of("step").unwrap_or_else(|| STRAY_STEP.to_owned());
    unchanged(item, &Error::new(Span::call_site(), message))
}

fn unchanged(item: &TokenStream, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#item #error)
}
