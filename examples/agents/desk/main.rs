//! A desk that decides refunds as a document says: edit the document, and the desk does something else. Its runs survive a
//! kill.
//!
//! ```text
//! cargo run -p examples-agents --example desk                                   # the document of this example
//! cargo run -p examples-agents --example desk -- refund.yaml --state /tmp/desk  # yours; the same command resumes its run
//! ```
//!
//! The document names functions of `shop.rs` and the typed workflow of `fees.rs`.

mod fees;
mod screen;
mod shop;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde_json::json;
use workflow_core::Engine;
use workflow_core::store::RunQuery;
use workflow_graph::{Document, GraphRun};
use workflow_redb::RedbStore;

use fees::Fees;
use screen::{Answers, complain, follow, say};
use shop::Shop;

/// Decides a refund as a document says. A large one waits for your y or n.
#[derive(Debug, Parser)]
#[command(name = "desk")]
struct Arguments {
    /// The document; without it, that of this example.
    document: Option<PathBuf>,

    /// The folder of journal and payments; without it, a temporary one.
    #[arg(long)]
    state: Option<PathBuf>,

    /// The order: A1 and A2 are known.
    #[arg(long, default_value = "A1")]
    order: String,

    /// The cents to refund.
    #[arg(long, default_value_t = 20_000)]
    cents: u64,

    /// The seconds that a look into the customer's history takes.
    #[arg(long, default_value_t = 0)]
    work: u64,

    /// Kill the process once the money is paid, before the result is stored, to see it resume.
    #[arg(long)]
    kill_after_payment: bool,

    /// Print the graph for Mermaid, and run nothing.
    #[arg(long)]
    draw: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match decide(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

async fn decide(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let ours = || concat!(env!("CARGO_MANIFEST_DIR"), "/desk/documents/refund.yaml").into();
    let document = Document::load(arguments.document.clone().unwrap_or_else(ours))?;
    document.warnings().iter().for_each(complain);
    if arguments.draw {
        say(document.draw().to_mermaid());
        return Ok(());
    }
    match &arguments.state {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            run(arguments, &document, folder).await
        }
        None => run(arguments, &document, tempfile::tempdir()?.path()).await,
    }
}

async fn run(arguments: &Arguments, document: &Document, folder: &Path) -> Result<(), Box<dyn Error>> {
    let shop = Shop::new(folder, Duration::from_secs(arguments.work), arguments.kill_after_payment);
    let engine = Engine::builder()
        .workflows(document.bind(&shop.registry())?)
        .workflow(Fees { express_cents: 500 })
        .store(RedbStore::open(folder.join("desk.redb"))?)
        .build()?;
    let resumed = engine.resume_open_runs().await?;
    for (run, error) in resumed.refused {
        complain(format!("{run} was not resumed: {error}"));
    }
    let ended = follow_one(arguments, document, &engine).await;
    engine.shut_down(Duration::from_secs(5)).await;
    ended
}

/// Follows the open run, or starts one.
async fn follow_one(
    arguments: &Arguments,
    document: &Document,
    engine: &Engine,
) -> Result<(), Box<dyn Error>> {
    let open = engine.runs(&RunQuery::new().workflow(document.name()).open()).await?;
    let run = if let Some(open) = open.first() {
        say(format!("resumes {}", open.id));
        GraphRun::attach(engine, open.id.clone()).await?
    } else {
        let input = json!({ "order": arguments.order, "cents": arguments.cents });
        GraphRun::start(engine, document.name(), input).await?
    };
    if !follow(&run, &mut Answers::default()).await? {
        say("nobody answered: the run waits in the store");
        return Ok(());
    }
    let result = run.outcome().await?;
    say(&result.trace);
    result.warnings.iter().for_each(say);
    if result.document_changed {
        say("the document has changed since the run began");
    }
    say(format!("{} ({})", result.output, result.quality));
    Ok(())
}
