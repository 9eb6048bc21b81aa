//! Why a check could not be made. A check that was made and failed is a [`Report`](crate::report::Report).

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("{0}")]
    Usage(&'static str),
    #[error("the current folder cannot be read")]
    CurrentDir(#[source] io::Error),
    #[error("{} and its parents have no Cargo.toml with a [workspace]", .0.display())]
    NoWorkspace(PathBuf),
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be written", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}:{line}: this is no Rust", path.display())]
    Syntax { path: PathBuf, line: usize, source: syn::Error },
    #[error("docs has no page rules*.md")]
    NoRules,
    #[error("`{command}` cannot be started")]
    Start { command: String, source: io::Error },
    #[error("`{command}` ended with {status}")]
    Failed { command: String, status: ExitStatus },
    #[error("{origin} is not the JSON that is expected")]
    Json { origin: String, source: serde_json::Error },
    #[error(
        "rustdoc writes format {found}, and `public-api` reads {expected}: use the toolchain that README.md names, or \
         change the version of `public-api` in Cargo.toml with it"
    )]
    Format { found: u32, expected: u32 },
    #[error("the public items of `{package}` cannot be listed")]
    List { package: String, source: public_api::Error },
    #[error("the report cannot be printed")]
    Print(#[source] io::Error),
}

impl CheckError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Write { path: path.to_owned(), source }
    }

    /// The error and everything that caused it, in one line.
    pub(crate) fn with_sources(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}
