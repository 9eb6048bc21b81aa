//! The declarations of an impl block: its steps and preconditions, in order.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::{Attribute, Generics, ImplItemFn, ItemImpl, Path, Type};

use super::arguments::Arguments;
use super::attribute::{self, StepAttribute};
use super::block::{Block, Marked};
use crate::docs;
use crate::function::{Clear, Function};
use crate::krate::Krate;
use crate::mistakes::Mistakes;
use crate::near::near;

/// A workflow as declared.
pub(crate) struct Definition<'a> {
    pub(crate) block: &'a Block,
    pub(crate) arguments: &'a Arguments,
    pub(crate) steps: Vec<Step<'a>>,
    pub(crate) preconditions: Vec<Method<'a>>,
}

/// A method and its signature.
pub(crate) struct Method<'a> {
    pub(crate) attributes: &'a [Attribute],
    pub(crate) function: Function<'a>,
}

/// A step and its attribute.
pub(crate) struct Step<'a> {
    pub(crate) method: Method<'a>,
    pub(crate) attribute: StepAttribute,
}

/// The precondition of a step.
pub(crate) enum Asked<'a> {
    /// A method of the same block.
    Method(&'a Method<'a>),
    /// A free function, by its path.
    Free(&'a Path),
    /// A precondition that does not exist, which has been reported.
    Nothing,
}

/// Reads the block.
pub(crate) fn parse<'a>(
    block: &'a Block,
    arguments: &'a Arguments,
    mistakes: &mut Mistakes,
) -> Definition<'a> {
    let mut definition = Definition { block, arguments, steps: Vec::new(), preconditions: Vec::new() };
    for marked in &block.marked {
        reject_surplus(marked, mistakes);
        let method = Method::of(block.method(marked), &block.item.generics);
        match (&marked.steps[..], &marked.preconditions[..]) {
            ([first, ..], _) => {
                let attribute = attribute::parse(first, mistakes);
                definition.steps.push(Step { method, attribute });
            }
            (_, attributes) => {
                reject_arguments(attributes, mistakes);
                definition.preconditions.push(method);
            }
        }
    }
    definition
}

fn reject_surplus(marked: &Marked, mistakes: &mut Mistakes) {
    if let ([_, ..], [precondition, ..]) = (&marked.steps[..], &marked.preconditions[..]) {
        let message = "a method is a step or a precondition: leave out `#[step]` or `#[precondition]`";
        mistakes.at(precondition, message);
    }
    let repeated = marked.steps.iter().skip(1).chain(marked.preconditions.iter().skip(1));
    for attribute in repeated {
        mistakes.at(attribute, "this attribute is given twice: write it once");
    }
}

fn reject_arguments(attributes: &[Attribute], mistakes: &mut Mistakes) {
    for list in attributes.iter().filter_map(|attribute| attribute.meta.require_list().ok()) {
        mistakes.at(&list.tokens, "`#[precondition]` on a method takes nothing: write `#[precondition]`");
    }
}

impl<'a> Definition<'a> {
    /// The impl block.
    pub(crate) fn item(&self) -> &'a ItemImpl {
        &self.block.item
    }

    /// The path of the library.
    pub(crate) fn krate(&self) -> &'a Krate {
        &self.arguments.krate
    }

    /// The type of the workflow.
    pub(crate) fn self_ty(&self) -> &'a Type {
        &self.item().self_ty
    }

    /// The stable name of the workflow.
    pub(crate) fn name(&self) -> String {
        match (&self.arguments.name, self.self_ty()) {
            (Some(name), _) => name.value(),
            (None, Type::Path(path)) => {
                path.path.segments.last().map_or_else(String::new, |last| last.ident.unraw().to_string())
            }
            (None, ty) => quote::quote!(#ty).to_string(),
        }
    }

    /// The precondition of the step; `None` without one.
    pub(crate) fn asked(&self, step: &'a Step) -> Option<Asked<'_>> {
        let path = step.attribute.precondition.as_ref()?;
        let Some(name) = associated(path) else { return Some(Asked::Free(path)) };
        if let Some(method) = self.preconditions.iter().find(|method| method.function.ident() == name) {
            return Some(Asked::Method(method));
        }
        let free = path.segments.len() == 1 && !self.block.has_method(name) && self.meant(name).is_none();
        Some(if free { Asked::Free(path) } else { Asked::Nothing })
    }

    /// The precondition that a mistyped name seems to mean: one that no step uses.
    pub(crate) fn meant(&self, mistyped: &Ident) -> Option<&'a Ident> {
        let mut unused = self.preconditions.iter().map(|method| method.function.ident());
        unused.find(|name| !self.names(name) && near(&name.to_string(), &mistyped.to_string()))
    }

    /// The compaction of the step, if its name is that of an unmarked method.
    pub(crate) fn compaction(&self, step: &Step) -> Option<Method<'a>> {
        self.unmarked(step.attribute.compact.as_ref()?)
    }

    /// The method that makes the key of the step at its limit, if its name is that of an unmarked method.
    pub(crate) fn limit_key(&self, step: &Step) -> Option<Method<'a>> {
        self.unmarked(step.attribute.limit_key.as_ref()?)
    }

    /// The method that makes the idempotency key of the step, if its name is that of an unmarked method.
    pub(crate) fn key(&self, step: &Step) -> Option<Method<'a>> {
        self.unmarked(step.attribute.key.as_ref()?)
    }

    /// The method of this name, if it is neither a step nor a precondition.
    fn unmarked(&self, name: &Ident) -> Option<Method<'a>> {
        let found = self.block.methods().find(|method| method.sig.ident == *name)?;
        let is_marked = self.block.marked.iter().any(|marked| self.block.method(marked).sig.ident == *name);
        (!is_marked).then(|| Method::of(found, &self.block.item.generics))
    }

    /// The row of the step with this name.
    pub(crate) fn row_of(&self, step: &Ident) -> Option<usize> {
        self.steps.iter().position(|other| other.method.function.ident() == step)
    }

    /// The rows of the steps that this step catches by name.
    pub(crate) fn caught_by(&self, step: &Step) -> Vec<usize> {
        let names = step.attribute.catches.iter().flat_map(|catches| &catches.names);
        let own = step.method.function.ident();
        let mut rows: Vec<usize> =
            names.filter(|name| *name != own).filter_map(|name| self.row_of(name)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Whether a step names this precondition of the block.
    pub(crate) fn names(&self, precondition: &Ident) -> bool {
        let paths = self.steps.iter().filter_map(|step| step.attribute.precondition.as_ref());
        paths.filter_map(associated).any(|name| name == precondition)
    }
}

/// The name of a function of the block, if the path can mean one: `ready` or `Self::ready`.
pub(crate) fn associated(path: &Path) -> Option<&Ident> {
    let segments: Vec<_> = path.segments.iter().collect();
    match &segments[..] {
        [only] => Some(&only.ident),
        [own, last] if own.ident == "Self" => Some(&last.ident),
        _ => None,
    }
}

impl<'a> Method<'a> {
    fn of(method: &'a ImplItemFn, generics: &Generics) -> Self {
        let mut function = Function::of(&method.sig, generics);
        if method.attrs.iter().any(is_cfg) {
            // The `cfg` has been reported, and the method may be absent.
            function.clear = Clear { inputs: false, call: false, ..function.clear };
        }
        Self { attributes: &method.attrs, function }
    }

    /// The `cfg` attributes of the method.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &'a Attribute> {
        self.attributes.iter().filter(|attribute| is_cfg(attribute))
    }
}

impl Step<'_> {
    /// The stable name of the step.
    pub(crate) fn name(&self) -> String {
        let own = || self.method.function.ident().unraw().to_string();
        self.attribute.name.as_ref().map_or_else(own, syn::LitStr::value)
    }

    /// The doc comment of the step.
    pub(crate) fn description(&self) -> String {
        docs::text(self.method.attributes)
    }
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}
