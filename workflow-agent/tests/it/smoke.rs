use serde_json::json;
use workflow_agent::model::{ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, Tool as _};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    city: String,
}

fn weather() -> FnTool {
    FnTool::new("weather", "Weather.", |c: City, _| async move {
        Ok::<_, ToolError>(format!("warm in {}", c.city))
    })
    .read_only()
}

#[tokio::test]
async fn a_call_and_an_answer() {
    let model = ScriptedModel::new([
        ScriptedReply::call("1", "weather", json!({"city": "Bern"})),
        ScriptedReply::text("It is warm."),
    ]);
    let agent = Agent::builder("a").model(model.clone()).tool(weather()).build().unwrap();
    let answer = agent.ask("Warm?").await.unwrap();
    assert_eq!(&*answer.text, "It is warm.");
    println!("{:#?}", model.requests()[1].messages);
    assert!(weather().spec().is_read_only());
}

#[tokio::test]
async fn approval_in_a_session() {
    let model = ScriptedModel::new([
        ScriptedReply::call("1", "weather", json!({"city": "Bern"})),
        ScriptedReply::text("It is warm."),
        ScriptedReply::text("Yes."),
    ]);
    let agent =
        Agent::builder("a").model(model.clone()).tool(weather().approval(Approval::Always)).build().unwrap();
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    let session = Session::of(&engine, &agent).thread("ada").id("s");
    let mut run = session.say("Warm?").await.unwrap();
    let mut seen = Vec::new();
    while let Some(shown) = run.next().await {
        seen.push(format!("{shown:?}"));
        if let Shown::Approval(approval) = shown {
            approval.approve().await.unwrap();
        }
    }
    println!("{}", seen.join("\n"));
    let out = session.say("Sure?").await.unwrap().outcome().await.unwrap();
    assert_eq!(out.text(), "Yes.");
    println!("{:#?}", model.requests()[2].messages);
}
