//! Attributes under another name. `#[workflow]` finds those in its block by name, so an import that renames
//! one keeps it from being found; the attribute itself can say so.

use proc_macro2::{Span, TokenStream, TokenTree};

/// What to say of the attribute that is being expanded, if it goes by another name than its own.
pub(crate) fn instead_of(own: &str) -> Option<String> {
    let written: TokenStream = Span::call_site().source_text()?.parse().ok()?;
    let name = name(written)?;
    let message =
        format!("`#[workflow]` knows `#[{own}]` by that name alone: write `#[{own}]` instead of `#[{name}]`");
    (name != own).then_some(message)
}

/// The last word of the path in `#[path(…)]`, or in `path` alone.
fn name(written: TokenStream) -> Option<String> {
    let mut last = None;
    for tree in written {
        match tree {
            TokenTree::Group(group) if last.is_none() => return name(group.stream()),
            TokenTree::Group(_) => break,
            TokenTree::Ident(word) => last = Some(word.to_string()),
            _ => {}
        }
    }
    last
}
