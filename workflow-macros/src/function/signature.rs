//! The rules of a signature, as far as syntax can show them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{
    FnArg, GenericArgument, GenericParam, PathArguments, Receiver, ReceiverKind, ReturnType, Safety,
    Signature, Type, TypeImplTrait, TypeReference, parse_quote_spanned,
};

use crate::mistakes::Mistakes;

/// Checks the signature of a step.
pub(crate) fn validate_step(signature: &Signature, mistakes: &mut Mistakes) {
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        mistakes.at(signature.fn_token, format!("a step is async: write `async fn {name}`"));
    }
    if !signature.inputs.iter().any(|input| matches!(input, FnArg::Typed(_))) {
        let message = format!(
            "step `{name}` takes no event, so nothing would ever run it: add one, like `event: &TheEvent`"
        );
        mistakes.at(name, message);
    }
    validate(signature, "step", mistakes);
}

/// Checks the signature of a precondition.
pub(crate) fn validate_precondition(signature: &Signature, mistakes: &mut Mistakes) {
    if matches!(signature.output, ReturnType::Default) {
        let message = "a precondition answers yes or no: write `-> bool`, or `-> Result<bool, E>`";
        mistakes.at(&signature.ident, message);
    }
    validate(signature, "precondition", mistakes);
}

/// Checks the signature of a compaction.
pub(crate) fn validate_compaction(signature: &Signature, mistakes: &mut Mistakes) {
    if signature.asyncness.is_none() {
        let message = format!("a compaction is async: write `async fn {}`", signature.ident);
        mistakes.at(signature.fn_token, message);
    }
    validate(signature, "compaction", mistakes);
}

/// Checks the signature of a method that makes a key: `a limit key`, for example.
pub(crate) fn validate_key_signature(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    if matches!(signature.output, ReturnType::Default) {
        let message = format!("{what} returns the key: write `-> String`, or `-> Result<String, E>`");
        mistakes.at(&signature.ident, message);
    }
    let (_, noun) = what.split_once(' ').unwrap_or_default();
    validate(signature, noun, mistakes);
}

fn validate(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    if let Some(receiver) = signature.receiver() {
        validate_receiver(receiver, what, mistakes);
    }
    validate_qualifiers(signature, what, mistakes);
    validate_generics(signature, what, mistakes);
    validate_types(signature, what, mistakes);
}

fn validate_receiver(receiver: &Receiver, what: &str, mistakes: &mut Mistakes) {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => {}
        ReceiverKind::Reference(_, _, Some(_)) => {
            let message =
                format!("a {what} cannot change the workflow, which all executions share: write `&self`");
            mistakes.at(receiver, message);
        }
        _ => mistakes.at(
            receiver,
            format!("a {what} borrows the workflow, which all executions share: write `&self`"),
        ),
    }
}

/// Checks the words before `fn`.
pub(crate) fn validate_qualifiers(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    if let Safety::Unsafe(token) = &signature.safety {
        mistakes.at(token, format!("a {what} is called by the library: leave out `unsafe`"));
    }
    if let Safety::Safe(token) = &signature.safety {
        mistakes.at(token, format!("a {what} is safe by itself: leave out `safe`"));
    }
    if let Some(abi) = &signature.abi {
        mistakes.at(abi, format!("a {what} is called by the library: leave out `extern`"));
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.at(variadic, format!("a {what} takes parameters with types: leave out `...`"));
    }
}

fn validate_generics(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    let own = signature.generics.params.iter().filter(|own| !matches!(own, GenericParam::Lifetime(_)));
    for own in own {
        let message = match what {
            "step" => {
                "nothing says what a step's own parameter stands for: move it to the `impl`, or name a type"
            }
            "precondition" => "nothing says what a precondition's own parameter stands for: name a type",
            "limit key" => "nothing says what a limit key's own parameter stands for: name a type",
            _ => "nothing says what a compaction's own parameter stands for: name a type",
        };
        mistakes.at(own, message);
    }
}

fn validate_types(signature: &Signature, what: &str, mistakes: &mut Mistakes) {
    for input in &signature.inputs {
        if let FnArg::Typed(parameter) = input {
            let message =
                format!("a {what}'s parameters are found by their type: name it instead of `impl …`");
            reject_impl_trait(&parameter.ty, &message, mistakes);
            reject_unshared(&parameter.ty, mistakes);
        }
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        let message = format!("what a {what} returns is found by its type: name it instead of `impl …`");
        reject_impl_trait(ty, &message, mistakes);
    }
}

fn reject_unshared(ty: &Type, mistakes: &mut Mistakes) {
    let Some(shared) = shared(ty) else { return };
    let shared = written(&shared);
    let why = match ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            "what a parameter borrows is shared, and never changed"
        }
        _ => "an optional event is not borrowed as a whole",
    };
    mistakes.at(ty, format!("{why}: write `{shared}`"));
}

/// The correct form of a parameter that borrows in an impossible way, such as `&mut E` or `&Option<E>`;
/// `None` for others.
pub(crate) fn shared(ty: &Type) -> Option<Type> {
    let Type::Reference(reference) = ty else { return None };
    if reference.mutability.is_some() {
        let shared = Type::Reference(TypeReference { mutability: None, ..reference.clone() });
        return Some(self::shared(&shared).unwrap_or(shared));
    }
    let Type::Path(path) = &*reference.elem else { return None };
    let option = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &option.arguments else { return None };
    let Some(GenericArgument::Type(inner)) = arguments.args.first() else { return None };
    if matches!(inner, Type::Reference(_)) || is_arc(inner) {
        return Some(parse_quote_spanned!(option.ident.span()=> Option<#inner>));
    }
    let inner = TypeReference { elem: Box::new(inner.clone()), ..reference.clone() };
    Some(parse_quote_spanned!(option.ident.span()=> Option<#inner>))
}

fn is_arc(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Arc"))
}

/// The type as it is usually written.
fn written(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (loose, tight) in
        [(" < ", "<"), (" >", ">"), ("< ", "<"), (" <", "<"), (" :: ", "::"), ("& ", "&"), (" ,", ",")]
    {
        text = text.replace(loose, tight);
    }
    text
}

fn reject_impl_trait(ty: &Type, message: &str, mistakes: &mut Mistakes) {
    struct Reject<'a>(&'a str, &'a mut Mistakes);

    impl VisitMut for Reject<'_> {
        fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
            self.1.at(ty, self.0);
        }
    }

    Reject(message, mistakes).visit_type_mut(&mut ty.clone());
}

/// Whether generated code can call the function as declared.
pub(crate) fn is_callable(signature: &Signature) -> bool {
    let receiver = signature.receiver().map(|receiver| &receiver.kind);
    let shared = matches!(receiver, None | Some(ReceiverKind::Reference(_, _, None)));
    let plain = matches!(signature.safety, Safety::Default) && signature.variadic.is_none();
    let own = signature.generics.params.iter().any(|own| !matches!(own, GenericParam::Lifetime(_)));
    let named = is_nameable(signature, &signature.inputs) && is_nameable(signature, &signature.output);
    shared && plain && !own && named && signature.inputs.iter().all(is_lent)
}

fn is_lent(input: &FnArg) -> bool {
    !matches!(input, FnArg::Typed(parameter) if shared(&parameter.ty).is_some())
}

/// Whether generated code can name the types in these tokens.
pub(crate) fn is_nameable(signature: &Signature, types: &impl ToTokens) -> bool {
    let own = signature.generics.type_params().map(|own| &own.ident);
    let consts = signature.generics.const_params().map(|own| &own.ident);
    let own: Vec<_> = own.chain(consts).collect();
    !mentions(types.to_token_stream(), &|word| word == "impl" || own.contains(&word))
}

fn mentions(tokens: TokenStream, unnameable: &dyn Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(word) => unnameable(&word),
        TokenTree::Group(group) => mentions(group.stream(), unnameable),
        _ => false,
    })
}
