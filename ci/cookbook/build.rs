//! Makes a module of each page of `docs/cookbook`: its blocks of Rust, in the order of the page and on the same lines, so
//! that errors of the compiler name the line of the page. A test is added to each, which runs the page's program.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const PAGES: &str = "../../docs/cookbook";
/// A page without a program.
const INDEX: &str = "README.md";
const PROGRAM_TEST: &str = "#[test] fn the_program_runs() { crate::assert_succeeds(main()); }\n";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PAGES}");
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let mut modules = String::new();
    for page in pages()? {
        let file = page.with_extension("rs");
        let file = folder.join(file.file_name().ok_or("a page without a name")?);
        fs::write(&file, program(&page)?)?;
        let stem = page.file_stem().unwrap_or_default().to_string_lossy();
        modules += &format!("#[path = {file:?}]\nmod {};\n", stem.replace('-', "_"));
    }
    fs::write(folder.join("pages.rs"), modules)?;
    Ok(())
}

fn pages() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(PAGES)? {
        let page = entry?.path();
        if page.extension().is_some_and(|extension| extension == "md") && !page.ends_with(INDEX) {
            pages.push(page);
        }
    }
    pages.sort();
    Ok(pages)
}

/// The blocks of Rust of a page, with a blank line for each other line. Each page has a program and, after it, its tests.
fn program(page: &Path) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(page)?;
    let (mut program, mut in_block, mut blocks) = (String::new(), false, 0);
    for line in text.lines() {
        match line {
            "```rust" => (in_block, blocks) = (true, blocks + 1),
            "```" => in_block = false,
            _ if in_block => program += line,
            _ => {}
        }
        program.push('\n');
    }
    if blocks < 2 || !program.contains("#[cfg(test)]") {
        return Err(
            format!("{} must have a block with a program and one with its tests", page.display()).into()
        );
    }
    Ok(program + PROGRAM_TEST)
}
