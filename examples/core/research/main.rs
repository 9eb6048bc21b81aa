//! Answers a question over a folder of Markdown and text files, offline and in one binary.
//!
//! `cargo run -p examples --example research -- "How does a join keep its state?" docs`
//!
//! The answer is extractive: it quotes the best passages with their places. The program writes no new text and uses no
//! model.

mod corpus;
mod flow;
mod index;
mod rank;
mod screen;
mod spelling;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::{ConfigLayers, RunOptions};

use corpus::{Corpus, CorpusError};
use flow::{Question, Research, Settings};
use index::Index;

/// Answers a question by quoting the passages of a folder that fit best.
#[derive(Debug, Parser)]
#[command(name = "research")]
struct Arguments {
    /// What you want to know.
    #[arg(default_value = "How does a join keep its state?")]
    question: String,

    /// A folder of .md and .txt files; without it, the documentation of this project.
    folder: Option<PathBuf>,

    /// Rank the passages again, by how many of the question's words they hold and how close together.
    #[arg(long, overrides_with = "no_rerank")]
    rerank: bool,

    /// Take the passages as retrieval ranked them.
    #[arg(long)]
    no_rerank: bool,

    /// How many passages to quote.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=20))]
    passages: Option<u64>,

    /// Draw the run as a Mermaid diagram.
    #[arg(long)]
    graph: bool,
}

impl Arguments {
    /// The settings given by flags; lower layers supply the rest.
    fn layer(&self) -> serde_json::Value {
        let mut layer = json!({});
        if self.rerank || self.no_rerank {
            layer["rerank"] = json!(self.rerank);
        }
        if let Some(passages) = self.passages {
            layer["passages"] = json!(passages);
        }
        layer
    }
}

/// The reason why there is no answer, not even "nothing found".
#[derive(Debug, thiserror::Error)]
enum ResearchError {
    #[error("the question is empty: say what you want to know")]
    EmptyQuestion,
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Build(#[from] workflow_core::BuildError),
    #[error(transparent)]
    Start(#[from] workflow_core::StartError),
    #[error(transparent)]
    Run(#[from] RunError),
}

#[tokio::main]
async fn main() -> ExitCode {
    match research(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen::complain(&error);
            ExitCode::FAILURE
        }
    }
}

async fn research(arguments: &Arguments) -> Result<(), ResearchError> {
    let text = arguments.question.trim();
    if text.is_empty() {
        return Err(ResearchError::EmptyQuestion);
    }
    let corpus = Corpus::read(arguments.folder.as_deref())?;
    corpus.skipped.iter().for_each(screen::warn);
    let index = Arc::new(Index::of(corpus));
    screen::opened(text, &index);

    let settings = ConfigLayers::<Settings>::defaults(Settings::default()).env("RESEARCH");
    let engine = Engine::builder().workflow(Research { index }).config::<Settings>(settings).build()?;
    let options = RunOptions::new().config::<Settings>(arguments.layer());
    let run = engine.start_with::<Research>(Question { text: text.into() }, options).await?;

    screen::follow(run.display()).await;
    screen::answer(&run.outcome().await?);
    let report = run.report().await?;
    screen::report(&report);
    screen::explanation(&*run.explain().await?);
    if arguments.graph {
        screen::graph(&Research::graph().with_report(&report).to_mermaid());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
