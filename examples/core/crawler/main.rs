//! Crawls a folder of pages level by level, bounded, and politely: one request at a time to each host.
//!
//! `cargo run -p examples --example crawler -- --depth 2`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its reader")]

mod flow;
mod web;

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt as _;
use workflow_core::prelude::*;
use workflow_core::{DisplayStream, Limit};

use flow::{Crawl, Crawled, Crawler, Progress};
use web::Web;

/// Crawls a folder that holds one folder per host, as `docs.example/index.html`.
#[derive(Debug, Parser)]
#[command(name = "crawler")]
struct Arguments {
    /// The folder; without it, the pages of this example.
    folder: Option<PathBuf>,

    /// Where to begin; may be given several times.
    #[arg(long, default_value = "http://docs.example/index.html")]
    seed: Vec<String>,

    /// How many links to follow from a seed.
    #[arg(long, default_value_t = 10)]
    depth: u32,

    /// The most pages to visit.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    most: u32,

    /// How many requests a host gets at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    per_host: u32,

    /// How many requests a host gets each second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    per_second: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    match crawl(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", workflow_core::errors::chain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn crawl(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/crawler/site");
    let folder = arguments.folder.unwrap_or_else(|| ours.into());
    if !folder.is_dir() {
        return Err(format!("{} is not a folder of pages", folder.display()).into());
    }
    let web = Arc::new(Web::new(folder));
    let polite = Limit::concurrent(arguments.per_host).rate(arguments.per_second, Duration::from_secs(1));
    let workflow =
        Crawler { web: Arc::clone(&web), depth: arguments.depth, most: arguments.most.try_into()? };
    let engine = Engine::builder().workflow(workflow).limit("host", polite).build()?;
    let run = engine.start::<Crawler>(Crawl { seeds: arguments.seed }).await?;
    follow(run.display()).await;
    print_crawled(&run.outcome().await?);
    for (host, used) in web.use_of_hosts() {
        println!("{host:<14} {:>3} requests, {} at a time", used.requests, used.most_at_a_time);
    }
    Ok(())
}

/// Shows pages as they come, on a terminal in one line.
async fn follow(mut shown: DisplayStream) {
    let terminal = io::stdout().is_terminal();
    let mut pages = 0;
    while let Some(item) = shown.next().await {
        match item.event::<Progress>() {
            Some(Progress::Level { number, urls }) => println!("level {number}: {urls} pages"),
            Some(Progress::Fetched { url, .. }) if terminal => {
                pages += 1;
                print!("\r\x1b[2K{pages} pages, {url}\r");
                let _flushed = io::stdout().flush();
            }
            Some(Progress::Fetched { url, words }) => println!("  {url}: {words} words"),
            None => {}
        }
    }
}

fn print_crawled(crawled: &Crawled) {
    println!();
    for page in &crawled.pages {
        println!("{:<40} {:>4} words  {}", page.url, page.words, page.title);
    }
    for (url, why) in &crawled.broken {
        println!("{url:<40} broken: {why}");
    }
    println!("\n{} pages, {} broken links", crawled.pages.len(), crawled.broken.len());
    if crawled.left_out > 0 {
        println!("{} more addresses are beyond the bounds", crawled.left_out);
    }
}
