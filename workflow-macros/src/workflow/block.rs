//! Splits the impl block into the block to emit and our attributes in it.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, ImplItem, ImplItemFn, ItemImpl, Path, Type, parse_quote};

/// The types of the library's parameters that wire nothing.
const INJECTED: &[&str] =
    &["RunContext", "ThreadContext", "Config", "Display", "Children", "Cancellation", "RunInfo", "Emitter"];

/// An impl block without our attributes, and the methods that had them.
pub(crate) struct Block {
    pub(crate) item: ItemImpl,
    pub(crate) marked: Vec<Marked>,
}

/// A method that had attributes of ours.
pub(crate) struct Marked {
    index: usize,
    pub(crate) steps: Vec<Attribute>,
    pub(crate) preconditions: Vec<Attribute>,
}

/// Removes our attributes from the block.
pub(crate) fn parse(mut item: ItemImpl) -> Block {
    let items = item.items.iter_mut().enumerate();
    let marked = items.filter_map(|(index, item)| match item {
        ImplItem::Fn(method) => mark(index, method),
        _ => None,
    });
    let marked = marked.collect();
    Block { item, marked }
}

impl Block {
    /// The marked method.
    pub(crate) fn method(&self, marked: &Marked) -> &ImplItemFn {
        match &self.item.items[marked.index] {
            ImplItem::Fn(method) => method,
            _ => unreachable!("only methods are marked"),
        }
    }

    /// Mentions our attributes once more, since the emitted block lacks them and their imports would look
    /// unused.
    pub(crate) fn attribute_names(&self) -> TokenStream {
        let steps = self.marked.iter().find_map(|marked| marked.steps.first());
        let preconditions = self.marked.iter().find_map(|marked| marked.preconditions.first());
        let names = steps.into_iter().chain(preconditions).map(Attribute::path);
        names.map(named_again).collect()
    }

    /// All methods of the block, marked or not.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &ImplItemFn> {
        self.item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) => Some(method),
            _ => None,
        })
    }

    /// Whether the block has a method of this name, marked or not.
    pub(crate) fn has_method(&self, name: &syn::Ident) -> bool {
        self.methods().any(|method| method.sig.ident == *name)
    }
}

fn named_again(name: &Path) -> TokenStream {
    quote_spanned! {name.span()=>
        const _: () = {
            #[allow(unused_imports, reason = "a path that needs no import is just as good")]
            use #name as _;
        };
    }
}

fn mark(index: usize, method: &mut ImplItemFn) -> Option<Marked> {
    let steps = take(&mut method.attrs, "step");
    let preconditions = take(&mut method.attrs, "precondition");
    if !steps.is_empty() {
        // Comes first, so that a lint level of the user follows and takes precedence.
        let levels = parse_quote! {
            #[allow(
                clippy::unused_async,
                clippy::too_many_arguments,
                reason = "a step is async whether or not it waits, and has a parameter for all it needs"
            )]
        };
        method.attrs.insert(0, levels);
        method.sig.inputs.iter_mut().for_each(allow_to_wire);
    }
    let marked = !steps.is_empty() || !preconditions.is_empty();
    marked.then_some(Marked { index, steps, preconditions })
}

/// A parameter that takes events does its part where the body does not use it: it wires the step.
fn allow_to_wire(input: &mut FnArg) {
    if let FnArg::Typed(parameter) = input
        && !is_injected(&parameter.ty)
    {
        let reason = "a parameter for an event wires its step, used or not";
        parameter.attrs.insert(0, parse_quote!(#[allow(unused_variables, reason = #reason)]));
    }
}

/// Whether it is one of the library's injectables, by the name of its type.
fn is_injected(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_injected(&reference.elem),
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| INJECTED.iter().any(|name| last.ident == name))
        }
        _ => false,
    }
}

fn take(attributes: &mut Vec<Attribute>, name: &str) -> Vec<Attribute> {
    let ours = |attribute: &mut Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
    };
    attributes.extract_if(.., ours).collect()
}
