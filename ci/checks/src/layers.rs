//! The layers of `workflow-core`. The `mod` lines of its `lib.rs` stand from the lowest module to the highest. A module
//! imports from modules below it only, so that no circle of imports can exist, and names the module that it imports
//! from. The table of modules in `ARCHITECTURE.md` has the same order.
//!
//! Tests may import from anywhere: what `#[cfg(test)]` marks is left out. So are calls of methods, which name no module.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::error::CheckError;
use crate::report::Report;
use crate::repository::Repository;

const SOURCES: &str = "workflow-core/src";
const PAGE: &str = "ARCHITECTURE.md";

/// Modules that `lib.rs` re-exports from and that are no layer: generated code names what they have.
const OUTSIDE: [&str; 1] = ["__private"];

pub(crate) fn check(repository: &Repository) -> Result<Report, CheckError> {
    let mut report = Report::default();
    let root = Path::new(SOURCES).join("lib.rs");
    let layers = Scan::of(repository, &root, &[])?.modules;
    for module in layers.iter().filter(|module| !OUTSIDE.contains(&module.as_str())) {
        let file = Path::new(SOURCES).join(module).with_extension("rs");
        check_file(repository, &mut report, &layers, &file, std::slice::from_ref(module))?;
    }
    check_page(repository, &mut report, &layers)?;
    report.note(format!("{} modules, from `{}` to `{}`", layers.len(), first(&layers), last(&layers)));
    Ok(report)
}

fn first(layers: &[String]) -> &str {
    layers.first().map_or("", String::as_str)
}

fn last(layers: &[String]) -> &str {
    layers.last().map_or("", String::as_str)
}

/// Checks the file of a module, and those of the modules in it.
fn check_file(
    repository: &Repository,
    report: &mut Report,
    layers: &[String],
    file: &Path,
    module: &[String],
) -> Result<(), CheckError> {
    let scan = Scan::of(repository, file, module)?;
    let here = layers.iter().position(|layer| *layer == module[0]);
    let mut said = HashSet::new();
    for (line, target) in scan.imports {
        if target == module[0] || !said.insert((line, target.clone())) {
            continue;
        }
        match layers.iter().position(|layer| *layer == target) {
            None => {
                report.mistake(
                    file,
                    line,
                    &format!("`crate::{target}` is no module: name the module that has it"),
                );
            }
            there if there > here => report.mistake(
                file,
                line,
                &format!("`{}` imports from `{target}`, which stands above it in lib.rs", module[0]),
            ),
            _ => {}
        }
    }
    for name in scan.modules {
        let path = file.with_extension("").join(&name).with_extension("rs");
        check_file(repository, report, layers, &path, &[module, &[name]].concat())?;
    }
    Ok(())
}

/// The table of modules has each layer, in this order.
fn check_page(repository: &Repository, report: &mut Report, layers: &[String]) -> Result<(), CheckError> {
    let text = repository.read(Path::new(PAGE))?;
    let rows = text.lines().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix("| `")?.split('`').next()?;
        layers.iter().any(|layer| layer == name).then_some((at + 1, name))
    });
    let rows: Vec<_> = rows.collect();
    let expected = layers.iter().filter(|layer| !OUTSIDE.contains(&layer.as_str()));
    for (place, layer) in expected.enumerate() {
        match rows.get(place) {
            Some((_, name)) if name == layer => {}
            found => {
                let line = found.map_or(1, |(line, _)| *line);
                let message = format!("the table of modules has to have `{layer}` here, as lib.rs has");
                report.mistake(Path::new(PAGE), line, &message);
                break;
            }
        }
    }
    Ok(())
}

/// The imports of one file from the modules of its crate, and the modules that it declares in files of their own.
#[derive(Debug, Default)]
struct Scan {
    imports: Vec<(usize, String)>,
    modules: Vec<String>,
}

impl Scan {
    fn of(repository: &Repository, file: &Path, module: &[String]) -> Result<Self, CheckError> {
        let text = repository.read(file)?;
        Self::of_text(&text, module).map_err(|source| CheckError::Syntax {
            path: PathBuf::from(file),
            line: source.span().start().line,
            source,
        })
    }

    fn of_text(text: &str, module: &[String]) -> Result<Self, syn::Error> {
        let tokens: TokenStream = text.parse().map_err(syn::Error::from)?;
        let mut scan = Self::default();
        scan.tokens(tokens, module);
        Ok(scan)
    }

    fn tokens(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.token(&tokens, at, module);
        }
    }

    /// Looks at what begins at a place, and returns the place behind it.
    fn token(&mut self, tokens: &[TokenTree], at: usize, module: &[String]) -> usize {
        match &tokens[at] {
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_test(tokens.get(at + 1)) => {
                end_of_item(tokens, at + 2)
            }
            TokenTree::Ident(ident) if ident == "mod" => match (tokens.get(at + 1), tokens.get(at + 2)) {
                (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(_))) => {
                    self.modules.push(name.to_string());
                    at + 3
                }
                (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) => {
                    self.tokens(body.stream(), &[module, &[name.to_string()]].concat());
                    at + 3
                }
                _ => at + 1,
            },
            TokenTree::Ident(ident) if ident == "crate" => self.path(tokens, at + 1, Some(0)),
            TokenTree::Ident(ident) if ident == "super" => {
                self.path(tokens, at + 1, module.len().checked_sub(1))
            }
            TokenTree::Group(group) => {
                self.tokens(group.stream(), module);
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Reads the path behind `crate` or `super`, which begins `depth` modules down from the root.
    fn path(&mut self, tokens: &[TokenTree], at: usize, depth: Option<usize>) -> usize {
        if !is_colons(tokens, at) {
            return at;
        }
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(ident)) if ident == "super" => {
                self.path(tokens, at + 3, depth.and_then(|depth| depth.checked_sub(1)))
            }
            Some(TokenTree::Ident(ident)) if depth == Some(0) => {
                self.imports.push((ident.span().start().line, ident.to_string()));
                at + 3
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let names: Vec<TokenTree> = group.stream().into_iter().collect();
                for name in
                    names.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
                {
                    match name.first() {
                        Some(TokenTree::Ident(ident)) if ident == "super" => {
                            self.path(name, 1, depth.and_then(|depth| depth.checked_sub(1)));
                        }
                        Some(TokenTree::Ident(ident)) if depth == Some(0) && ident != "self" => {
                            self.imports.push((ident.span().start().line, ident.to_string()));
                        }
                        _ => {}
                    }
                }
                at + 3
            }
            _ => at + 2,
        }
    }
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}

/// Whether it is the `[cfg(test)]` of an attribute.
fn is_test(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    let text: String = group.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text == "cfg(doctest)"
}

/// Behind the item that begins here: its body, or its semicolon.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
            // The braces of `use a::{b};` are no body.
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace
                    && !matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ';') =>
            {
                break;
            }
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let repository = Repository::at(folder.path());
        (folder, repository)
    }

    const PAGE_OF_TWO: (&str, &str) =
        ("ARCHITECTURE.md", "| module | owns |\n|---|---|\n| `low` | a |\n| `high` | b |\n");

    fn mistakes(low: &str, high: &str) -> Vec<String> {
        let lib = "mod low;\nmod high;\n#[doc(hidden)]\npub mod __private;\n";
        let (_folder, repository) = repository(&[
            PAGE_OF_TWO,
            ("workflow-core/src/lib.rs", lib),
            ("workflow-core/src/__private.rs", "pub use crate::high::Thing;"),
            ("workflow-core/src/low.rs", low),
            ("workflow-core/src/low/part.rs", "use crate::high::Thing;"),
            ("workflow-core/src/high.rs", high),
        ]);
        let report = check(&repository).expect("it can be made");
        let (_sum, mistakes) = report.lines().split_last().expect("a sum");
        mistakes.to_vec()
    }

    #[test]
    fn an_import_from_below_is_fine() {
        assert!(mistakes("struct Low;", "use crate::low::Low;\nuse super::low;").is_empty());
    }

    #[test]
    fn an_import_from_above_is_found_with_file_line_and_both_modules() {
        let found =
            ["workflow-core/src/low.rs:2: `low` imports from `high`, which stands above it in lib.rs"];
        assert_eq!(mistakes("\nuse crate::high::Thing;", ""), found);
        assert_eq!(mistakes("\nuse super::{high::Thing};", ""), found);
        assert_eq!(mistakes("fn f() {\n    crate::high::f();\n}", ""), found);
        assert_eq!(mistakes("mod inner {\n    use super::super::high;\n}", ""), found);
    }

    #[test]
    fn an_import_in_a_module_below_is_found() {
        let found =
            ["workflow-core/src/low/part.rs:1: `low` imports from `high`, which stands above it in lib.rs"];
        assert_eq!(mistakes("mod part;", ""), found);
    }

    #[test]
    fn a_name_of_the_root_hides_its_module() {
        let found = ["workflow-core/src/high.rs:1: `crate::Low` is no module: name the module that has it"];
        assert_eq!(mistakes("", "use crate::Low;"), found);
    }

    #[test]
    fn tests_import_from_anywhere() {
        assert!(
            mistakes("#[cfg(test)]\nmod part;\n#[cfg(test)]\nmod tests { use crate::high::Thing; }", "")
                .is_empty()
        );
    }

    #[test]
    fn the_table_of_modules_has_the_order_of_lib() {
        let lib = "mod high;\nmod low;\n";
        let (_folder, repository) = repository(&[
            PAGE_OF_TWO,
            ("workflow-core/src/lib.rs", lib),
            ("workflow-core/src/low.rs", ""),
            ("workflow-core/src/high.rs", ""),
        ]);
        let report = check(&repository).expect("it can be made");
        assert_eq!(
            report.lines()[0],
            "ARCHITECTURE.md:3: the table of modules has to have `high` here, as lib.rs has"
        );
    }
}
