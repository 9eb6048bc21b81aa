//! The rules of a tool's signature, without those of single parameters.

use syn::{FnArg, GenericParam, Receiver, ReceiverKind, Signature};

use crate::function::signature::validate_qualifiers;
use crate::mistakes::Mistakes;

/// The most parameters of a tool, as many as `IntoTool` knows.
const MOST_PARAMETERS: usize = 16;

/// Reports every mistake in the signature.
pub(super) fn validate(signature: &Signature, mistakes: &mut Mistakes) {
    if signature.asyncness.is_none() {
        let message = format!("a tool is an `async fn`: write `async fn {}`", signature.ident);
        mistakes.at(signature.fn_token, message);
    }
    validate_qualifiers(signature, "tool", mistakes);
    for own in &signature.generics.params {
        let message = match own {
            GenericParam::Lifetime(own) => {
                format!("a borrowed parameter lives as long as the call: leave out `{}`", own.lifetime)
            }
            GenericParam::Type(own) => {
                format!("a model cannot choose a type: name one instead of `{}`", own.ident)
            }
            GenericParam::Const(own) => {
                format!("a model cannot choose a constant: name one instead of `{}`", own.ident)
            }
        };
        mistakes.at(own, message);
    }
    if let Some(receiver) = signature.receiver() {
        validate_receiver(receiver, mistakes);
    }
    let mut typed = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_)));
    if let Some(surplus) = typed.nth(MOST_PARAMETERS) {
        let message =
            format!("a tool has {MOST_PARAMETERS} parameters at most: take a struct that holds several");
        mistakes.at(surplus, message);
    }
}

fn validate_receiver(receiver: &Receiver, mistakes: &mut Mistakes) {
    let message = match &receiver.kind {
        ReceiverKind::Reference(_, None, None) => return,
        ReceiverKind::Reference(_, Some(_), None) => {
            "a tool's `self` lives as long as its calls: write `&self`"
        }
        ReceiverKind::Reference(_, _, Some(_)) => {
            "calls can run side by side, so a tool cannot change `self`: write `&self`"
        }
        _ => "all tools of the block share `self`: write `&self`",
    };
    mistakes.at(receiver, message);
}
