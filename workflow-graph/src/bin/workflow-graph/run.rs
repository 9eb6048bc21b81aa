//! `run`: starts a run of a document, and drives it.

use std::path::PathBuf;

use clap::Args;
use workflow_core::{Engine, RunOptions};
use workflow_graph::{GraphOptions, GraphRun};

use crate::ended::{self, Again};
use crate::format::{self, Format};
use crate::problem::Problem;
use crate::session::With;
use crate::{Exit, Output, input, stored};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The document.
    file: PathBuf,
    /// The input: JSON, a file of JSON, or the standard input.
    #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}", allow_hyphen_values = true)]
    input: String,
    /// End at the first node whose route depends on a condition or a model, with the routes that it could take.
    #[arg(long = "dry-run")]
    is_dry: bool,
    /// The file that stores the run. It is created if it does not exist.
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The id of the run. Without it the run has a random one.
    #[arg(long, requires = "store")]
    id: Option<String>,
    #[command(flatten)]
    with: With,
}

impl Run {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let takes_stdin = input::is_stdin(&self.input);
        if takes_stdin && self.with.always_asks() {
            let text = "`--input -` and `--ask always` both read the standard input: use one of them";
            return Err(Problem::Wrong(text.into()));
        }
        let document = format::load(&self.file, format)?;
        let session = self.with.bind(&document)?;
        let session = if takes_stdin { session.without_lines() } else { session };
        let input = input::read(&self.input)?;
        let begin = async |engine: &Engine| {
            let mut options =
                stored::remember(RunOptions::new(), &self.file, format, self.with.script.as_deref());
            if let Some(id) = &self.id {
                options = options.id(id.as_str());
            }
            let mut graph = GraphOptions::new().run(options);
            if self.is_dry {
                graph = graph.dry_run();
            }
            Ok(GraphRun::start_with(engine, document.name(), input, graph).await?)
        };
        let done = session.drive(self.store.as_deref(), begin, None)?;
        // A path that is no text cannot be stored with the run.
        let document = self.file.to_str().is_none().then_some(self.file.as_path());
        let again = Again {
            store: self.store.as_deref(),
            document,
            file: &self.file,
            input: Some(&self.input),
            with: &self.with,
        };
        ended::print(&done, &again, output)
    }
}
