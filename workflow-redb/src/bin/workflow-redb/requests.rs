//! `requests`: the open requests of a run, by its journal alone.

use clap::Args;
use workflow_redb::StoreFile;

use crate::explain::recorded;
use crate::table::{Table, short};
use crate::time::utc;
use crate::{Output, Problem};

/// How much of the data of a request is shown in a row.
const WIDTH: usize = 160;

#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// The run's id.
    run: String,
    /// Show the data of requests as a whole, however long.
    #[arg(long)]
    full: bool,
}

impl Requests {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let requests = recorded(file, &self.run)?.requests();
        if output.json {
            serde_json::to_writer(&mut *output.to, &requests)?;
            return Ok(writeln!(output.to)?);
        }
        let mut table = Table::new(["SEQ", "REQUEST", "ASKED (UTC)", "EXPIRES (UTC)", "DATA"]);
        for request in &requests {
            let data = request.data()?.to_string();
            table.row([
                request.seq().to_string(),
                request.name().to_owned(),
                utc(request.asked_at()),
                request.expires_at().map(utc).unwrap_or_default(),
                if self.full { data } else { short(&data, WIDTH) },
            ]);
        }
        Ok(table.print(output.to, output.colour)?)
    }
}
