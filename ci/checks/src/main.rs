//! Checks of this repository that no compiler makes. `ci/check-layers`, `ci/check-rules`, `ci/check-words` and
//! `ci/check-public` call them.
//!
//! A check prints findings with file and line, and a last line that sums up. The process ends with 1 if a check failed,
//! and with 2 if it could not be made.

use std::io::{self, Write};
use std::process::ExitCode;

mod comments;
mod error;
mod layers;
mod public;
mod report;
mod repository;
mod rules;
mod words;

use error::CheckError;
use report::Report;
use repository::Repository;

const USAGE: &str = "usage: workflow-checks layers | rules [--fix] | words | public [--accept]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match check(&arguments).and_then(|report| print(&report)) {
        Ok(code) => code,
        Err(error) => {
            // Where even this cannot be written, the exit code remains.
            drop(writeln!(io::stderr(), "{}", error.with_sources()));
            ExitCode::from(2)
        }
    }
}

fn check(arguments: &[&str]) -> Result<Report, CheckError> {
    let repository = || Repository::around(&std::env::current_dir().map_err(CheckError::CurrentDir)?);
    match arguments {
        ["layers"] => layers::check(&repository()?),
        ["rules"] => rules::check(&repository()?),
        ["rules", "--fix"] => rules::fix(&repository()?),
        ["words"] => words::check(&repository()?),
        ["public"] => public::check(&repository()?),
        ["public", "--accept"] => public::accept(&repository()?),
        _ => Err(CheckError::Usage(USAGE)),
    }
}

fn print(report: &Report) -> Result<ExitCode, CheckError> {
    let mut out = io::stdout().lock();
    for line in report.lines() {
        writeln!(out, "{line}").map_err(CheckError::Print)?;
    }
    Ok(if report.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
