//! `inbox`: the messages that wait for an engine, and the ones that were refused last.

use clap::Args;
use serde_json::json;
use workflow_core::RunId;
use workflow_core::store::{InboxMessage, RefusedMessage, RunMessage};
use workflow_redb::{PendingMessage, StoreFile};

use crate::table::{Table, short};
use crate::time::utc;
use crate::{Output, Problem};

/// How much of a message is shown in a row.
const WIDTH: usize = 160;

#[derive(Debug, Args)]
pub(crate) struct Inbox {
    /// Only messages to this run.
    run: Option<String>,
    /// At most so many pending messages.
    #[arg(long, value_name = "MESSAGES", default_value_t = 1_000)]
    limit: usize,
    /// Show the data of messages as a whole, however long.
    #[arg(long)]
    full: bool,
}

impl Inbox {
    pub(crate) fn run(&self, file: &StoreFile, output: &mut Output<'_>) -> Result<(), Problem> {
        let run = self.run.as_deref().map(RunId::from);
        let pending = file.pending_messages(run.as_ref(), self.limit)?;
        let mut refused = file.refused_messages()?;
        refused.retain(|refused| run.as_ref().is_none_or(|run| refused.run == *run));
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "pending": pending, "refused": refused }))?;
            return Ok(writeln!(output.to)?);
        }
        let mut table = Table::new(["RUN", "ID", "TAKEN (UTC)", "BY", "MESSAGE"]);
        for pending in &pending {
            table.row(self.pending(pending)?);
        }
        table.print(output.to, output.colour)?;
        if pending.len() >= self.limit.max(1) {
            writeln!(output.to, "There may be more: see --limit.")?;
        }
        if !refused.is_empty() {
            writeln!(output.to, "\nrefused, the last one at the end:")?;
            let mut table = Table::new(["RUN", "ID", "TAKEN (UTC)", "BY", "MESSAGE", "REASON"]);
            for refused in &refused {
                table.row(self.refused(refused)?);
            }
            table.print(output.to, output.colour)?;
        }
        Ok(())
    }

    fn pending(&self, pending: &PendingMessage) -> Result<[String; 5], Problem> {
        let [taken, by, what] = match &pending.message {
            Some(message) => self.parts(message)?,
            None => [String::new(), String::new(), "damaged: see `withdraw`".to_owned()],
        };
        Ok([pending.run.to_string(), pending.id.to_string(), taken, by, what])
    }

    fn refused(&self, refused: &RefusedMessage) -> Result<[String; 6], Problem> {
        let [taken, by, what] = self.parts(&refused.message)?;
        Ok([refused.run.to_string(), refused.message.id.to_string(), taken, by, what, refused.reason.clone()])
    }

    fn parts(&self, message: &InboxMessage) -> Result<[String; 3], Problem> {
        let what = what(&message.message)?;
        let what = if self.full { what } else { short(&what, WIDTH) };
        Ok([utc(message.at), message.by.as_deref().unwrap_or_default().to_owned(), what])
    }
}

fn what(message: &RunMessage) -> Result<String, Problem> {
    let kind = message.kind();
    Ok(match message {
        RunMessage::Send { event, data } => format!("{kind} {event} {data}"),
        RunMessage::Reply { request, data } => format!("{kind} {request} {data}"),
        RunMessage::Cancel { reason } => format!("{kind} {reason}"),
        RunMessage::Pause { how } => format!("{kind} {}", serde_json::to_string(how)?.trim_matches('"')),
        _ => kind.to_owned(),
    })
}
