//! The stream of a run: pieces with their attempts, retractions, results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use workflow_agent::Piece;
use workflow_agent::model::ScriptedReply;
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_chat::Chunk;
use workflow_core::ExecutionId;
use workflow_testkit::VirtualClock;

use crate::parts::{City, agent, scripted};

/// The texts of a run as a page has them: one for each execution, without retracted attempts.
#[derive(Debug, Default)]
struct Page {
    pieces: Vec<Piece>,
    retracted: Vec<(ExecutionId, u32)>,
}

impl Page {
    fn take(&mut self, shown: Shown) {
        match shown {
            Shown::Delta(piece) => self.pieces.push(piece),
            Shown::Retracted { execution, attempt } => {
                let before = self.pieces.len();
                self.pieces.retain(|piece| (piece.execution, piece.attempt) != (execution, attempt));
                assert_ne!(self.pieces.len(), before, "a retraction concerns pieces that were shown");
                self.retracted.push((execution, attempt));
            }
            _ => {}
        }
    }

    fn texts(&self) -> Vec<String> {
        let mut texts: BTreeMap<ExecutionId, String> = BTreeMap::new();
        for piece in &self.pieces {
            texts.entry(piece.execution).or_default().push_str(piece);
        }
        texts.into_values().collect()
    }
}

/// A24, A80
#[tokio::test(start_paused = true)]
async fn a_retracted_attempt_of_a_reply_or_a_tool_removes_its_own_pieces_only() {
    let failed = Arc::new(AtomicBool::new(false));
    let look = FnTool::new("look", "Looks.", move |city: City, context: ToolContext| {
        let display = context.display().clone();
        let is_first = !failed.swap(true, Ordering::Relaxed);
        async move {
            display.show(Chunk { text: format!("{} ", if is_first { "half" } else { "found" }) });
            if is_first { Err(ToolError::transient("busy")) } else { Ok(city.city) }
        }
    });
    let model = scripted([
        ScriptedReply::call("1", "look", json!({ "city": "Bern" })).saying("I look. "),
        ScriptedReply::broken(["It is"], None),
        ScriptedReply::chunks(["It was ", "warm."]),
    ]);
    let agent = agent(&model).tool(look.read_only()).build().unwrap();
    let engine = Engine::builder().agent(agent.clone()).clock(VirtualClock::new()).build().unwrap();
    let mut run = agent.start(&engine, "Warm in Bern?").await.unwrap();
    let mut page = Page::default();
    while let Some(shown) = run.next().await {
        page.take(shown);
    }
    assert_eq!(page.texts(), ["I look. ", "found ", "It was warm."]);
    assert_eq!(page.texts().last().unwrap(), run.outcome().await.unwrap().text());
    let attempts: Vec<u32> = page.retracted.iter().map(|(_, attempt)| *attempt).collect();
    assert_eq!(attempts, [1, 1], "once for the tool, and once for the reply: {page:?}");
    assert_ne!(page.retracted[0].0, page.retracted[1].0);
}

/// A24
#[tokio::test]
async fn a_piece_reads_as_its_text_and_a_result_prints_its_own_fields_alone() {
    let model = scripted([ScriptedReply::call("1", "visit", json!({ "city": "Bern" })), {
        ScriptedReply::chunks(["do", "ne"]).thinking("hm")
    }]);
    let agent = agent(&model).tool(crate::parts::visit(&crate::parts::Calls::default())).build().unwrap();
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let mut run = agent.start(&engine, "go").await.unwrap();
    let (mut text, mut thoughts, mut executions) = (String::new(), String::new(), Vec::new());
    while let Some(shown) = run.next().await {
        match shown {
            Shown::Delta(piece) => {
                assert_eq!((piece.to_string().as_str(), piece.as_ref()), (&*piece.text, &*piece));
                text.push_str(&piece);
                executions.push((piece.execution, piece.attempt));
            }
            Shown::Thought(piece) => {
                thoughts.push_str(&piece);
                executions.push((piece.execution, piece.attempt));
            }
            Shown::ToolResult(done) => {
                let printed = format!("{done:?}");
                assert!(printed.contains("visited Bern") && !printed.contains("arked"), "{printed}");
            }
            _ => {}
        }
    }
    assert_eq!((text.as_str(), thoughts.as_str()), ("done", "hm"));
    executions.dedup();
    assert_eq!(executions.len(), 1, "text and thoughts of one reply");
}

/// A41, A24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_stream_is_done_has_ended_wherever_one_looks() {
    let folder = tempfile::tempdir().unwrap();
    let model = scripted((0..30).map(|n| ScriptedReply::text(format!("answer {n}"))));
    let assistant = agent(&model).build().unwrap();
    let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb")).unwrap();
    let engine = Engine::builder().agent(assistant.clone()).store(store).build().unwrap();
    let session = Session::of(&engine, &assistant).when_busy(WhenBusy::Refuse);
    for n in 0..30 {
        let mut run = session.say("next").await.expect("the session is free");
        let mut outcome = None;
        while let Some(shown) = run.next().await {
            if let Shown::Done(done) = shown {
                assert!(session.open_run().await.unwrap().is_none());
                assert!(
                    run.approvals().await.unwrap().is_empty() && run.questions().await.unwrap().is_empty()
                );
                outcome = Some(done);
            }
        }
        assert_eq!(outcome.expect("the outcome was shown").text(), format!("answer {n}"));
    }
}

/// A9
#[tokio::test]
async fn an_agent_that_the_engine_does_not_host_is_named() {
    let assistant = agent(&scripted([])).build().unwrap();
    let engine = Engine::builder().build().unwrap();
    let expected = "the engine does not host agent `assistant`: add `.agent(…)` to its builder";
    assert_eq!(assistant.start(&engine, "Hello").await.unwrap_err().to_string(), expected);
    let said = Session::of(&engine, &assistant).say("Hello").await;
    assert_eq!(said.unwrap_err().to_string(), expected);
}
