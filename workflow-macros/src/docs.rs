//! Turns doc comments into text, for the descriptions in a table.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment with trimmed lines, without blank lines at either end.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let comments: Vec<_> = attributes.iter().filter_map(comment).collect();
    let comment = comments.join("\n");
    let lines: Vec<_> = comment.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

/// The expressions of the doc comment, texts and macros; none if it is blank.
pub(crate) fn parts(attributes: &[Attribute]) -> Vec<&Expr> {
    let parts: Vec<_> = attributes.iter().filter_map(expression).collect();
    if parts.iter().all(|part| is_text(part)) && text(attributes).is_empty() { Vec::new() } else { parts }
}

/// Whether a part is a text, rather than a macro that makes one.
pub(crate) fn is_text(part: &Expr) -> bool {
    matches!(part, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
}

fn expression(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

/// A line comment, or a block comment with all its lines.
fn comment(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if meta.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}
