//! The rules of a workflow, as far as syntax can show them. The compiler finds out what types mean.

use proc_macro2::Ident;

use super::definition::{Asked, Definition, Method, Step, associated};
use crate::function::signature::{
    validate_compaction, validate_key_signature, validate_precondition, validate_step,
};
use crate::mistakes::Mistakes;
use crate::near::near;

/// Reports every mistake in the block.
pub(crate) fn validate(definition: &Definition, mistakes: &mut Mistakes) {
    validate_block(definition, mistakes);
    for step in &definition.steps {
        validate_step(step.method.function.signature, mistakes);
        reject_cfg(&step.method, mistakes);
        validate_precondition_path(definition, step, mistakes);
        validate_catches(definition, step, mistakes);
        validate_compact(definition, step, mistakes);
        validate_on_end(step, mistakes);
        validate_limit_key_of(definition, step, mistakes);
        validate_key_of(definition, step, mistakes);
    }
    for precondition in &definition.preconditions {
        validate_precondition(precondition.function.signature, mistakes);
        reject_cfg(precondition, mistakes);
    }
    reject_twins(&definition.steps, mistakes);
    reject_unused(definition, mistakes);
}

fn validate_block(definition: &Definition, mistakes: &mut Mistakes) {
    let (item, self_ty) = (definition.item(), definition.self_ty());
    if let Some((path, _)) = &item.trait_ {
        mistakes
            .at(path, "a workflow is an impl block of its own: write `impl TheWorkflow`, without a trait");
    }
    for lifetime in item.generics.lifetimes() {
        let message =
            format!("a workflow owns its data: leave out `{}` and hold owned values", lifetime.lifetime);
        mistakes.at(lifetime, message);
    }
    if definition.steps.is_empty() {
        mistakes.at(self_ty, "the workflow has no steps: write `#[step]` above an async method");
    }
}

fn reject_cfg(method: &Method, mistakes: &mut Mistakes) {
    for cfg in method.conditions() {
        let message =
            "a row of the table cannot be conditional: move `#[cfg(…)]` to an impl block per configuration";
        mistakes.at(cfg, message);
    }
}

fn validate_precondition_path(definition: &Definition, step: &Step, mistakes: &mut Mistakes) {
    let Some(Asked::Nothing) = definition.asked(step) else { return };
    let Some(path) = &step.attribute.precondition else { return };
    let Some(name) = associated(path) else { return };
    if definition.block.has_method(name) {
        mistakes.at(path, format!("`{name}` is not a precondition: write `#[precondition]` above it"));
    } else if let Some(meant) = definition.meant(name) {
        mistakes.at(path, format!("no precondition `{name}` in this impl block: did you mean `{meant}`?"));
    } else {
        mistakes.at(
            path,
            format!("no precondition `{name}` in this impl block: add it, or name a free function"),
        );
    }
}

fn validate_catches(definition: &Definition, step: &Step, mistakes: &mut Mistakes) {
    for name in step.attribute.catches.iter().flat_map(|catches| &catches.names) {
        if name == ident(step) {
            mistakes
                .at(name, format!("step `{name}` cannot catch its own failure: leave it out of `catches`"));
        } else if definition.row_of(name).is_none() {
            mistakes.at(name, unknown_step(definition, step, name));
        }
    }
}

fn validate_compact(definition: &Definition, step: &Step, mistakes: &mut Mistakes) {
    let Some(name) = &step.attribute.compact else { return };
    let Some(method) = definition.compaction(step) else {
        let message = if definition.block.has_method(name) {
            format!("`{name}` is a step or a precondition: what compacts is a method without an attribute")
        } else {
            format!(
                "no method `{name}` in this impl block: write `async fn {name}(&self, …)` without an attribute"
            )
        };
        return mistakes.at(name, message);
    };
    validate_compaction(method.function.signature, mistakes);
    reject_cfg(&method, mistakes);
    reject_other_parameters(step, name, &method, mistakes);
}

fn validate_limit_key_of(definition: &Definition, step: &Step, mistakes: &mut Mistakes) {
    let Some(name) = &step.attribute.limit_key else { return };
    if step.attribute.limit.is_none() && !step.attribute.unclear {
        mistakes.at(name, "a limit key is the key at a limit: name the limit too, as in `limit = \"bank\"`");
    }
    validate_key(definition, step, (name, definition.limit_key(step)), "a limit key", mistakes);
}

fn validate_key_of(definition: &Definition, step: &Step, mistakes: &mut Mistakes) {
    let Some(name) = &step.attribute.key else { return };
    validate_key(definition, step, (name, definition.key(step)), "an idempotency key", mistakes);
}

/// Checks the method that makes a key of the step. `what` is the key, with its article.
fn validate_key(
    definition: &Definition,
    step: &Step,
    (name, method): (&Ident, Option<Method>),
    what: &str,
    mistakes: &mut Mistakes,
) {
    let Some(method) = method else {
        let message = if definition.block.has_method(name) {
            format!("`{name}` is a step or a precondition: {what} is a method without an attribute")
        } else {
            format!(
                "no method `{name}` in this impl block: write `fn {name}(…) -> String` without an attribute"
            )
        };
        return mistakes.at(name, message);
    };
    validate_key_signature(method.function.signature, what, mistakes);
    reject_cfg(&method, mistakes);
    reject_other_parameters(step, name, &method, mistakes);
}

/// Reports the parameters of a step's method that the step does not take.
fn reject_other_parameters(step: &Step, name: &Ident, method: &Method, mistakes: &mut Mistakes) {
    for ty in method.function.parameters.iter().filter(|ty| step.method.function.place_of(ty).is_none()) {
        let (step, ty_text) = (ident(step), quote::quote!(#ty).to_string().replace("& ", "&"));
        let message = format!(
            "`{name}` is given what the step `{step}` is given, which takes no `{ty_text}`: take it there too, as the same type"
        );
        mistakes.at(ty, message);
    }
}

/// Refuses keys that mean nothing for a step that runs once, at the end.
fn validate_on_end(step: &Step, mistakes: &mut Mistakes) {
    if step.attribute.on_end.is_none() {
        return;
    }
    for key in &step.attribute.repetition {
        let message = format!(
            "`{key}` has no meaning beside `on_end`: clean-up runs at most once, at the end; leave it out"
        );
        mistakes.at(key, message);
    }
}

fn unknown_step(definition: &Definition, step: &Step, name: &Ident) -> String {
    if definition.block.has_method(name) {
        return format!("`{name}` is not a step: write `#[step]` above it");
    }
    let others = || definition.steps.iter().map(ident).filter(|other| *other != ident(step));
    match others().find(|other| near(&other.to_string(), &name.to_string())) {
        Some(meant) => format!("no step `{name}` in this impl block: did you mean `{meant}`?"),
        None if others().next().is_none() => {
            format!("no step `{name}` in this impl block: there is none but this one")
        }
        None => {
            let others: Vec<String> = others().map(|other| format!("`{other}`")).collect();
            format!("no step `{name}` in this impl block: it has {}", others.join(", "))
        }
    }
}

fn reject_twins(steps: &[Step], mistakes: &mut Mistakes) {
    for (index, step) in steps.iter().enumerate() {
        let name = step.name();
        let twin = steps[..index].iter().find(|earlier| earlier.name() == name);
        // The compiler itself reports two methods of one name.
        if twin.is_some_and(|twin| ident(twin) != ident(step)) {
            let message =
                format!("two steps are named `{name}`: give this one another name, `#[step(name = \"…\")]`");
            match &step.attribute.name {
                Some(name) => mistakes.at(name, message),
                None => mistakes.at(ident(step), message),
            }
        }
    }
}

fn ident<'a>(step: &Step<'a>) -> &'a Ident {
    step.method.function.ident()
}

fn reject_unused(definition: &Definition, mistakes: &mut Mistakes) {
    if definition.steps.iter().any(|step| step.attribute.precondition_unclear) {
        return;
    }
    for precondition in &definition.preconditions {
        let name = precondition.function.ident();
        if !definition.names(name) && !is_mistyped(definition, name) {
            let message =
                format!("precondition `{name}` is used by no step: write `#[step(precondition = {name})]`");
            mistakes.at(name, message);
        }
    }
}

/// Whether a step seems to mean this precondition by a mistyped name, which has been reported there.
fn is_mistyped(definition: &Definition, precondition: &Ident) -> bool {
    let paths = definition.steps.iter().filter_map(|step| step.attribute.precondition.as_ref());
    paths.filter_map(associated).any(|name| {
        let known = definition.block.has_method(name);
        !known && definition.meant(name).is_some_and(|meant| meant == precondition)
    })
}
