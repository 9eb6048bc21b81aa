//! The public items of one package, one per line with its signature.

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

/// The public items of a package, with all its features.
pub(crate) fn of(repository: &Repository, package: &Package) -> Result<String, CheckError> {
    document(repository, package)?;
    of_file(&package.target.join("doc").join(format!("{}.json", package.library)), &package.name)
}

fn document(repository: &Repository, package: &Package) -> Result<(), CheckError> {
    let name = package.name.as_str();
    let command = format!("cargo rustdoc -p {name}");
    let status = Command::new("cargo")
        .args(["rustdoc", "--quiet", "--locked", "--all-features", "--lib", "-p", name, "--"])
        .args(["-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTDOC", repository.root().join(RUSTDOC))
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
