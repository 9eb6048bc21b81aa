//! All output. Answers go to standard output, warnings and errors to standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the program talks")]

use futures::StreamExt;
use workflow_core::explain::Explanation;
use workflow_core::report::RunReport;
use workflow_core::{DisplayItem, DisplayStream};

use crate::ResearchError;
use crate::corpus::Skipped;
use crate::flow::{Outcome, Quotation, Reranked, Searched, Way};
use crate::index::Index;

/// Longer quotations are cut at the end of a line.
const LONGEST_QUOTATION: usize = 900;

pub(crate) fn complain(error: &ResearchError) {
    eprintln!("error: {error}");
}

pub(crate) fn warn(skipped: &Skipped) {
    eprintln!("warning: {skipped}");
}

pub(crate) fn opened(question: &str, index: &Index) {
    println!("{question}");
    println!("({} passages of {} files)\n", index.passages(), index.files());
}

/// Prints displayed items as they arrive, until the run has ended.
pub(crate) async fn follow(mut shown: DisplayStream) {
    while let Some(item) = shown.next().await {
        if let Some(Searched { query, found }) = item.event() {
            println!("  searched {}: \"{}\" ({found} passages)", way(query.way), query.words);
        } else if let Some(reranked) = item.event::<Reranked>() {
            println!("  ranked again: {} of {} passages moved", reranked.moved, reranked.ranked.len());
        } else if let DisplayItem::Missed { count: Some(count) } = item {
            println!("  ({count} lines left out)");
        }
    }
}

fn way(way: Way) -> &'static str {
    match way {
        Way::AsAsked => "as asked",
        Way::RarestWords => "the rarest words",
        Way::PairOfWords => "a pair of words",
        Way::OtherSpelling => "in another spelling",
    }
}

pub(crate) fn answer(outcome: &Outcome) {
    match outcome {
        Outcome::Answer(answer) => {
            println!("\nThe passages that fit \"{}\" best, quoted:", answer.question);
            answer.quotations.iter().for_each(quotation);
        }
        Outcome::NothingFound(nothing) => {
            let (question, searched) = (&nothing.question, nothing.searched);
            println!("\nNothing found: none of {searched} passages holds a word of \"{question}\".");
        }
    }
}

fn quotation(Quotation { text, heading, source }: &Quotation) {
    println!("\n{source}{}{heading}", if heading.is_empty() { "" } else { ", " });
    let mut left = LONGEST_QUOTATION;
    for (i, line) in text.lines().enumerate() {
        if i > 0 && line.len() > left {
            println!("  > …");
            break;
        }
        left = left.saturating_sub(line.len());
        println!("  > {line}");
    }
}

pub(crate) fn report(report: &RunReport) {
    println!("\n{report}");
}

pub(crate) fn explanation(explanation: &Explanation) {
    println!("{explanation}");
}

pub(crate) fn graph(mermaid: &str) {
    println!("```mermaid\n{}\n```", mermaid.trim_end());
}
