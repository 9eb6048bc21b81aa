//! The files of the repository: which there are, and what they are to the checks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CheckError;

/// Folders that builds and tools fill.
const NOT_OURS: [&str; 4] = [".git", "target", "node_modules", "wip"];

/// The repository, with paths relative to its root.
#[derive(Debug)]
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository that has `folder` in it.
    pub(crate) fn around(folder: &Path) -> Result<Self, CheckError> {
        folder
            .ancestors()
            .find(|folder| {
                fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]\n"))
            })
            .map(|root| Self { root: root.to_owned() })
            .ok_or_else(|| CheckError::NoWorkspace(folder.to_owned()))
    }

    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn read(&self, path: &Path) -> Result<String, CheckError> {
        fs::read_to_string(self.root.join(path)).map_err(CheckError::read(path))
    }

    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), CheckError> {
        fs::write(self.root.join(path), text).map_err(CheckError::write(path))
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.root.join(path).exists()
    }

    /// All files with this extension, in order of their paths.
    pub(crate) fn files(&self, extension: &str) -> Result<Vec<PathBuf>, CheckError> {
        let mut files = Vec::new();
        self.collect(Path::new(""), extension, &mut files)?;
        files.sort();
        Ok(files)
    }

    fn collect(&self, folder: &Path, extension: &str, files: &mut Vec<PathBuf>) -> Result<(), CheckError> {
        let entries = fs::read_dir(self.root.join(folder)).map_err(CheckError::read(folder))?;
        for entry in entries {
            let entry = entry.map_err(CheckError::read(folder))?;
            let path = folder.join(entry.file_name());
            if entry.file_type().map_err(CheckError::read(&path))?.is_dir() {
                if !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                    self.collect(&path, extension, files)?;
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
        Ok(())
    }

    /// The folders of the crates that are published and have a library.
    pub(crate) fn published_crates(&self) -> Result<Vec<PathBuf>, CheckError> {
        let mut crates = Vec::new();
        for manifest in self.files("toml")? {
            let folder = manifest.parent().unwrap_or(Path::new(""));
            let is_member = manifest.ends_with("Cargo.toml") && folder.components().count() == 1;
            if is_member
                && self.has(&folder.join("src/lib.rs"))
                && !self.read(&manifest)?.contains("publish = false")
            {
                crates.push(folder.to_owned());
            }
        }
        Ok(crates)
    }
}
