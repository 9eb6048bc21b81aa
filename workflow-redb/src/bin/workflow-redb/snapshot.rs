//! `snapshot`: copies the file.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use workflow_redb::StoreFile;

use crate::size::size;
use crate::table::plain;
use crate::{Output, Problem};

#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    /// The copy. It must not exist.
    to: PathBuf,
}

impl Snapshot {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        file.snapshot(&self.to)?;
        let bytes = fs::metadata(&self.to)?.len();
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "bytes": bytes }))?;
            return Ok(writeln!(output.to)?);
        }
        Ok(writeln!(output.to, "{} has {}", plain(&self.to.to_string_lossy()), size(bytes))?)
    }
}
