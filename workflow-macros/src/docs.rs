//! Turns doc comments into text, for the descriptions in a table.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment with trimmed lines, without blank lines at either end.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let comments: Vec<_> = attributes.iter().filter_map(comment).collect();
    let comment = comments.join("\n");
    let lines: Vec<_> = comment.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

/// A line comment, or a block comment with all its lines.
fn comment(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if meta.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}
