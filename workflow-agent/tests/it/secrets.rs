//! Registered secrets: in no log, display, result, error or span.

use serde_json::{Value, json};
use workflow_agent::model::{Finish, ModelError, ModelReply, Opaque, Part, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{AgentProblem, Decision};
use workflow_chat::{Chunk, Thought};
use workflow_testkit::{Scenario, TestRun};

use crate::parts::{Calls, agent, answered, call, failing, log_of, result, scripted, stopped, visit};

const KEY: &str = "sk-4711-\"quoted\"-secret";

fn key() -> Secret {
    Secret::new("bank", KEY)
}

/// Nothing that the run logged or showed has the secret, in any form of JSON.
fn assert_clean(run: &TestRun<Agent>) {
    for text in [log_of(run), run.transcript(), format!("{:?}", run.report()), format!("{:?}", run.outcome())]
    {
        assert!(!text.contains("4711"), "{text}");
    }
}

/// A18
#[tokio::test]
async fn the_prompt_of_ask_has_no_secret() {
    let model = scripted([ScriptedReply::text("done")]);
    let agent = agent(&model).secret(key()).build().unwrap();
    agent.ask(format!("my key is {KEY}!")).await.unwrap();
    assert_eq!(model.requests()[0].messages[0].text(), "my key is [secret bank]!");
}

/// A18
#[tokio::test]
async fn a_reply_has_no_secret_wherever_its_pieces_are_split() {
    let text = format!("the key {KEY} it is");
    for cut in (1..text.len()).step_by(3) {
        let model = scripted([
            ScriptedReply::chunks([&text[..cut], &text[cut..=cut], &text[cut + 1..]]).thinking(KEY)
        ]);
        let agent = agent(&model).secret(key()).build().unwrap();
        let run = Scenario::new(agent).start(Prompt::new("go")).await;
        assert_eq!(answered(&run), "the key [secret bank] it is");
        let chunks: String = run.displayed::<Chunk>().iter().map(|chunk| chunk.text.clone()).collect();
        assert_eq!(chunks, "the key [secret bank] it is");
        let thoughts: String =
            run.displayed::<Thought>().iter().map(|thought| thought.text.clone()).collect();
        assert_eq!(thoughts, "[secret bank]");
        assert_clean(&run);
    }
}

/// A18
#[tokio::test]
async fn a_secret_across_thoughts_that_nobody_signed_or_in_their_marks_is_found() {
    let thought = |text: &str, mark: Value| Part::Thought {
        text: text.to_owned(),
        signature: Some(Opaque::new("openai", json!({ "unsigned": mark }))),
    };
    let parts = vec![
        thought(&format!("a {}", &KEY[..6]), json!({"index": 0})),
        thought(&KEY[6..], json!({"index": 1, "summary": KEY})),
        Part::Text("done".into()),
    ];
    let model = scripted([ScriptedReply::reply(ModelReply::new(parts, Finish::Stop))]);
    let agent = agent(&model).secret(key()).build().unwrap();
    let run = Scenario::new(agent).start(Prompt::new("go")).await;
    assert_eq!(answered(&run), "done");
    assert_clean(&run);
}

/// A18
#[tokio::test]
async fn a_secret_across_the_parts_of_a_reply_is_found() {
    let parts = vec![
        Part::Text(format!("a {}", &KEY[..6])),
        Part::Thought { text: "hm".into(), signature: None },
        Part::Text(KEY[6..9].into()),
        Part::Text(format!("{} b", &KEY[9..])),
    ];
    let model = scripted([ScriptedReply::reply(ModelReply::new(parts, Finish::Stop))]);
    let agent = agent(&model).secret(key()).build().unwrap();
    let run = Scenario::new(agent).start(Prompt::new("go")).await;
    assert_eq!(answered(&run), "a [secret bank] b");
    assert_clean(&run);
}

/// A18
#[tokio::test]
async fn arguments_results_and_errors_have_no_secret() {
    let calls = Calls::default();
    let tells =
        FnTool::new("tells", "Tells.", |_: Value, _| async move { Ok::<_, ToolError>(json!({"key": KEY})) });
    let fails = failing("fails", &calls, || ToolError::new(format!("bad key {KEY}")));
    let panics = failing("panics", &calls, || panic!("bad key {KEY}"));
    let busy = failing("busy", &calls, || ToolError::transient(format!("bad key {KEY}"))).read_only();
    for tool in ["tells", "fails", "panics", "busy"] {
        let model =
            scripted([ScriptedReply::call("1", tool, json!({"city": KEY})), ScriptedReply::text("done")]);
        let agent = agent(&model)
            .secret(key())
            .tool(tells.clone())
            .tool(fails.clone())
            .tool(panics.clone())
            .tool(busy.clone());
        let run = Scenario::new(agent.build().unwrap()).start(Prompt::new("go")).await;
        assert_eq!(answered(&run), "done");
        assert!(
            result(&model.requests()[1]).text.contains("[secret bank]"),
            "{}",
            result(&model.requests()[1]).text
        );
        assert_clean(&run);
    }
}

/// A18, A10
#[tokio::test]
async fn misfits_and_edits_have_no_secret() {
    let calls = Calls::default();
    let model = scripted([
        ScriptedReply::call("1", "visit", json!({"city": [KEY]})),
        call("2", "visit", "A"),
        ScriptedReply::text("done"),
    ]);
    let agent = agent(&model).secret(key()).tool(visit(&calls).approval(Approval::Always)).build().unwrap();
    let edited = || Decision::Edit { arguments: json!({"city": KEY}) };
    let run = Scenario::new(agent)
        .reply(move |_: &workflow_agent::ApproveTool| edited())
        .start(Prompt::new("go"))
        .await;
    assert_eq!(answered(&run), "done");
    assert_eq!(calls.all(), ["[secret bank]"]);
    assert!(result(&model.requests()[1]).text.contains("[secret bank]"));
}

/// A18, A9
#[tokio::test]
async fn errors_of_models_have_no_secret() {
    let errors: [fn(String) -> ModelError; 3] = [
        |text| ModelError::permanent(text),
        |text| ModelError::context_limit(text),
        |text| ModelError::unusable(text),
    ];
    for error in errors {
        let failed = || ScriptedReply::fail(error(format!("no such key: {KEY}")));
        let model = scripted([failed(), failed()]);
        let agent = agent(&model).secret(key()).build().unwrap();
        let run = Scenario::new(agent).start(Prompt::new("go")).await;
        assert!(stopped(&run).reason.to_string().contains("[secret bank]"), "{:?}", stopped(&run).reason);
        assert_clean(&run);
    }
}

/// A18
#[test]
fn a_value_that_would_replace_ordinary_text_is_a_build_error() {
    let problems = agent(&scripted([])).secret(Secret::new("pin", "123")).build().unwrap_err().problems;
    assert!(
        matches!(&problems[..], [AgentProblem::ShortSecret { name, .. }] if name == "pin"),
        "{problems:?}"
    );
}

/// A18
#[tokio::test]
async fn a_secret_is_found_in_other_spellings_and_in_a_panic() {
    let secret = "sk-4711/ä=?+secret";
    for text in [
        "sk-4711%2F%C3%A4%3D%3F%2Bsecret",
        "sk-4711%2f%c3%a4%3d%3f%2bsecret",
        r"sk-4711\/ä=?+secret",
        r"sk-4711\u002f\u00e4=?+secret",
        r"sk-4711\\\/ä=?+secret",
        "c2stNDcxMS/DpD0/K3NlY3JldA==",
        "dXNlcjpzay00NzExL8OkPT8rc2VjcmV0",
    ] {
        let said = text.to_owned();
        let echo = FnTool::new("echo", "Repeats.", move |_: Value, _| {
            let said = said.clone();
            async move { Ok::<_, ToolError>(said) }
        });
        let panicking = text.to_owned();
        let broken = FnTool::new("broken", "Breaks.", move |_: Value, _| {
            let said = panicking.clone();
            async move { if said.is_empty() { Ok::<_, ToolError>("") } else { panic!("no account for {said}") } }
        });
        let model = scripted([
            ScriptedReply::call("1", "echo", json!({})).and_call("2", "broken", json!({"note": text})),
            ScriptedReply::text(text),
        ]);
        let agent =
            agent(&model).secret(Secret::new("bank", secret)).tool(echo).tool(broken).build().unwrap();
        let run = Scenario::new(agent).start(Prompt::new("go")).await;
        assert!(answered(&run).contains("[secret bank]"), "{text}: {}", answered(&run));
        for shown in
            [log_of(&run), run.transcript(), format!("{:?}", run.report()), format!("{:?}", model.requests())]
        {
            assert!(!shown.contains(text), "{text} in {shown}");
            assert!(!shown.contains("4711") && !shown.contains("NDcxM"), "{text} in {shown}");
        }
    }
}
