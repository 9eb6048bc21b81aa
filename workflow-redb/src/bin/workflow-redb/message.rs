//! `send`, `reply`, `cancel`, `pause`, `unpause`: messages that a run finds in its inbox. `withdraw` takes one out again.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use workflow_core::store::{InboxMessage, RunMessage};
use workflow_core::table::DependencyTable;
use workflow_core::{Pause, RecordedRun, RunId, SendError, Seq};
use workflow_redb::StoreFile;

use crate::explain::recorded;
use crate::table::plain;
use crate::{Output, Problem, block_on, open_to_write};

/// The most bytes of an author or an id, as the engine takes them.
const MOST_BYTES: usize = 256;

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The run's id.
    run: String,
    /// The name of an external event of its workflow.
    event: String,
    /// The event's data.
    #[arg(value_name = "JSON", value_parser = json, allow_hyphen_values = true)]
    data: Value,
    #[command(flatten)]
    origin: Origin,
}

#[derive(Debug, Args)]
pub(crate) struct Reply {
    /// The run's id.
    run: String,
    /// The sequence number of the request, as `requests` shows it: `#2` or `2`.
    #[arg(value_parser = seq)]
    seq: Seq,
    /// The data of the reply.
    #[arg(value_name = "JSON", value_parser = json, allow_hyphen_values = true)]
    data: Value,
    #[command(flatten)]
    origin: Origin,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run's id.
    run: String,
    /// The reason, as the run's journal has it.
    #[arg(default_value = "by the command line")]
    reason: String,
    #[command(flatten)]
    origin: Origin,
}

#[derive(Debug, Args)]
pub(crate) struct PauseRun {
    /// The run's id.
    run: String,
    /// Drop what is under way, to begin again after the pause.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    origin: Origin,
}

#[derive(Debug, Args)]
pub(crate) struct Unpause {
    /// The run's id.
    run: String,
    #[command(flatten)]
    origin: Origin,
}

#[derive(Debug, Args)]
pub(crate) struct Withdraw {
    /// The run's id.
    run: String,
    /// The message's id, as `inbox` shows it.
    id: String,
}

/// The origin of a message, as the journal has it.
#[derive(Debug, Args)]
struct Origin {
    /// The message's id: of two messages with the same one, the run takes the first. Without it the command makes one.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    id: Option<String>,
    /// The author.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    by: Option<String>,
}

/// A sequence number, with or without its sign.
fn seq(text: &str) -> Result<Seq, std::num::ParseIntError> {
    text.strip_prefix('#').unwrap_or(text).parse().map(Seq)
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// A message with its run.
pub(crate) struct Order<'a> {
    run: &'a str,
    message: RunMessage,
    origin: &'a Origin,
}

impl Send {
    pub(crate) fn order(&self) -> Order<'_> {
        let message = RunMessage::Send { event: self.event.as_str().into(), data: self.data.clone() };
        Order { run: &self.run, message, origin: &self.origin }
    }
}

impl Reply {
    pub(crate) fn order(&self) -> Order<'_> {
        let message = RunMessage::Reply { request: self.seq, data: self.data.clone() };
        Order { run: &self.run, message, origin: &self.origin }
    }
}

impl Cancel {
    pub(crate) fn order(&self) -> Order<'_> {
        let message = RunMessage::Cancel { reason: self.reason.as_str().into() };
        Order { run: &self.run, message, origin: &self.origin }
    }
}

impl PauseRun {
    pub(crate) fn order(&self) -> Order<'_> {
        let how = if self.now { Pause::Now } else { Pause::AfterRunning };
        Order { run: &self.run, message: RunMessage::Pause { how }, origin: &self.origin }
    }
}

impl Unpause {
    pub(crate) fn order(&self) -> Order<'_> {
        Order { run: &self.run, message: RunMessage::Unpause, origin: &self.origin }
    }
}

impl Order<'_> {
    /// Refuses what the run's journal and table show to be wrong. Otherwise opens the file to write to it, which fails
    /// while a process has it open, and puts the message in.
    pub(crate) fn run(self, path: &Path, output: &mut Output<'_>) -> Result<(), Problem> {
        let run = RunId::from(self.run);
        let file = StoreFile::open(path)?;
        check(&run, &recorded(&file, self.run)?, &self.message)?;
        drop(file);
        let message = self.origin.of(self.message)?;
        let (id, kind) = (Arc::clone(&message.id), message.message.kind());
        let store = open_to_write(path)?;
        block_on(async {
            store.put_message(run.clone(), message).await?;
            Ok(store.sync().await?)
        })?;
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "run": run, "id": id, "message": kind }))?;
            writeln!(output.to)?;
        } else {
            let (run, id) = (plain(run.as_str()), plain(&id));
            writeln!(
                output.to,
                "{run} has the message {id} in its inbox: the next engine that resumes the run applies it"
            )?;
        }
        Ok(())
    }
}

impl Withdraw {
    pub(crate) fn run(&self, path: &Path, output: &mut Output<'_>) -> Result<(), Problem> {
        let (run, id) = (RunId::from(self.run.as_str()), self.id.as_str());
        let store = open_to_write(path)?;
        let was_there = block_on(async {
            let was_there = store.withdraw_message(run.clone(), id).await?;
            store.sync().await?;
            Ok(was_there)
        })?;
        if !was_there {
            return Err(NoMessage { run: self.run.clone(), id: self.id.clone() }.into());
        }
        if output.json {
            serde_json::to_writer(&mut *output.to, &json!({ "withdrawn": { "run": run, "id": id } }))?;
            writeln!(output.to)?;
        } else {
            writeln!(output.to, "{} is out of the inbox of {}", plain(id), plain(run.as_str()))?;
        }
        Ok(())
    }
}

impl Origin {
    fn of(&self, message: RunMessage) -> Result<InboxMessage, SendError> {
        let longest = [&self.id, &self.by].into_iter().flatten().map(String::len).max();
        if let Some(bytes) = longest.filter(|bytes| *bytes > MOST_BYTES) {
            return Err(SendError::OriginTooLong { bytes, limit: MOST_BYTES });
        }
        let now = SystemTime::now();
        let made = || {
            // The file is open once at a time, so no two commands have the same moment.
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("{}-{}", since.as_nanos(), std::process::id())
        };
        let message = InboxMessage::new(self.id.clone().unwrap_or_else(made), message, now);
        Ok(match &self.by {
            Some(by) => message.by(by.as_str()),
            None => message,
        })
    }
}
/// Refuses what no engine will apply.
fn check(run: &RunId, recorded: &RecordedRun, message: &RunMessage) -> Result<(), Problem> {
    let status = recorded.status();
    if status.is_ended() {
        return Err(SendError::Ended { run: run.clone(), status }.into());
    }
    match message {
        RunMessage::Send { event, .. } => {
            let fitting = external(recorded.table());
            if fitting.contains(event) {
                return Ok(());
            }
            Err(SendError::UnknownEvent { event: Arc::clone(event), fitting }.into())
        }
        RunMessage::Reply { request, .. } => {
            let open = recorded.requests();
            if open.iter().any(|open| open.seq() == *request) {
                return Ok(());
            }
            let open = open.iter().map(|open| format!("`{}` at {}", open.name(), open.seq())).collect();
            Err(NotOpen { run: run.to_string(), request: *request, open }.into())
        }
        _ => Ok(()),
    }
}

/// The external events that a step takes, or that end the run, sorted.
fn external(table: &DependencyTable) -> Vec<Arc<str>> {
    let inputs = table.steps().iter().flat_map(workflow_core::table::StepRow::inputs);
    let mut fitting = Vec::new();
    for event in table.events().iter().filter(|event| event.roles().is_external()) {
        let index = table.event_named(event.name());
        let is_taken = inputs.clone().any(|input| input.events().iter().any(|taken| Some(*taken) == index));
        if event.roles().is_stop() || is_taken {
            fitting.push(Arc::from(event.name()));
        }
    }
    fitting.sort_unstable();
    fitting
}

/// A reply to a request that is not open.
#[derive(Debug, thiserror::Error)]
#[error("no request of `{run}` is open at {request}{}", others(.open))]
struct NotOpen {
    run: String,
    request: Seq,
    open: Vec<String>,
}

fn others(open: &[String]) -> String {
    if open.is_empty() {
        ", and no other is open".to_owned()
    } else {
        format!(": open are {}", open.join(", "))
    }
}

/// A message that the inbox does not have.
#[derive(Debug, thiserror::Error)]
#[error("no message `{id}` is pending for run `{run}`")]
struct NoMessage {
    run: String,
    id: String,
}
