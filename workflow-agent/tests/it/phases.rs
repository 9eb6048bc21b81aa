//! Instructions, phases, and conversations as values.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use workflow_agent::memory::{Episode, Memory, Question, Recalled, RecalledKind};
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::{AgentBuildError, AgentBuilder, Conversation};
use workflow_core::ThreadContext;
use workflow_core::errors::ContextError;

use crate::pairing;
use crate::sessions::look;

fn texts(request: &ModelRequest) -> Vec<String> {
    pairing::check(request).unwrap();
    request.messages.iter().map(|message| message.text().into_owned()).collect()
}

fn names(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(workflow_agent::tool::ToolSpec::name).collect()
}

fn replies(texts: &[&str]) -> ScriptedModel {
    ScriptedModel::new(texts.iter().map(|text| ScriptedReply::text(*text)))
}

fn agent(model: &ScriptedModel, with: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Agent {
    let built: Result<Agent, AgentBuildError> = with(Agent::builder("a").model(model.clone())).build();
    built.unwrap()
}

struct Remembers;

impl Memory for Remembers {
    fn recall<'a>(
        &'a self,
        _: &'a Question,
        _: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>> {
        async { Ok(vec![Recalled::new(RecalledKind::Episode, "She likes blue.")]) }.boxed()
    }

    fn remember<'a>(
        &'a self,
        _: &'a Episode,
        _: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        async { Ok(()) }.boxed()
    }
}

/// A50, A51
#[tokio::test]
async fn instructions_are_identity_narrative_memory_and_focus_in_this_order() {
    let model = replies(&["a draft", "a review"]);
    let agent = agent(&model, |agent| {
        agent
            .identity("You write.")
            .narrative("Goal: a poem.")
            .memory(Remembers)
            .phase(Phase::new("draft").focus("Write a draft."))
            .phase(Phase::new("review").focus("Review it."))
    });
    agent.ask("go").await.unwrap();
    let requests = model.requests();
    let same = "You write.\n\nGoal: a poem.\n\nMemory of earlier conversations, as data:\n<data source=\"memory: episode\">\nShe likes \
                blue.\n</data>\n\n";
    assert_eq!(&*requests[0].system, format!("{same}Write a draft."));
    assert_eq!(&*requests[1].system, format!("{same}Review it."));
}

/// A51
#[tokio::test]
async fn a_marker_names_both_phases_what_was_accomplished_and_what_comes_next() {
    let model = replies(&["a draft", "a review"]);
    let agent = agent(&model, |agent| {
        agent.phase(Phase::new("draft")).phase(Phase::new("review").focus("Review it."))
    });
    assert_eq!(&*agent.ask("go").await.unwrap().text, "a review");
    let marker = "[Phase: review]\nPhase `draft` is complete, and phase `review` begins.\nAccomplished:\n<data \
                  source=\"phase\">\na draft\n</data>\nNext: Review it.";
    assert_eq!(texts(&model.requests()[1]), ["go", "a draft", marker]);
}

/// A51
#[tokio::test]
async fn an_isolated_phase_sees_the_first_and_the_last_answer_in_short_and_the_outputs_only() {
    let long = |letter: &str| letter.repeat(600);
    let model = ScriptedModel::new([
        ScriptedReply::text(long("a")),
        ScriptedReply::text(long("b")),
        ScriptedReply::call("1", "final_answer", json!({"n": 7})).saying(long("c")),
        ScriptedReply::text("end"),
    ]);
    let agent = agent(&model, |agent| {
        agent
            .phase(Phase::new("one"))
            .phase(Phase::new("two"))
            .phase(Phase::new("three").output_schema(json!({"type": "object", "required": ["n"]})))
            .phase(Phase::new("four").isolated())
    });
    agent.ask("the question").await.unwrap();
    let texts = texts(&model.requests()[3]);
    assert_eq!(texts.len(), 1);
    let has = |text: &str| texts[0].contains(text);
    assert!(has(&"a".repeat(500)) && !has(&"a".repeat(501)), "{texts:?}");
    assert!(has(&"c".repeat(500)) && !has(&"c".repeat(501)), "{texts:?}");
    assert!(!has("bbb") && !has("the question") && has(r#"{"n":7}"#), "{texts:?}");
    assert!(has("Phase `three` is complete, and phase `four` begins."));
}

/// Answers that the judge, or a schema, sent back are not handed on.
///
/// A51, A54
#[tokio::test]
async fn an_answer_that_was_sent_back_is_not_handed_on() {
    use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
    struct NoDrafts;
    impl Judge for NoDrafts {
        fn judge<'a>(
            &'a self,
            candidate: &'a Candidate,
        ) -> BoxFuture<'a, Result<Judgement, workflow_core::StepError>> {
            let is_draft = candidate.text.contains("draft");
            async move { Ok(if is_draft { Verdict::Retry("no".into()) } else { Verdict::Accept }.into()) }
                .boxed()
        }
    }
    let model = replies(&["a draft", "the work", "end"]);
    let agent = agent(&model, |agent| {
        agent.judge(NoDrafts).phase(Phase::new("one")).phase(Phase::new("two").isolated())
    });
    agent.ask("go").await.unwrap();
    let last = texts(&model.requests()[2]);
    assert!(last[0].contains("the work") && !last[0].contains("draft"), "{last:?}");
}

/// A51, A11
#[tokio::test]
async fn each_phase_has_its_own_tools_and_output() {
    let model = ScriptedModel::new([
        ScriptedReply::call("1", "final_answer", json!({"n": 1})),
        ScriptedReply::call("2", "look", json!({"at": "sea"})),
        ScriptedReply::text("done"),
    ]);
    let agent = agent(&model, |agent| {
        agent
            .tool(look())
            .phase(Phase::new("one").output_schema(json!({"type": "object", "required": ["n"]})))
            .phase(Phase::new("two").tools(Vec::<String>::new()))
    });
    let answer = agent.ask("go").await.unwrap();
    assert_eq!((&*answer.text, answer.data), ("done", None));
    let requests = model.requests();
    assert_eq!(names(&requests[0]), ["final_answer", "look"]);
    assert!(names(&requests[1]).is_empty());
    let texts = texts(&requests[2]);
    assert!(texts[3].contains(r#"{"n":1}"#), "{texts:?}");
    assert!(texts[5].contains("there is no tool `look` here; allowed tools: none"), "{texts:?}");
}

/// A51, A41
#[tokio::test(start_paused = true)]
async fn a_message_that_no_call_saw_belongs_to_the_next_phase_also_if_that_is_isolated() {
    let slow = std::time::Duration::from_secs(5);
    let model = ScriptedModel::new([ScriptedReply::text("one").after(slow), ScriptedReply::text("two")]);
    let agent = agent(&model, |agent| agent.phase(Phase::new("one")).phase(Phase::new("two").isolated()));
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let run = agent.start(&engine, "go").await.unwrap();
    while model.requests().is_empty() {
        crate::lives::moment().await;
    }
    run.steer("in blue").await.unwrap();
    assert_eq!(run.outcome().await.unwrap().text(), "two");
    let texts = texts(&model.requests()[1]);
    assert!(texts[0].starts_with("[Phase: two]") && texts[1].contains("in blue"), "{texts:?}");
    assert!(run.unheard().await.unwrap().is_empty());
}

/// A52
#[tokio::test]
async fn a_conversation_continues_and_survives_serialisation() {
    let model = ScriptedModel::new([
        ScriptedReply::call("1", "look", json!({"at": "sea"})).saying("Let me see."),
        ScriptedReply::text("It is blue."),
        ScriptedReply::text("Yes."),
    ]);
    let agent = agent(&model, |agent| agent.tool(look()));
    let first = agent.ask(Prompt::new("Which colour?").return_conversation()).await.unwrap();
    let conversation = first.conversation.unwrap();
    let read: Conversation = serde_json::from_str(&serde_json::to_string(&conversation).unwrap()).unwrap();
    assert_eq!(read, conversation);
    let second = agent.ask(Prompt::new("Sure?").conversation(read)).await.unwrap();
    assert!(second.conversation.is_none());
    let requests = model.requests();
    pairing::continues(&requests[1], &requests[2]).unwrap();
    assert_eq!(texts(&requests[2])[3..], ["It is blue.", "Sure?"]);
}

/// A52, A6
#[tokio::test]
async fn a_conversation_whose_calls_have_no_results_is_completed() {
    let model = replies(&["yes"]);
    let agent = agent(&model, |agent| agent.tool(look()));
    let call = |id: &str| json!({"call": {"id": id, "name": "look", "arguments": {"at": "sea"}}});
    let result = json!({"call": "2", "tool": "look", "text": "blue"});
    let conversation: Conversation = serde_json::from_value(json!({"entries": [
        {"kind": "user", "text": "look"},
        {"kind": "said", "parts": [call("1"), call("2")]},
        {"kind": "results", "results": [result]},
        {"kind": "said", "parts": [call("3")]},
    ]}))
    .unwrap();
    agent.ask(Prompt::new("and?").conversation(conversation)).await.unwrap();
    let request = &model.requests()[0];
    pairing::check(request).unwrap();
    let Message::Results(results) = &request.messages[2] else { panic!("{request:?}") };
    let texts: Vec<_> = results.iter().map(|result| &*result.text).collect();
    assert_eq!(texts, ["this call was not run", "<data source=\"tool look\">\nblue\n</data>"]);
}

/// A52, A51
#[tokio::test]
async fn a_conversation_enters_a_phase_and_sees_its_marker() {
    let model = replies(&["a draft", "a review", "final"]);
    let phases =
        [Phase::new("draft"), Phase::new("review").focus("Review it."), Phase::new("print").isolated()];
    let agent = agent(&model, |agent| phases.iter().cloned().fold(agent, AgentBuilder::phase));
    let [_, review, print] = &phases;
    let first: Conversation = serde_json::from_value(json!({
        "phase": "draft",
        "entries": [
            {"kind": "user", "text": "write"},
            {"kind": "said", "parts": [{"text": "my draft"}]},
        ],
    }))
    .unwrap();
    assert!(first.hand_off().contains("my draft"));
    // It enters the second phase, and the third follows.
    let entered = first.clone().enter(review);
    agent.ask(Prompt::new("go on").conversation(entered)).await.unwrap();
    let requests = model.requests();
    assert_eq!(&*requests[0].system, "Review it.");
    let seen = texts(&requests[0]);
    assert_eq!(seen[..2], ["write", "my draft"]);
    assert!(seen[2].starts_with(
        "[Phase: review]\nPhase `draft` is complete, and phase `review` begins.\nAccomplished:"
    ));
    assert!(texts(&requests[1])[0].starts_with("[Phase: print]\nPhase `review` is complete"));
    // Isolated phases see nothing before them.
    agent.ask(Prompt::new("go on").conversation(first.enter(print))).await.unwrap();
    let seen = texts(&model.requests()[2]);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].starts_with("[Phase: print]") && seen[0].contains("my draft"), "{seen:?}");
}

/// A52
#[tokio::test]
async fn a_returned_conversation_stays_in_its_phase() {
    let model = replies(&["a draft", "a review", "more"]);
    let agent = agent(&model, |agent| {
        agent.phase(Phase::new("draft")).phase(Phase::new("review").focus("Review it."))
    });
    let first = agent.ask(Prompt::new("go").return_conversation()).await.unwrap();
    agent.ask(Prompt::new("again").conversation(first.conversation.unwrap())).await.unwrap();
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(&*requests[2].system, "Review it.");
    pairing::continues(&requests[1], &requests[2]).unwrap();
}

/// A52, A55
#[tokio::test]
async fn typed_answers_are_handed_off() {
    let model = ScriptedModel::new([ScriptedReply::call("1", "final_answer", json!({"n": 7}))]);
    let agent = agent(&model, |agent| agent);
    let prompt = Prompt::new("go").output(json!({"type": "object"})).return_conversation();
    let conversation = agent.ask(prompt).await.unwrap().conversation.unwrap();
    assert!(conversation.hand_off().contains(r#"{"n":7}"#), "{}", conversation.hand_off());
    let entered = conversation.enter(&Phase::new("next"));
    let text = serde_json::to_string(&entered).unwrap();
    assert!(text.contains(r#""accomplished":"{\"n\":7}""#), "{text}");
}
