use super::*;

const CHOOSING: &str = "
graph: test
nodes:
  a: {value: {sky: clear}, next: {decide: 'Which?', choices: [{to: b}, {to: c, about: sea}, {to: end}], otherwise: b}}
  b: {value: b}
  c: {value: c}
";

async fn chosen(reply: ScriptedReply) -> (String, Vec<String>, ScriptedModel) {
    let model = ScriptedModel::new([reply]);
    let result = run(CHOOSING, agent("one", &model)).await.unwrap();
    (result.at, result.warnings, model)
}

/// A92
#[tokio::test]
async fn a_choice_is_json_or_the_id_alone() {
    let replies =
        [r#"{"choice": "c", "reason": "the sea"}"#, "```json\n{\"choice\": \"c\"}\n```", "c", " `c`\n"];
    for reply in replies {
        let (at, warnings, model) = chosen(ScriptedReply::text(reply)).await;
        assert_eq!((&*at, warnings.len()), ("c", 0), "{reply}: {warnings:?}");
        assert_eq!(model.requests().len(), 1);
        assert!(model.requests()[0].tools.is_empty() && model.requests()[0].output.is_none());
    }
    let (at, warnings, _) = chosen(ScriptedReply::text("end")).await;
    assert_eq!((&*at, warnings.len()), ("a", 0));
}

/// A92
#[tokio::test]
async fn an_answer_that_is_no_choice_takes_the_fallback_after_one_call() {
    use workflow_agent::model::{Finish, ModelError};

    let replies = [
        (ScriptedReply::text("I would take c."), "names no choice; it begins: I would take c."),
        (ScriptedReply::text("C"), "names no choice"),
        (ScriptedReply::text(r#"{"choice": "d", "reason": ""}"#), "chose `d`, which is no choice"),
        (ScriptedReply::text("c").finish(Finish::Refusal), "refused"),
        (ScriptedReply::call("1", "weather", json!({})), "answered nothing"),
        (ScriptedReply::fail(ModelError::transient("busy")), "busy"),
    ];
    for (reply, warning) in replies {
        let (at, warnings, model) = chosen(reply).await;
        assert_eq!(at, "b");
        assert!(warnings.len() == 1 && warnings[0].contains(warning), "{warnings:?}");
        assert_eq!(model.requests().len(), 1);
    }
}

/// A92
#[tokio::test]
async fn a_model_with_native_output_receives_the_schema_of_the_choices() {
    let model =
        ScriptedModel::new([ScriptedReply::from(json!({"choice": "c", "reason": "so"}))]).native_output();
    let result = run(CHOOSING, agent("one", &model)).await.unwrap();
    assert_eq!(result.at, "c");
    let schema = model.requests()[0].output.clone().unwrap();
    assert_eq!(schema["properties"]["choice"]["enum"], json!(["b", "c", "end"]));
}

/// A92
#[tokio::test]
async fn a_model_that_chooses_sees_the_input_and_every_result_so_far() {
    let text = "
graph: test
nodes:
  gather: {value: {severity: high}, next: a}
  a: {value: {sky: clear}, next: {decide: 'Which?', choices: [{to: b}, {to: end}], otherwise: b}}
  b: {value: b}
";
    let model = ScriptedModel::new([ScriptedReply::text("end")]);
    let result = run(text, agent("one", &model)).await.unwrap();
    assert_eq!(result.at, "a");
    let asked = texts(&model.requests()[0]).pop().unwrap();
    let (own, before) = asked.split_once("earlier steps").unwrap_or((&asked, ""));
    assert!(own.contains(r#"{"sky":"clear"}"#), "{asked}");
    assert!(
        before.contains(r#""gather":{"severity":"high"}"#) && before.contains(r#""input":{}"#),
        "{asked}"
    );
    assert!(!before.contains("clear"), "{asked}");
}

/// A92
#[tokio::test]
async fn a_judge_and_its_guidance_are_calls_of_the_models_that_the_document_names() {
    let text = "
graph: test
defaults: {judge_model: judge}
nodes:
  a:
    agent: {instruction: 'Write.', model: writer}
    ensure: {all: [{name: good, judge: 'Is it good?'}], retries: 1, guidance: auto}
";
    let judging = ScriptedModel::new([ScriptedReply::text("no: too long"), ScriptedReply::text("yes: fine")]);
    let writing = ScriptedModel::new([
        ScriptedReply::text("long"),
        ScriptedReply::text("Cut it."),
        ScriptedReply::text("short"),
    ]);
    let (judge, writer) = (agent("judge", &judging), agent("writer", &writing));
    let (judge, writer) = (judge.build().unwrap(), writer.build().unwrap());
    let agents = GraphAgents::new([judge, writer.clone()]);
    // The engine hosts no agent of which only the model is asked.
    let engine = builder(text, &agents).agent(writer).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().output, "short");
    assert_eq!(judging.requests().len(), 2);
    let again = texts(&writing.requests()[2]).pop().unwrap();
    assert!(again.contains("too long") && again.contains("# Advice\nCut it."), "{again}");
}
