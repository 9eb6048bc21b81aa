//! `trace` and `explain`: the way of a stored run, and its reasons, by its journal alone.

use clap::Args;

use crate::format::Format;
use crate::problem::Problem;
use crate::stored::Stored;
use crate::text::{plain_lines, print_json};
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct ShowTrace {
    #[command(flatten)]
    run: Stored,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    run: Stored,
}

impl ShowTrace {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let trace = self.run.read(format)?.trace();
        if output.json {
            print_json(output.to, &trace)?;
        } else {
            write!(output.to, "{}", plain_lines(&trace.to_string()))?;
        }
        Ok(Exit::Success)
    }
}

impl Explain {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let explanation = self.run.read(format)?.explain();
        if output.json {
            print_json(output.to, &explanation)?;
        } else {
            writeln!(output.to, "{}", plain_lines(explanation.to_string().trim_end()))?;
        }
        Ok(Exit::Success)
    }
}
