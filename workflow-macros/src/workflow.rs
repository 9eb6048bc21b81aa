//! `#[workflow]` on an impl block: emits the block itself, a constant table of its steps, and the shims that
//! call them.
//!
//! ```text
//!  impl block ─ block ─▶ block without our attributes ───────────────────▶ emitted unchanged
//!                 └────▶ definition ─ validate ─▶ generate ─▶ impl Workflow: table, call, check, compact
//!                                                        └──▶ graph: one constant per place that may be wrong
//! ```

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

/// Parses, validates and generates. A block with mistakes remains a workflow for the rest of the program, and
/// the compiler still checks its correct parts.
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

/// Reports a `#[step]` that no `#[workflow]` has read.
pub(crate) fn stray_step(item: &TokenStream) -> TokenStream {
    let message = renamed::instead_of("step", "workflow").unwrap_or_else(|| STRAY_STEP.to_owned());
    unchanged(item, &Error::new(Span::call_site(), message))
}

fn unchanged(item: &TokenStream, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#item #error)
}
