//! The public items of packages, one per line with its signature, and the warnings of their reference.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::packages::Package;
use crate::error::CheckError;
use crate::repository::Repository;

/// Runs `rustdoc` with its unstable options.
const RUSTDOC: &str = "ci/rustdoc-json";
/// The format that this version of `public-api` reads.
const FORMAT: u32 = 57;

#[derive(Deserialize)]
struct Format {
    format_version: u32,
}

/// The public items of a package, once it is documented.
pub(crate) fn of(package: &Package) -> Result<String, CheckError> {
    of_file(&package.target.join("doc").join(format!("{}.json", package.library)), &package.name)
}

/// Documents all packages at once, so that each is compiled once, with all features. A warning of `rustdoc`, such as a link
/// that leads nowhere, is an error.
pub(crate) fn document(repository: &Repository, packages: &[Package]) -> Result<(), CheckError> {
    let command = "cargo doc".to_owned();
    let names = packages.iter().flat_map(|package| ["-p", package.name.as_str()]);
    let status = Command::new("cargo")
        .args(["doc", "--quiet", "--locked", "--no-deps", "--all-features", "--lib"])
        .args(names)
        .env("RUSTDOC", repository.root().join(RUSTDOC))
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json -D warnings")
        .current_dir(repository.root())
        .status()
        .map_err(|source| CheckError::Start { command: command.clone(), source })?;
    if status.success() { Ok(()) } else { Err(CheckError::Failed { command, status }) }
}

fn of_file(path: &Path, package: &str) -> Result<String, CheckError> {
    let json = std::fs::read_to_string(path).map_err(CheckError::read(path))?;
    let found: Format = serde_json::from_str(&json)
        .map_err(|source| CheckError::Json { origin: path.display().to_string(), source })?;
    if found.format_version != FORMAT {
        return Err(CheckError::Format { found: found.format_version, expected: FORMAT });
    }
    let items = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|source| CheckError::List { package: package.to_owned(), source })?;
    Ok(items.to_string())
}
