//! `#[tool]` on a free function, and the parts that it shares with `#[tools]`.
//!
//! ```text
//!  async fn ─ definition ─ validate ─▶ generate ─▶ the function, inside one of the same name that returns a `ToolFuture`
//!                                            ├──▶ a hidden type, which that future names
//!                                            └──▶ impl ToolFunction: arguments, specification, call
//! ```
//!
//! A function stays a function. A constant or a unit struct of its name could implement `Tool` itself and be called
//! through `Deref`, but no variable could have the name of a constant: `let weather = weather(city).await` would not
//! compile anywhere in the module. The type of a function can implement nothing, but its return type can name a type that
//! does. So the generated function returns a future that carries the hidden type, and `IntoTool` finds the tool through it.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Error, Generics, ItemFn};

use crate::krate::Krate;
use crate::mistakes::Mistakes;
use crate::renamed;
use definition::Definition;

pub(crate) mod attribute;
pub(crate) mod definition;
mod function;
pub(crate) mod generate;
mod parameter;
mod signature;

const STRAY: &str =
    "`#[tool]` works on free functions, and on methods of an impl block that carries `#[tools]`";

/// Parses, validates and generates. A function with mistakes remains a tool for the rest of the program.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        return unchanged(item, STRAY);
    };
    if function.sig.receiver().is_some() {
        let message = renamed::instead_of("tool", "tools").unwrap_or_else(|| STRAY.to_owned());
        return unchanged(item, &message);
    }
    let mut mistakes = Mistakes::default();
    reject_twins(&take(&mut function.attrs), &mut mistakes);
    let mut attribute = attribute::parse(arguments, &mut mistakes);
    let krate = attribute.krate.take().map_or_else(Krate::agent, |(_, krate)| krate);
    let definition =
        Definition::read(attribute, &function.attrs, &mut function.sig, &Generics::default(), &mut mistakes);
    let generated = function::generate(&krate, &function, &definition);
    quote!(#generated #mistakes)
}

/// Removes our attributes.
pub(crate) fn take(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let ours = |attribute: &mut Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "tool")
    };
    attributes.extract_if(.., ours).collect()
}

/// Reports attributes beyond the first.
pub(crate) fn reject_twins(surplus: &[Attribute], mistakes: &mut Mistakes) {
    for attribute in surplus {
        mistakes.at(attribute, "this attribute is given twice: write it once");
    }
}

/// The item as it was, and a mistake at the attribute.
pub(crate) fn unchanged(item: &TokenStream, message: &str) -> TokenStream {
    let error = Error::new(Span::call_site(), message).to_compile_error();
    quote!(#item #error)
}
