//! `compact`: makes the file as small as its contents allow.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::size::size;
use crate::{Output, Problem, block_on, open_to_write};

/// Opens the file to write to it, which fails while a process has it open.
pub(crate) fn run(path: &Path, output: &mut Output<'_>) -> Result<(), Problem> {
    let length = || fs::metadata(path).map(|file| file.len());
    let before = length()?;
    let store = open_to_write(path)?;
    block_on(async {
        while store.compact().await? {}
        Ok::<(), Problem>(())
    })?;
    drop(store);
    let after = length()?;
    if output.json {
        serde_json::to_writer(&mut *output.to, &json!({ "before": before, "after": after }))?;
        return Ok(writeln!(output.to)?);
    }
    Ok(writeln!(output.to, "{} before, {} after", size(before), size(after))?)
}
