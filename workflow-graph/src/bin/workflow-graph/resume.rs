//! `resume`: continues a stored run. It ends a pause, takes up a run whose process ended, and redrives one that failed.

use clap::Args;
use workflow_core::store::StoredRun;
use workflow_core::{Engine, RunStatus};
use workflow_graph::GraphRun;

use crate::ended::{self, Again};
use crate::format::Format;
use crate::problem::Problem;
use crate::session::With;
use crate::stored::Stored;
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    run: Stored,
    #[command(flatten)]
    with: With,
}

/// Refuses a run that another one drives.
pub(crate) fn check(stored: &StoredRun) -> Result<(), Problem> {
    match &stored.run.parent {
        Some(parent) => {
            let text = format!("run `{}` is a child of run `{}`: name that one", stored.id, parent.run);
            Err(Problem::Wrong(text))
        }
        None => Ok(()),
    }
}

impl Resume {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let place = &self.run.place;
        let stored = place.find(&self.run.run)?;
        check(&stored)?;
        let (document, file, _) = place.document(&stored, format)?;
        let session = self.with.bind(&document)?;
        let begin = async |engine: &Engine| {
            let (id, status) = (stored.id.clone(), stored.run.status);
            if status.is_ended() && status != RunStatus::Completed {
                return Ok(GraphRun::redrive(engine, id).await?);
            }
            let run = GraphRun::attach(engine, id).await?;
            if !status.is_ended() {
                run.unpause().await?;
            }
            Ok(run)
        };
        let done = session.drive(Some(&place.store), begin, None)?;
        let again = Again {
            store: Some(&place.store),
            document: place.document.as_deref(),
            file: &file,
            input: None,
            with: &self.with,
        };
        ended::print(&done, &again, output)
    }
}
