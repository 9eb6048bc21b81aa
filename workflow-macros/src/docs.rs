//! Doc comments as text, for the descriptions in a table.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment: lines trimmed, joined by line breaks, without blank ones at either end.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(line);
    let text: Vec<_> = lines.flat_map(|line| line.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect();
    text.join("\n").trim().to_owned()
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) if meta.path.is_ident("doc") => Some(keep_blank(&line.value())),
        _ => None,
    }
}

/// A blank line of a comment separates paragraphs; `str::lines` would drop it.
fn keep_blank(line: &str) -> String {
    if line.is_empty() { " ".to_owned() } else { line.to_owned() }
}
