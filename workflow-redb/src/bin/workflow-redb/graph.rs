//! `graph`: the workflow of a run with the run laid over it, by the run's journal alone.

use clap::Args;
use workflow_redb::StoreFile;

use crate::explain::recorded;
use crate::{Output, Problem};

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The run's id.
    run: String,
    /// Draw it in DOT, the language of Graphviz.
    #[arg(long, conflicts_with = "json")]
    dot: bool,
}

impl Graph {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let graph = recorded(file, &self.run)?.graph();
        if output.json {
            serde_json::to_writer(&mut *output.to, &graph)?;
            return Ok(writeln!(output.to)?);
        }
        let drawing = if self.dot { graph.to_dot() } else { graph.to_mermaid() };
        Ok(writeln!(output.to, "{}", drawing.trim_end())?)
    }
}
