//! Which packages of the workspace are published.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::CheckError;
use crate::repository::Repository;

/// A published package with a library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The name that `rustdoc` gives to its file.
    pub(crate) library: String,
    /// Where the workspace is built.
    pub(crate) target: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<PackageMetadata>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct PackageMetadata {
    name: String,
    /// The registries it may go to: none for a package that is not published, and `null` for any.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The published packages of the workspace.
pub(crate) fn published(repository: &Repository) -> Result<Vec<Package>, CheckError> {
    let command = "cargo metadata";
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .current_dir(repository.root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| CheckError::Start { command: command.to_owned(), source })?;
    if !output.status.success() {
        return Err(CheckError::Failed { command: command.to_owned(), status: output.status });
    }
    in_metadata(&output.stdout)
        .map_err(|source| CheckError::Json { origin: format!("the output of `{command}`"), source })
}

pub(crate) fn in_metadata(json: &[u8]) -> Result<Vec<Package>, serde_json::Error> {
    let metadata: Metadata = serde_json::from_slice(json)?;
    let mut packages: Vec<Package> = metadata
        .packages
        .into_iter()
        .filter(|package| package.publish.as_ref().is_none_or(|registries| !registries.is_empty()))
        .filter_map(|package| {
            let library = package.targets.into_iter().find(Target::is_library)?.name;
            Some(Package { name: package.name, library, target: metadata.target_directory.clone() })
        })
        .collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

impl Target {
    fn is_library(&self) -> bool {
        self.kind.iter().any(|kind| kind == "lib" || kind == "proc-macro")
    }
}
