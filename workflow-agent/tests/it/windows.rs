//! Replies that reach the end of the context window.

use workflow_agent::entry::Entry;
use workflow_agent::model::{Finish, ScriptedReply, Usage};
use workflow_agent::prelude::*;

use crate::parts::{Calls, agent, answered, assert_paired, call, run, scripted, stopped, visit};

/// A53
#[tokio::test]
async fn a_reply_at_the_end_of_the_window_keeps_its_text_and_usage_and_leads_to_a_summary() {
    let calls = Calls::default();
    let model = scripted([
        call("1", "visit", "A").usage(Usage::new(100, 10)),
        call("2", "visit", "B").saying("half of").finish(Finish::ContextLimit).usage(Usage::new(200, 20)),
        ScriptedReply::text("the summary").usage(Usage::new(50, 5)),
        ScriptedReply::text("the rest").usage(Usage::new(100, 10)),
    ]);
    let run = run(agent(&model).tool(visit(&calls)), "go").await;
    assert_eq!(answered(&run), "the rest");
    assert_eq!(calls.all(), ["A"], "no call of a reply that was cut off runs");
    assert_eq!(run.outcome().unwrap().usage().tokens(), 495);
    let last = &model.requests()[3];
    let texts: Vec<String> = last.messages.iter().map(|message| message.text().into_owned()).collect();
    assert!(texts.iter().any(|text| text.contains("the summary")), "{texts:?}");
    assert!(texts.iter().any(|text| text == "half of"), "{texts:?}");
    assert!(texts.last().unwrap().contains("end of the context window"), "{texts:?}");
    model.requests().iter().for_each(assert_paired);
}

/// A53
#[tokio::test]
async fn with_nothing_to_shorten_the_run_stops_with_text_and_usage() {
    let reply = ScriptedReply::text("half of").finish(Finish::ContextLimit).usage(Usage::new(200, 20));
    let run = run(agent(&scripted([reply])), "go").await;
    let stopped = stopped(&run);
    assert!(
        matches!(&stopped.reason, StopReason::Failed { class, .. } if class.as_str() == "context_limit"),
        "{stopped:?}"
    );
    assert_eq!((&*stopped.text, stopped.usage.tokens()), ("half of", 220));
    let is_reply =
        |entry: &Entry| matches!(entry, Entry::Assistant(reply) if reply.finish == Finish::ContextLimit);
    assert!(run.emitted::<Entry>().iter().any(|entry| is_reply(entry)));
}
