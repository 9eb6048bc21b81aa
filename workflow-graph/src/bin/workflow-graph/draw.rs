//! `draw`: a document as a drawing, perhaps with a run laid over it.

use std::path::PathBuf;

use clap::Args;
use workflow_redb::StoreFile;

use crate::format::{self, Format};
use crate::problem::Problem;
use crate::stored;
use crate::text::{plain_lines, print_json};
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct Draw {
    /// The document.
    file: PathBuf,
    /// Draw it in DOT, the language of Graphviz.
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// The file with the run.
    #[arg(long, value_name = "FILE", requires = "id")]
    store: Option<PathBuf>,
    /// The run that is laid over the drawing.
    #[arg(long, requires = "store")]
    id: Option<String>,
}

impl Draw {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let document = format::load(&self.file, format)?;
        let drawing = match (&self.store, &self.id) {
            (Some(store), Some(id)) => {
                let file = StoreFile::open(store)?;
                let run = stored::find(&file, id)?;
                stored::read(&file, &run.id, &document)?.draw()
            }
            _ => document.draw(),
        };
        if output.json {
            print_json(output.to, &drawing)?;
            return Ok(Exit::Success);
        }
        let text = if self.dot { drawing.to_dot() } else { drawing.to_mermaid() };
        writeln!(output.to, "{}", plain_lines(text.trim_end()))?;
        Ok(Exit::Success)
    }
}
