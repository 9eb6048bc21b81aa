//! Shows the contents of a store's file, copies it, and makes it smaller. `compact`, `retain`, `redrive` and the messages to
//! runs change it. The other files of this folder have a command each, and `message` has those of messages.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use workflow_core::errors::chain;
use workflow_redb::{OpenError, RedbStore, StoreFile};

mod check;
mod compact;
mod explain;
mod export;
mod graph;
mod inbox;
mod list;
mod message;
mod redrive;
mod requests;
mod retain;
mod show;
mod size;
mod snapshot;
mod table;
mod time;

/// Looks into a file of workflow-redb, and maintains it. `compact`, `retain`, `redrive` and the messages to runs (`send`,
/// `reply`, `cancel`, `pause`, `unpause`, `withdraw`) change the file; all other commands open it to be read. A file that a
/// program has open is read from a copy, which the program makes with `RedbStore::snapshot`.
///
/// Exit codes: 0 for success, 1 for a problem that was found, 2 for a command that is wrong.
#[derive(Debug, Parser)]
#[command(name = "workflow-redb", version, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    /// The file, before the command.
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// The file, if it is called like a command.
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The runs that the file has, in the order of their ids or newest first.
    List(list::List),
    /// One run: its summary, and its records.
    Show(show::Show),
    /// Why each step of a run ran, and why it did not, by its journal alone.
    Explain(explain::Explain),
    /// The workflow of a run with the run laid over it, by its journal alone: as Mermaid, DOT or JSON.
    Graph(graph::Graph),
    /// The open requests of a run, by its journal alone: those without a reply.
    Requests(requests::Requests),
    /// The records of a run, a line of JSON each.
    Export(export::Export),
    /// Verify the file: its checksums, and that everything in it agrees.
    Check,
    /// Copy the file's contents to a file of the smallest size, which must not exist.
    Snapshot(snapshot::Snapshot),
    /// Make the file as small as its contents allow. No process may have it open. As every command that writes, it converts a
    /// file of format 1.
    Compact,
    /// Remove the ended runs that no rule keeps, with their children and contexts. No process may have the file open.
    Retain(retain::Retain),
    /// Let a run continue that failed, was cancelled, timed out or stalled. No process may have the file open, and the next
    /// engine continues the run. It converts a file of an earlier format, which
    /// earlier versions then cannot open: copy the file first.
    Redrive(redrive::Redrive),
    /// Send an external event to a run. As for each message, no process may have the file open: the run finds it in its
    /// inbox when the next engine resumes the run. The first message of a file brings it to format 3, which earlier versions
    /// cannot open.
    Send(message::Send),
    /// Reply to an open request of a run. No process may have the file open: the next engine that resumes the run applies it.
    Reply(message::Reply),
    /// Cancel a run. No process may have the file open: the next engine that resumes the run applies it.
    Cancel(message::Cancel),
    /// Pause a run: nothing begins in it any more. No process may have the file open: the next engine that resumes the run applies it.
    Pause(message::PauseRun),
    /// Let a paused run continue. No process may have the file open: the next engine that resumes the run applies it.
    Unpause(message::Unpause),
    /// Take a message out of the inbox that no engine has applied. No process may have the file open.
    Withdraw(message::Withdraw),
    /// The messages that wait for an engine, and the last ones that their runs refused, with the reasons.
    Inbox(inbox::Inbox),
}

/// An error that ends a command.
type Problem = Box<dyn std::error::Error>;

/// Where a command prints, and how.
struct Output<'o> {
    to: &'o mut dyn Write,
    json: bool,
    colour: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let path = match (&arguments.file, &arguments.path) {
        (Some(path), None) | (None, Some(path)) => path,
        (Some(_), Some(_)) => usage(ErrorKind::ArgumentConflict, "FILE stands there twice"),
        (None, None) => usage(ErrorKind::MissingRequiredArgument, "a FILE is missing, before the command"),
    };
    let stdout = io::stdout();
    let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let mut to = io::BufWriter::new(stdout.lock());
    let mut output = Output { to: &mut to, json: arguments.json, colour };
    let done = run(&arguments.command, path, &mut output);
    let done = done.and_then(|is_sound| Ok(to.flush().map(|()| is_sound)?));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) if is_closed_pipe(&*problem) => ExitCode::SUCCESS,
        Err(problem) => {
            report(&*problem, arguments.command.hint(&*problem), arguments.json);
            ExitCode::FAILURE
        }
    }
}

/// Reports a wrong command, and exits with 2.
fn usage(kind: ErrorKind, text: &str) -> ! {
    Arguments::command().error(kind, text).exit()
}

/// Runs the command. Returns `false` if a check found problems.
fn run(command: &Command, path: &Path, output: &mut Output<'_>) -> Result<bool, Problem> {
    let open = || StoreFile::open(path);
    match command {
        Command::List(list) => list.run(&open()?, output)?,
        Command::Show(show) => show.run(&open()?, output)?,
        Command::Explain(explain) => explain.run(&open()?, output)?,
        Command::Graph(graph) => graph.run(&open()?, output)?,
        Command::Requests(requests) => requests.run(&open()?, output)?,
        Command::Export(export) => export.run(&open()?, output)?,
        Command::Check => return check::run(open()?, output),
        Command::Inbox(inbox) => inbox.run(&open()?, output)?,
        Command::Snapshot(snapshot) => snapshot.run(&open()?, output)?,
        Command::Compact => compact::run(path, output)?,
        Command::Retain(retain) => retain.run(path, output)?,
        Command::Redrive(redrive) => redrive.run(path, output)?,
        Command::Send(send) => send.order().run(path, output)?,
        Command::Reply(reply) => reply.order().run(path, output)?,
        Command::Cancel(cancel) => cancel.order().run(path, output)?,
        Command::Pause(pause) => pause.order().run(path, output)?,
        Command::Unpause(unpause) => unpause.order().run(path, output)?,
        Command::Withdraw(withdraw) => withdraw.run(path, output)?,
    }
    Ok(true)
}

/// Whether the reader of the output has closed it.
fn is_closed_pipe(problem: &(dyn std::error::Error + 'static)) -> bool {
    let io = problem.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = problem.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(io::ErrorKind::BrokenPipe)
}

/// Opens a file to write to it, and creates none.
fn open_to_write(path: &Path) -> Result<RedbStore, OpenError> {
    RedbStore::builder().create(false).open(path)
}

/// Does work of a store.
fn block_on<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(work)
}

impl Command {
    /// The way around a problem, if there is one.
    fn hint(&self, problem: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
        let mut levels = std::iter::successors(Some(problem), |level| level.source());
        let is_in_use = levels.any(|level| matches!(level.downcast_ref(), Some(OpenError::InUse { .. })));
        is_in_use.then_some(match self {
            Self::List(_)
            | Self::Show(_)
            | Self::Explain(_)
            | Self::Graph(_)
            | Self::Requests(_)
            | Self::Export(_)
            | Self::Check
            | Self::Snapshot(_)
            | Self::Inbox(_) => {
                "the program that has the file open can copy it with `RedbStore::snapshot`: read the copy"
            }
            Self::Compact
            | Self::Retain(_)
            | Self::Redrive(_)
            | Self::Send(_)
            | Self::Reply(_)
            | Self::Cancel(_)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::Withdraw(_) => {
                "the program that has the file open can do this with its engine or store; otherwise end it first"
            }
        })
    }
}

/// Prints an error and its sources, each once, and the way around it.
fn report(problem: &(dyn std::error::Error + 'static), hint: Option<&str>, json: bool) {
    let text = chain(problem);
    let text = if json {
        let mut report = serde_json::json!({ "error": text });
        if let Some(hint) = hint {
            report["hint"] = hint.into();
        }
        report.to_string()
    } else {
        let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        format!("error: {}{hint}", table::plain(&text))
    };
    // If printing fails too, the exit code reports the error.
    drop(writeln!(io::stderr(), "{text}"));
}

/// A run that the file does not have.
#[derive(Debug, thiserror::Error)]
#[error("there is no run `{0}`")]
struct NoRun(String);
