//! Sorts a file of support tickets into queues, asks a person about some of them, and survives being killed.
//!
//! ```text
//! cargo run -p examples-durable --example triage -- --state /tmp/triage                   # classifies, asks, delivers
//! cargo run -p examples-durable --example triage -- --state /tmp/triage --kill-after 3    # is killed after three deliveries
//! ```
//!
//! With `--state`, the same command resumes where the last one stopped, whether it was killed or nobody answered.

mod flow;
mod outbox;
mod screen;
mod words;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use workflow_core::prelude::*;
use workflow_core::{ResumeError, RunHandle, RunOptions, RunStatus, SendError};
use workflow_redb::RedbStore;

use flow::{Agree, Inbox, Triage};
use outbox::Outbox;

/// Sorts support tickets into queues. Large refunds and unclear tickets wait for your y or n.
#[derive(Debug, Parser)]
#[command(name = "triage")]
struct Arguments {
    /// A file of tickets, separated by blank lines; without it, the tickets of this example.
    tickets: Option<PathBuf>,

    /// The folder of the run's journal and of the queues; without it, a temporary one.
    #[arg(long)]
    state: Option<PathBuf>,

    /// Refunds above this many euros wait for a person.
    #[arg(long, default_value_t = 100)]
    largest_refund: u32,

    /// Kill the process after this many deliveries, to see it resume.
    #[arg(long)]
    kill_after: Option<u32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match triage(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen::complain(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn triage(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/triage/tickets.txt");
    let path = arguments.tickets.clone().unwrap_or_else(|| ours.into());
    if !path.is_file() {
        return Err(format!("{} is not a file of tickets", path.display()).into());
    }
    match &arguments.state {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            run(arguments, &path, folder).await
        }
        None => run(arguments, &path, tempfile::tempdir()?.path()).await,
    }
}

async fn run(arguments: &Arguments, path: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let outbox = Outbox::open(folder, arguments.kill_after)?;
    let queues = format!("queues: {}", outbox.path().display());
    let workflow = Triage { outbox, largest_refund_cents: u64::from(arguments.largest_refund) * 100 };
    let store = RedbStore::open(folder.join("triage.redb"))?;
    let engine = Engine::builder().workflow(workflow).store(store).build()?;
    let run = found_or_started(&engine, path).await?;
    let shown = tokio::spawn(screen::follow(run.display()));
    let answered = answer(&run).await?;
    if answered {
        shown.await?;
        screen::summary(&run.outcome().await?);
        screen::say(&queues);
    } else {
        let open = run.requests().await?.len();
        screen::say(&format!("\n{open} tickets wait for you. With --state, the same command asks again."));
    }
    engine.shut_down(Duration::from_secs(5)).await;
    Ok(())
}

/// One run per file of tickets: it is resumed if it exists, whether it is open or has ended.
async fn found_or_started(engine: &Engine, path: &Path) -> Result<RunHandle<Triage>, Box<dyn Error>> {
    let path = path.canonicalize()?;
    let id = path.to_string_lossy().into_owned();
    match engine.attach::<Triage>(id.as_str()).await {
        Err(ResumeError::UnknownRun { .. }) => {
            Ok(engine.start_with::<Triage>(Inbox { path }, RunOptions::new().id(id)).await?)
        }
        Err(other) => Err(other.into()),
        Ok(run) => {
            screen::say("resumes the run that it found");
            Ok(run)
        }
    }
}

/// Answers requests until the run has ended. Returns false if nobody answers any more.
async fn answer(run: &RunHandle<Triage>) -> Result<bool, SendError> {
    let mut answers = screen::answers();
    while run.settled().await == RunStatus::Waiting {
        for request in run.requests().await? {
            let Some(id) = request.id::<Agree>() else { continue };
            if let Some(agree) = request.downcast_ref::<Agree>() {
                screen::ask(agree);
            }
            let agreed = loop {
                match answers.recv().await.as_deref() {
                    Some("y") => break true,
                    Some("n") => break false,
                    Some(_) => screen::say("y or n?"),
                    None => return Ok(false),
                }
            };
            run.reply(id, agreed).await?;
        }
    }
    Ok(true)
}
