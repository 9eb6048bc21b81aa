//! Agents as the nodes of two documents, offline: a document of this library, whose agents use a tool and have a judge, and an
//! imported Hive document, whose agents speak in one conversation. The process that runs the second one is killed in its
//! branches, and the next one continues the conversation.
//!
//! ```text
//! cargo run -p examples-agents --example team                                     # both; it kills a process of its own
//! cargo run -p examples-agents --example team -- --state /tmp/team --hang          # kill it yourself,
//! cargo run -p examples-agents --example team -- --state /tmp/team                 # and let this one go on
//! ```

#![expect(clippy::print_stderr, reason = "an example prints")]

mod offline;

use std::error::Error;
use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitCode, Stdio};

use clap::Parser;
use serde_json::json;
use workflow_agent::GraphAgents;
use workflow_agent::prelude::*;
use workflow_core::EngineBuilder;
use workflow_core::store::RunQuery;
use workflow_graph::{Document, GraphResult, GraphRun, Registry};
use workflow_redb::RedbStore;

use offline::{BRANCHES, Calls, model};

/// Runs two documents of agents, and kills the process of the second one on the way.
#[derive(Debug, Parser)]
#[command(name = "team")]
struct Arguments {
    /// The folder of the journal: runs the second document alone, or resumes its run.
    #[arg(long)]
    state: Option<PathBuf>,

    /// Let the model hang in the branches, to kill the process there.
    #[arg(long, requires = "state")]
    hang: bool,
}

/// The weather of a city.
#[tool(read_only)]
async fn weather(city: String) -> String {
    format!("{city}: 24 degrees (lake station)")
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { state, hang } = Arguments::parse();
    let ended = match state {
        Some(folder) => trip(&folder, hang).await,
        None => both().await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: impl Display) {
    // The process that waits for this line may be gone.
    let _ = writeln!(std::io::stdout(), "{line}");
}

async fn both() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let calls = Calls::of(&folder.path().join("report"));
    std::fs::create_dir(folder.path().join("report"))?;
    say("report.yaml: agents with a tool and a judge");
    let (document, builder) = hosting("report.yaml", &calls, false)?;
    let engine = builder.build()?;
    let run = GraphRun::start(&engine, document.name(), json!({ "city": "Bern" })).await?;
    tell(&run.outcome().await?);

    let state = folder.path().join("trip");
    say("\ntrip.json: agents in one conversation, in a process that is killed in the branches");
    killed_in_branches(&state)?;
    let before = Calls::of(&state).all();
    say("the process is killed; another one goes on");
    trip(&state, false).await?;
    let after = Calls::of(&state).all().split_off(before.len());
    say(format!("calls of the model before the kill: {}", before.join(", ")));
    say(format!("calls of the model after the kill: {}", after.join(", ")));
    match after.iter().find(|node| ["look", "swim"].contains(&node.as_str())) {
        Some(node) => Err(format!("`{node}` was done before, and is paid for again").into()),
        None => Ok(()),
    }
}

/// Runs this program until its model hangs in both branches, and kills it there.
fn killed_in_branches(state: &Path) -> Result<(), Box<dyn Error>> {
    let mut program = Command::new(std::env::current_exe()?);
    let mut program = program.arg("--state").arg(state).arg("--hang").stdout(Stdio::piped()).spawn()?;
    let hangs = program.stdout.take().is_some_and(hangs_in_branches);
    program.kill()?;
    program.wait()?;
    if hangs { Ok(()) } else { Err("the first process ended by itself".into()) }
}

/// Shows the output until both branches have asked the model.
fn hangs_in_branches(output: ChildStdout) -> bool {
    let mut left = BRANCHES.to_vec();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        say(&line);
        left.retain(|node| !line.trim_start().starts_with(node));
        if left.is_empty() {
            return true;
        }
    }
    false
}

/// The second document: resumes its open run, or starts one.
async fn trip(folder: &Path, hangs: bool) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let (document, builder) = hosting("trip.json", &Calls::of(folder), hangs)?;
    let engine = builder.store(RedbStore::open(folder.join("team.redb"))?).build()?;
    let resumed = engine.resume_open_runs().await?;
    for (run, error) in resumed.refused {
        say(format!("{run} was not resumed: {error}"));
    }
    let open = engine.runs(&RunQuery::new().workflow(document.name()).open()).await?;
    let run = match open.first() {
        Some(open) => GraphRun::attach(&engine, open.id.clone()).await?,
        None => GraphRun::start(&engine, document.name(), json!({ "city": "Bern" })).await?,
    };
    tell(&run.outcome().await?);
    Ok(())
}

/// A document, and an engine of it and its agents.
fn hosting(file: &str, calls: &Calls, hangs: bool) -> Result<(Document, EngineBuilder), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("team/documents");
    let document = Document::load(folder.join(file))?;
    let model = model(calls, hangs);
    let agent = |name: &str, about: &str| {
        Agent::builder(name).model(model.clone()).identity(about).tool(weather).build()
    };
    let agents = [agent("scout", "You find things out.")?, agent("writer", "You write short texts.")?];
    let workflows = document.bind(&Registry::new().agents(GraphAgents::new(agents.clone())))?;
    let engine = Engine::builder().workflows(workflows);
    Ok((document, agents.into_iter().fold(engine, EngineBuilder::agent)))
}

fn tell(result: &GraphResult) {
    let plan = result.output.get("plan").unwrap_or(&result.output);
    say(format!("{} ({})", plan.as_str().map_or_else(|| plan.to_string(), str::to_owned), result.quality));
}
