//! Tests of the answers, through the workflow itself.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_core::report::RunReport;

use crate::corpus::{Corpus, passages};
use crate::flow::{Outcome, Question, Research, Settings};
use crate::index::Index;

const TEXT: &str = "# Joins\nA join keeps no state of its own; the log is its state.\n\n\
    # Ends\nThe first stop event ends the run.\n\n\
    # Code\n```text\n# no_heading_and_no_passage()\n```\nWhat follows code is a passage again.\n";

async fn ask(question: &str, layer: Value) -> (Outcome, Arc<RunReport>) {
    let corpus = Corpus { passages: passages("joins.md", TEXT), files: 1, skipped: Vec::new() };
    let engine = Engine::builder().workflow(Research { index: Arc::new(Index::of(corpus)) }).build().unwrap();
    let options = RunOptions::new().config::<Settings>(layer);
    let run = engine.start_with::<Research>(Question { text: question.into() }, options).await.unwrap();
    (run.outcome().await.unwrap(), run.report().await.unwrap())
}

#[test]
fn a_text_is_cut_at_blank_lines_and_headings_and_code_is_left_out() {
    let cut = passages("joins.md", TEXT);
    let places: Vec<(usize, &str)> = cut.iter().map(|passage| (passage.line, &*passage.heading)).collect();
    assert_eq!(places, [(2, "Joins"), (5, "Ends"), (11, "Code")]);
}

#[tokio::test]
async fn the_best_passage_is_quoted_with_its_source() {
    let (outcome, report) = ask("How does a join keep its state?", json!({"passages": 1})).await;
    let Outcome::Answer(answer) = outcome else { panic!("nothing found") };
    assert_eq!(answer.quotations.len(), 1);
    assert_eq!(answer.quotations[0].source, "joins.md:2");
    assert!(report.executions("retrieve") > 1, "several ways of asking");
    assert_eq!((report.executions("fuse"), report.executions("answer")), (1, 1));
}

#[tokio::test]
async fn the_configuration_decides_whether_passages_are_ranked_again() {
    for (rerank, executions) in [(true, 1), (false, 0)] {
        let (outcome, report) = ask("Which event ends a run?", json!({"rerank": rerank})).await;
        assert!(matches!(outcome, Outcome::Answer(_)));
        assert_eq!(report.executions("rerank"), executions);
    }
}

#[tokio::test]
async fn a_misspelt_word_finds_what_was_meant() {
    let (outcome, _) = ask("jonis stat", json!({})).await;
    let Outcome::Answer(answer) = outcome else { panic!("nothing found") };
    assert_eq!(answer.quotations[0].source, "joins.md:2");
}

#[tokio::test]
async fn words_that_stand_nowhere_and_words_without_meaning_find_nothing() {
    for question in ["zyzzyva quixotry", "what is it?", "?!"] {
        let (outcome, report) = ask(question, json!({})).await;
        assert!(matches!(outcome, Outcome::NothingFound(_)), "{question}");
        assert_eq!(report.executions("rerank"), 0);
    }
}
