//! Checks, runs and draws documents. The other files of this folder have a command or a part of one each; `drive` drives a
//! run until it ends or waits.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod text;
mod problem;
mod format;
mod input;
mod quote;
mod stored;
mod check;
mod draw;
mod trace;
mod unbound;
mod interrupts;
mod progress;
mod standing;
mod reply;
mod ask;
mod drive;
mod session;
mod ended;
mod run;
mod answer;
mod resume;

use format::Format;
use problem::Problem;

/// Checks, runs and draws workflows that are documents, YAML or JSON.
///
/// A run with a store survives the end of the program: `answer` and `resume` continue it. Functions, tools and agents of a
/// document come from a script (`--script`), which stands in for them.
///
/// Exit codes: 0 for success, 1 for a run without success, 2 for a document, usage or input that is wrong, 3 for a run that
/// waits.
#[derive(Debug, Parser)]
#[command(name = "workflow-graph", version, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    /// The format of documents. Without it their keys tell.
    #[arg(long = "as", value_name = "FORMAT", global = true)]
    format: Option<Format>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check documents, and list every problem of each.
    Check(check::Check),
    /// Run a document until it ends, or waits for an answer that nobody gives here.
    Run(run::Run),
    /// Answer a question of a stored run, and drive the run until it ends or waits again.
    Answer(answer::Answer),
    /// Continue a stored run: one that was paused, that lost its process, or that failed and whose document was mended.
    Resume(resume::Resume),
    /// Why each node of a stored run was visited, and why it was not.
    Explain(trace::Explain),
    /// The visits and routes of a stored run.
    Trace(trace::ShowTrace),
    /// Draw a document, perhaps with a stored run laid over it: as Mermaid, DOT or JSON.
    Draw(draw::Draw),
    /// The JSON Schema of documents in the native format.
    Schema,
}

/// The end of a command that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Success,
    /// The run has ended without success.
    Failure,
    /// A checked document has errors.
    Wrong,
    Waits,
}

/// Where a command prints, and how.
struct Output<'o> {
    to: &'o mut dyn Write,
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stdout = io::stdout();
    let mut to = io::BufWriter::new(stdout.lock());
    let mut output = Output { to: &mut to, json: arguments.json };
    let done = run(&arguments, &mut output);
    let done = done.and_then(|exit| Ok(to.flush().map(|()| exit)?));
    match done {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::Failure) => ExitCode::FAILURE,
        Ok(Exit::Wrong) => ExitCode::from(2),
        Ok(Exit::Waits) => ExitCode::from(3),
        Err(problem) => {
            // The output so far comes first. If it cannot be written, the exit code reports the error.
            drop(to.flush());
            problem.report(arguments.json)
        }
    }
}

fn run(arguments: &Arguments, output: &mut Output<'_>) -> Result<Exit, Problem> {
    let format = arguments.format;
    match &arguments.command {
        Command::Check(check) => check.run(format, output),
        Command::Run(run) => run.run(format, output),
        Command::Answer(answer) => answer.run(format, output),
        Command::Resume(resume) => resume.run(format, output),
        Command::Explain(explain) => explain.run(format, output),
        Command::Trace(trace) => trace.run(format, output),
        Command::Draw(draw) => draw.run(format, output),
        Command::Schema => {
            text::print_json(output.to, &workflow_graph::Document::schema())?;
            Ok(Exit::Success)
        }
    }
}
