//! Three bookings for each trip, which are cancelled again if a later one fails; and a second release that takes over
//! the trips of the first one.
//!
//! ```text
//! cargo run -p examples-durable --example saga                                      # both releases, over a temporary folder
//! cargo run -p examples-durable --example saga -- --state /tmp/saga --release 1     # books, and leaves the trips waiting
//! cargo run -p examples-durable --example saga -- --state /tmp/saga --release 2     # resumes them with the new program
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its reader")]

mod agency;
mod v1;
mod v2;

use std::error::Error;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt as _;
use workflow_core::prelude::*;
use workflow_core::store::RunQuery;
use workflow_core::{DisplayStream, Redrive, RunHandle, RunOptions, RunStatus, StartError, StartEvent};
use workflow_redb::RedbStore;

use agency::{Agency, Progress};

/// Books trips of a flight, a hotel and a car, and undoes what it booked if one of them fails.
#[derive(Debug, Parser)]
#[command(name = "saga")]
struct Arguments {
    /// A file of trips; without it, the trips of this example.
    trips: Option<PathBuf>,

    /// The folder of the journals and of the ledger; without it, a temporary one.
    #[arg(long)]
    state: Option<PathBuf>,

    /// Which release of the program runs. The first one only books and leaves the trips waiting. Without it, both run.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2))]
    release: Option<u8>,

    /// Kill the process after this many lines of the ledger, to see it resume.
    #[arg(long)]
    kill_after: Option<u32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match book(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", workflow_core::errors::chain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn book(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/saga/trips.txt");
    let path = arguments.trips.clone().unwrap_or_else(|| ours.into());
    let trips = read(&path)?;
    let temporary = tempfile::tempdir()?;
    let folder = arguments.state.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder)?;
    let offers = include_str!("offers.txt").to_owned();
    let agency = Arc::new(Agency::new(offers, folder.join("ledger.txt"), arguments.kill_after));
    if arguments.release != Some(2) {
        println!("release 1");
        release_1(&trips, &agency, folder).await?;
    }
    if arguments.release != Some(1) {
        println!("release 2");
        release_2(&trips, &agency, folder).await?;
    }
    print!("\n{}", agency.ledger());
    Ok(())
}

/// Books flights and hotels. Nobody answers: the trips wait in the store when this release is replaced.
async fn release_1(trips: &[v1::Trip], agency: &Arc<Agency>, folder: &Path) -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().workflow(v1::Trips { agency: Arc::clone(agency) });
    let engine = engine.store(RedbStore::open(folder.join("trips.redb"))?).build()?;
    for trip in trips {
        let run = start_or_attach::<v1::Trips>(&engine, &trip.traveller, trip.clone()).await?;
        println!("{}: {}", run.id(), settled(&run, &mut run.display()).await);
    }
    engine.shut_down(Duration::from_secs(5)).await;
    Ok(())
}

/// Takes over the trips of the first release, and starts those that are new.
async fn release_2(trips: &[v1::Trip], agency: &Arc<Agency>, folder: &Path) -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().workflow(v2::Trips { agency: Arc::clone(agency) });
    let engine = engine.store(RedbStore::open(folder.join("trips.redb"))?).build()?;
    for trip in trips {
        let v1::Trip { traveller, flight, hotel, car } = trip.clone();
        let start = v2::Trip { traveller, flight, hotel, car };
        let run = start_or_attach::<v2::Trips>(&engine, &trip.traveller, start).await?;
        let mut shown = run.display();
        if settled(&run, &mut shown).await == RunStatus::Waiting && !confirm(&run).await? {
            println!("{}: waits for an answer", run.id());
            continue;
        }
        settled(&run, &mut shown).await;
        match run.outcome().await {
            Ok(booked) => println!("{}: booked {}", run.id(), booked.numbers.join(", ")),
            Err(error) => println!("{}: {error}", run.id()),
        }
    }
    undo_the_rest(&engine).await?;
    engine.shut_down(Duration::from_secs(5)).await;
    Ok(())
}

/// Runs the clean-up steps again that failed before, of this release or of an earlier start: nothing else of their trips.
async fn undo_the_rest(engine: &Engine) -> Result<(), Box<dyn Error>> {
    for stored in engine.runs(&RunQuery::new().incomplete_clean_up()).await? {
        println!("{}: undoes the rest: {}", stored.id, stored.run.incomplete_clean_up.join(", "));
        let run = engine.redrive_with::<v2::Trips>(stored.id, Redrive::new().clean_up()).await?;
        settled(&run, &mut run.display()).await;
    }
    Ok(())
}

/// One run per traveller: it is resumed if it exists, whether it is open or has ended.
async fn start_or_attach<W: Workflow>(
    engine: &Engine,
    traveller: &str,
    trip: impl StartEvent,
) -> Result<RunHandle<W>, Box<dyn Error>> {
    match engine.start_with::<W>(trip, RunOptions::new().id(traveller)).await {
        Err(StartError::DuplicateRun { run }) => Ok(engine.attach::<W>(run).await?),
        started => Ok(started?),
    }
}

/// Prints the progress of a run until it waits or has ended. A clean-up is part of that.
async fn settled<W: Workflow>(run: &RunHandle<W>, shown: &mut DisplayStream) -> RunStatus {
    loop {
        tokio::select! {
            biased; // nothing that was shown is missed
            Some(item) = shown.next() => if let Some(Progress(did)) = item.event() {
                println!("  {did}");
            },
            status = run.settled() => return status,
        }
    }
}

/// Asks the person at the terminal. Returns false at the end of the input.
async fn confirm(run: &RunHandle<v2::Trips>) -> Result<bool, Box<dyn Error>> {
    for request in run.requests().await? {
        // Knows no types, as a web page would.
        println!("{} [y/n]", request.data()?["question"].as_str().unwrap_or_default());
        let confirmed = loop {
            let line = tokio::task::spawn_blocking(|| io::stdin().lock().lines().next()).await?;
            match line.transpose()?.as_deref().map(str::trim) {
                Some("y") => break true,
                Some("n") => break false,
                Some(_) => println!("y or n?"),
                None => return Ok(false),
            }
        };
        run.reply_json(request.seq(), serde_json::json!(confirmed)).await?;
    }
    Ok(true)
}

fn read(path: &Path) -> Result<Vec<v1::Trip>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let trips = lines.map(|(line, number)| {
        let parts: Vec<String> = line.split(',').map(|part| part.trim().to_owned()).collect();
        let [traveller, flight, hotel, car] = <[String; 4]>::try_from(parts)
            .map_err(|_| format!("line {number}: not a traveller, a flight, a hotel and a car"))?;
        Ok::<_, Box<dyn Error>>(v1::Trip { traveller, flight, hotel, car })
    });
    trips.collect()
}
