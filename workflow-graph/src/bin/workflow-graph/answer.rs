//! `answer`: answers a question of a stored run, and drives the run on.

use clap::Args;
use workflow_core::Engine;
use workflow_graph::GraphRun;

use crate::drive::Given;
use crate::ended::{self, Again};
use crate::format::Format;
use crate::problem::Problem;
use crate::resume::check;
use crate::session::With;
use crate::standing::has_ended;
use crate::stored::Place;
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The run's id.
    #[arg(value_name = "ID")]
    run: String,
    /// The question: the node that asks, or the name that the waiting run has printed.
    gate: String,
    /// The answer: JSON, or a plain word where the question takes one value.
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    data: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    with: With,
}

impl Answer {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let stored = self.place.find(&self.run)?;
        check(&stored)?;
        let status = stored.run.status;
        if status.is_ended() {
            let text = format!("`{}` cannot be answered: the run {}", self.gate, has_ended(status));
            return Err(Problem::Wrong(text));
        }
        let (document, file, _) = self.place.document(&stored, format)?;
        let session = self.with.bind(&document)?;
        let given = Given { gate: self.gate.clone(), answer: self.data.clone() };
        let begin = async |engine: &Engine| Ok(GraphRun::attach(engine, stored.id.clone()).await?);
        let done = session.drive(Some(&self.place.store), begin, Some(given))?;
        let again = Again {
            store: Some(&self.place.store),
            document: self.place.document.as_deref(),
            file: &file,
            input: None,
            with: &self.with,
        };
        ended::print(&done, &again, output)
    }
}
