//! Attributes under another name. `#[workflow]` and `#[tools]` find the attributes in their block by name and
//! miss one that an import renamed. The missed attribute then expands by itself and can report that.

use proc_macro2::{Span, TokenStream, TokenTree};

/// The message for the attribute being expanded, if it has another name than its own. `block` is the attribute
/// that looks for it.
pub(crate) fn instead_of(own: &str, block: &str) -> Option<String> {
    let written: TokenStream = Span::call_site().source_text()?.parse().ok()?;
    let name = name(written)?;
    let message =
        format!("`#[{block}]` knows `#[{own}]` by that name alone: write `#[{own}]` instead of `#[{name}]`");
    (name != own).then_some(message)
}

/// The last segment of the path in `#[path(…)]` or `path`.
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
