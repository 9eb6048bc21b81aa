//! Rule numbers in the rustdoc that a user reads.
//!
//! Which items are public is an approximation: the lint `unreachable_pub` holds in the workspace, so an item that is
//! `pub` can be reached from outside. A module's own text is public if all modules around it are `pub`. A method is
//! public if it is `pub` or of a trait, and its type is `pub`. All text that is handed to a macro counts as public.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Attribute, File, ImplItem, Item, Meta, TraitItem, Visibility};

use super::citations::in_line;
use super::number::Number;
use super::pages::Pages;
use crate::error::CheckError;
use crate::repository::Repository;

mod removal;

/// A line of public rustdoc that cites a rule.
#[derive(Debug)]
pub(crate) struct CitingDoc {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
    pub(crate) item: String,
    pub(crate) text: String,
}

/// The lines of a crate's public rustdoc with numbers of rules.
pub(crate) fn with_numbers(
    repository: &Repository,
    folder: &Path,
    pages: &Pages,
) -> Result<Vec<CitingDoc>, CheckError> {
    let root = folder.join("src/lib.rs");
    let mut sources = Vec::new();
    collect(repository, &root, &folder.join("src"), true, &mut sources)?;
    let types = sources.iter().flat_map(|source| public_types(&source.file.items)).collect();
    let mut found = Vec::new();
    for source in &sources {
        let mut walk = Walk { path: &source.path, types: &types, pages, found: &mut found };
        if source.is_public {
            walk.docs("the module", &source.file.attrs);
        }
        walk.items(&source.file.items);
    }
    found.dedup_by(|a, b| a.path == b.path && a.line == b.line);
    Ok(found)
}

/// Takes numbers in parentheses out of a crate's public rustdoc.
pub(crate) fn remove_numbers(
    repository: &Repository,
    folder: &Path,
    pages: &Pages,
) -> Result<(), CheckError> {
    let mut lines: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
    for doc in with_numbers(repository, folder, pages)? {
        lines.entry(doc.path).or_default().insert(doc.line);
    }
    for (path, lines) in lines {
        let text = repository.read(&path)?;
        repository.write(&path, &removal::without_numbers(&text, &lines))?;
    }
    Ok(())
}

struct Source {
    path: PathBuf,
    file: File,
    is_public: bool,
}

/// The file of a module and those of the modules in it.
fn collect(
    repository: &Repository,
    path: &Path,
    folder: &Path,
    is_public: bool,
    sources: &mut Vec<Source>,
) -> Result<(), CheckError> {
    let text = repository.read(path)?;
    let file = syn::parse_file(&text).map_err(|source| {
        let line = source.span().start().line;
        CheckError::Syntax { path: path.to_owned(), line, source }
    })?;
    for item in &file.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_left_out(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let is_public = is_public && is_pub(&module.vis);
        let path = folder.join(format!("{name}.rs"));
        if repository.has(&path) {
            collect(repository, &path, &folder.join(name), is_public, sources)?;
        }
    }
    sources.push(Source { path: path.to_owned(), file, is_public });
    Ok(())
}

/// Names of what is `pub` and can have methods.
fn public_types(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let (vis, ident) = match item {
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Union(item) => (&item.vis, &item.ident),
            Item::Mod(module) => {
                names.extend(module.content.iter().flat_map(|(_, items)| public_types(items)));
                continue;
            }
            _ => continue,
        };
        if is_pub(vis) {
            names.push(ident.to_string());
        }
    }
    names
}

struct Walk<'a> {
    path: &'a Path,
    types: &'a BTreeSet<String>,
    pages: &'a Pages,
    found: &'a mut Vec<CitingDoc>,
}

impl Walk<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) if is_seen(&item.vis, &item.attrs) => {
                self.docs(&item.ident.to_string(), &item.attrs);
                self.fields(&item.ident.to_string(), item.fields.iter().filter(|field| is_pub(&field.vis)));
            }
            Item::Enum(item) if is_seen(&item.vis, &item.attrs) => {
                self.docs(&item.ident.to_string(), &item.attrs);
                for variant in item.variants.iter().filter(|variant| !is_left_out(&variant.attrs)) {
                    let name = format!("{}::{}", item.ident, variant.ident);
                    self.docs(&name, &variant.attrs);
                    self.fields(&name, variant.fields.iter());
                }
            }
            Item::Trait(item) if is_seen(&item.vis, &item.attrs) => {
                self.docs(&item.ident.to_string(), &item.attrs);
                for method in &item.items {
                    self.docs(&format!("an item of {}", item.ident), trait_item_attributes(method));
                }
            }
            Item::Impl(item) if !is_left_out(&item.attrs) => self.implementation(item),
            Item::Mod(module) if !is_left_out(&module.attrs) => {
                if is_pub(&module.vis) {
                    self.docs(&module.ident.to_string(), &module.attrs);
                }
                if let Some((_, items)) = &module.content {
                    self.items(items);
                }
            }
            Item::Macro(item) => {
                if item.attrs.iter().any(|it| it.path().is_ident("macro_export")) {
                    self.docs("a macro", &item.attrs);
                }
                self.tokens(item.mac.tokens.clone());
            }
            _ => self.plain(item),
        }
    }

    fn plain(&mut self, item: &Item) {
        let (name, vis, attributes) = match item {
            Item::Fn(item) => (item.sig.ident.to_string(), &item.vis, &item.attrs),
            Item::Type(item) => (item.ident.to_string(), &item.vis, &item.attrs),
            Item::Const(item) => (item.ident.to_string(), &item.vis, &item.attrs),
            Item::Static(item) => (item.ident.to_string(), &item.vis, &item.attrs),
            Item::Use(item) => ("a re-export".to_owned(), &item.vis, &item.attrs),
            _ => return,
        };
        if is_seen(vis, attributes) {
            self.docs(&name, attributes);
        }
    }

    fn implementation(&mut self, item: &syn::ItemImpl) {
        let Some(name) = type_name(&item.self_ty).filter(|name| self.types.contains(name)) else { return };
        self.docs(&name, &item.attrs);
        for member in &item.items {
            let (member_name, vis, attributes) = match member {
                ImplItem::Fn(item) => (item.sig.ident.to_string(), &item.vis, &item.attrs),
                ImplItem::Const(item) => (item.ident.to_string(), &item.vis, &item.attrs),
                ImplItem::Type(item) => (item.ident.to_string(), &item.vis, &item.attrs),
                _ => continue,
            };
            if item.trait_.is_some() || is_pub(vis) {
                self.docs(&format!("{name}::{member_name}"), attributes);
            }
        }
    }

    fn fields<'f>(&mut self, of: &str, fields: impl Iterator<Item = &'f syn::Field>) {
        for field in fields {
            let name = field.ident.as_ref().map_or_else(|| of.to_owned(), |ident| format!("{of}::{ident}"));
            self.docs(&name, &field.attrs);
        }
    }

    fn docs(&mut self, item: &str, attributes: &[Attribute]) {
        if is_left_out(attributes) {
            return;
        }
        for attribute in attributes {
            let Some(text) = meta_text(&attribute.meta) else { continue };
            let first = attribute.span().start().line;
            self.text(item, first, &text);
        }
    }

    /// Doc comments among tokens; each is a group of `doc`, `=` and the text.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            let TokenTree::Group(group) = token else { continue };
            match syn::parse2::<Meta>(group.stream()).ok().as_ref().and_then(meta_text) {
                Some(text) => self.text("an item of a macro", group.span().start().line, &text),
                None => self.tokens(group.stream()),
            }
        }
    }

    fn text(&mut self, item: &str, first: usize, text: &str) {
        for (offset, line) in text.lines().enumerate() {
            if self.cites(line) {
                self.found.push(CitingDoc {
                    path: self.path.to_owned(),
                    line: first + offset,
                    item: format!("`{item}`"),
                    text: line.to_owned(),
                });
            }
        }
    }

    fn cites(&self, line: &str) -> bool {
        in_line(line).iter().any(|&(_, Number { letters, .. }, _)| self.pages.has_letters(letters))
    }
}

fn trait_item_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        _ => &[],
    }
}

fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

fn is_pub(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn is_seen(vis: &Visibility, attributes: &[Attribute]) -> bool {
    is_pub(vis) && !is_left_out(attributes)
}

/// Compiled only for tests, or hidden from the reference.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            let tokens = list.tokens.to_string();
            (list.path.is_ident("cfg") && tokens == "test")
                || (list.path.is_ident("doc") && tokens == "hidden")
        }
        _ => false,
    })
}

/// The text of `doc = "…"`.
fn meta_text(meta: &Meta) -> Option<String> {
    let Meta::NameValue(pair) = meta else { return None };
    let syn::Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        syn::Lit::Str(text) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}
