//! Hive documents: the agents of a path speak in one conversation.

use std::time::Duration;

use tokio::sync::Notify;
use workflow_redb::RedbStore;

use super::crashes::survives;
use super::*;

/// A path of three agents, the first of which uses a tool.
const PATH: &str = r#"{
  "agent": {"id": "guide", "name": "Guide"},
  "goal": {"name": "A trip", "description": "Find a place to swim.",
           "success_criteria": [{"description": "It is warm."}], "constraints": ["No flights."]},
  "graph": {
    "id": "test", "entry_node": "look", "terminal_nodes": ["tell"],
    "identity_prompt": "You speak for the tourist office.",
    "nodes": [
      {"id": "look", "system_prompt": "Find out the weather.", "tools": ["weather"], "output_keys": ["sky"]},
      {"id": "plan", "system_prompt": "Plan a day.", "model": "two", "output_keys": ["day"]},
      {"id": "tell", "system_prompt": "Tell it.", "output_keys": ["text"]}
    ],
    "edges": [{"source": "look", "target": "plan"}, {"source": "plan", "target": "tell"}]
  }
}"#;

/// Two branches, one of them of two agents, that meet.
const BRANCHES: &str = r#"{
  "id": "test", "entry_node": "begin",
  "nodes": [
    {"id": "begin", "system_prompt": "Do begin.", "tools": ["weather"], "output_keys": ["begun"]},
    {"id": "left", "system_prompt": "Do left.", "output_keys": ["l"]},
    {"id": "left2", "system_prompt": "Do left2.", "output_keys": ["l2"]},
    {"id": "right", "system_prompt": "Do right.", "output_keys": ["r"]},
    {"id": "meet", "system_prompt": "Do meet.", "output_keys": ["text"]}
  ],
  "edges": [
    {"source": "begin", "target": "left"}, {"source": "begin", "target": "right"},
    {"source": "left", "target": "left2"}, {"source": "left2", "target": "meet"},
    {"source": "right", "target": "meet"}
  ]
}"#;

/// The task at the end of a conversation.
fn task(request: &ModelRequest) -> String {
    let asked = request.messages.iter().rev().find_map(|message| match message {
        Message::User { text, .. } => Some(text.lines().next().unwrap_or_default().to_owned()),
        _ => None,
    });
    asked.unwrap()
}

/// Uses the first tool that the node has, and answers with its task.
fn diligent(request: &ModelRequest) -> ScriptedReply {
    match (request.messages.last().unwrap(), request.tools.first()) {
        (Message::User { .. }, Some(tool)) => call("1", tool.name(), "Bern"),
        _ => ScriptedReply::text(format!("Answer: {}", task(request))),
    }
}

/// The requests for a task, in order.
fn requests(model: &ScriptedModel, of: &str) -> Vec<ModelRequest> {
    model.requests().into_iter().filter(|request| task(request) == *of).collect()
}

/// The whole conversation behind the answer to a task: its last request, and the answer.
fn conversation(model: &ScriptedModel, of: &str) -> Vec<Message> {
    let last = requests(model, of).pop().unwrap_or_else(|| panic!("no request for {of:?}"));
    let parts = [workflow_agent::model::Part::Text(format!("Answer: {of}"))];
    last.messages.into_iter().chain([Message::Assistant { parts: Arc::new(parts) }]).collect()
}

/// The conversation before the task of a request: without its marker and its task.
fn before(model: &ScriptedModel, of: &str) -> Vec<Message> {
    let mut first = requests(model, of).swap_remove(0).messages;
    let marker = first[first.len() - 2].text().into_owned();
    assert!(marker.starts_with("[Phase: "), "{marker}");
    first.truncate(first.len() - 2);
    first
}

/// The texts that agents said in a request.
fn said(request: &ModelRequest) -> Vec<String> {
    let said = request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. }));
    said.map(|message| message.text().into_owned()).filter(|text| !text.is_empty()).collect()
}

fn two(model: &ScriptedModel, calls: &Calls) -> Vec<Agent> {
    let agents = ["one", "two"].map(|name| agent(name, model).tool(weather()).tool(visit(calls)));
    agents.map(|agent| agent.build().unwrap()).into()
}

fn hosting(text: &str, agents: &[Agent]) -> EngineBuilder {
    let engine = builder(text, &GraphAgents::new(agents.to_vec()));
    agents.iter().fold(engine, |engine, agent| engine.agent(agent.clone()))
}

/// A document to its end, with and without a store.
async fn played(text: &str, with_store: bool) -> (ScriptedModel, GraphResult) {
    let model = ScriptedModel::respond(diligent);
    let mut engine = hosting(text, &two(&model, &Calls::default()));
    if with_store {
        engine = engine.store(store());
    }
    let engine = engine.build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({"city": "Bern"})).await.unwrap();
    let result = run.outcome().await.unwrap();
    model.requests().iter().for_each(|request| crate::pairing::check(request).unwrap());
    (model, result)
}

// HV12, A92, A52
#[tokio::test]
async fn the_agents_of_a_path_continue_one_conversation() {
    for with_store in [false, true] {
        let (model, result) = played(PATH, with_store).await;
        assert_eq!(result.output["text"], "Answer: Tell it.");
        assert_eq!(model.requests().len(), 4);
        let first = conversation(&model, "Find out the weather.");
        assert_eq!(first.len(), 4, "a task, a call, its result and an answer: {first:#?}");
        assert_eq!(before(&model, "Plan a day."), first);
        assert_eq!(before(&model, "Tell it."), conversation(&model, "Plan a day."));
    }
}

// HV12, A92, A51
#[tokio::test]
async fn a_marker_stands_between_the_agents_and_the_identity_of_the_document_before_all() {
    let (model, _) = played(PATH, false).await;
    let plan = requests(&model, "Plan a day.").pop().unwrap();
    let marker = &texts(&plan)[4];
    assert_eq!(
        marker,
        "[Phase: plan]\nPhase `look` is complete, and phase `plan` begins.\nAccomplished:\n<data source=\"phase\">\n\
         Answer: Find out the weather.\n</data>"
    );
    assert!(plan.tools.is_empty() && has_tool(&model.requests()[0], "weather"));
    let setting = "You speak for the tourist office.\n\n# Goal\nA trip: Find a place to swim.\nIt is reached if:\n\
                   - It is warm.\nConstraints:\n- No flights.";
    assert_eq!(&*plan.system, format!("You are the two.\n\n{setting}"));
    assert_eq!(&*model.requests()[0].system, format!("You are the one.\n\n{setting}"));
}

// HV12, A92
#[tokio::test]
async fn branches_continue_the_same_conversation_and_do_not_see_each_other() {
    for with_store in [false, true] {
        let (model, result) = played(BRANCHES, with_store).await;
        assert_eq!(result.output["text"], "Answer: Do meet.");
        let begun = conversation(&model, "Do begin.");
        for next in ["Do left.", "Do right.", "Do meet."] {
            assert_eq!(before(&model, next), begun, "{next}");
        }
        assert_eq!(before(&model, "Do left2."), conversation(&model, "Do left."));
        let last = |of| said(&requests(&model, of).pop().unwrap());
        assert_eq!(last("Do left2."), ["Answer: Do begin.", "Answer: Do left."]);
        assert_eq!(last("Do right."), ["Answer: Do begin."]);
    }
}

// HV12, A92
#[tokio::test]
async fn isolated_agents_begin_anew() {
    let isolated = PATH.replace("\"id\": \"test\"", "\"id\": \"test\", \"conversation_mode\": \"isolated\"");
    let (model, _) = played(&isolated, false).await;
    for of in ["Find out the weather.", "Plan a day.", "Tell it."] {
        assert_eq!(requests(&model, of)[0].messages.len(), 1, "{of}");
    }
}

// HV12, A92
#[tokio::test]
async fn a_cycle_goes_on_in_one_conversation_and_its_journals_grow_linearly() {
    let text = r#"{"id": "test", "entry_node": "a", "max_steps": 40,
      "nodes": [{"id": "a", "system_prompt": "Again.", "output_keys": ["x"], "max_node_visits": 12},
                {"id": "b", "system_prompt": "Well.", "output_keys": ["y"], "max_node_visits": 12}],
      "edges": [{"source": "a", "target": "b"},
                {"source": "b", "target": "a", "condition": "conditional", "condition_expr": "x != 'end'"}]}"#;
    let model = ScriptedModel::respond(|request| {
        let asked =
            request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        ScriptedReply::text(if asked == 20 {
            "end".to_owned()
        } else {
            format!("{asked} {}", "word ".repeat(100))
        })
    });
    let agents = two(&model, &Calls::default());
    let engine = hosting(text, &agents).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    run.outcome().await.unwrap();
    let requests = model.requests();
    assert_eq!(requests.len(), 22);
    for (one, next) in requests.iter().zip(&requests[1..]) {
        assert_eq!(&next.messages[..one.messages.len()], &*one.messages);
        assert_eq!(next.messages.len(), one.messages.len() + 3, "an answer, a marker and a task");
    }
    let report = run.run().report().await.unwrap();
    let sizes = report.children.iter().map(|child| {
        let report = child.report.clone().unwrap();
        let values = report.log.iter().map(|logged| logged.value.to_json().unwrap().to_string().len());
        values.sum::<usize>()
    });
    let sizes: Vec<usize> = sizes.collect();
    assert!(sizes[20] < sizes[2] * 3 / 2, "{sizes:?}");
}

// HV12, A92, HV2
#[tokio::test]
async fn several_output_keys_are_the_type_of_the_answer_and_the_loop_bounds_its_turns() {
    let text = r#"{"id": "test", "entry_node": "a", "loop_config": {"max_iterations": 2},
      "nodes": [{"id": "a", "system_prompt": "Go.", "output_keys": ["sky", "sea"], "tools": ["weather"]}], "edges": []}"#;
    let model = ScriptedModel::new([
        call("1", "weather", "Bern"),
        ScriptedReply::call("2", "final_answer", json!({"sky": "clear", "sea": null})),
    ]);
    let one = agent("one", &model).tool(weather());
    let result = run(text, one).await.unwrap();
    assert_eq!(result.output, json!({"sky": "clear", "sea": null}));

    let model = ScriptedModel::respond(|_| call("1", "weather", "Bern"));
    let failure = failed(run(text, agent("one", &model).tool(weather())).await);
    assert_eq!(model.requests().len(), 2);
    assert!(failure.to_string().contains("turn"), "{failure}");
}

// HV12, A92: the process ends while the second agent waits for its model.
#[test]
fn another_process_goes_on_with_the_conversation_that_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.redb");
    let (calls, asked) = (Calls::default(), Arc::new(Notify::new()));
    let dies = {
        let asked = Arc::clone(&asked);
        ScriptedModel::respond(move |request| {
            if task(request) == "Plan a day." {
                asked.notify_one();
                return ScriptedReply::silent();
            }
            diligent(request)
        })
    };
    let process =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let engine = |model: &ScriptedModel| {
        let engine = hosting(PATH, &two(model, &calls));
        engine.store(RedbStore::open(&path).unwrap()).build().unwrap()
    };

    let first = process();
    let id = first.block_on(async {
        let engine = engine(&dies);
        let run = GraphRun::start(&engine, "test", json!({"city": "Bern"})).await.unwrap();
        asked.notified().await;
        run.id().clone()
    });
    // Nothing is shut down: its tasks are dropped where they stand.
    first.shutdown_timeout(Duration::from_mins(1));

    let lives = ScriptedModel::respond(diligent);
    let result = process().block_on(async {
        let engine = engine(&lives);
        assert!(engine.resume_open_runs().await.unwrap().refused.is_empty());
        GraphRun::attach(&engine, id).await.unwrap().outcome().await.unwrap()
    });
    assert_eq!(result.output["text"], "Answer: Tell it.");
    assert_eq!(dies.requests().len(), 3, "the weather twice, and the plan that nobody answered");
    assert_eq!(requests(&lives, "Find out the weather.").len(), 0, "it is paid");
    assert_eq!(before(&lives, "Plan a day."), conversation(&dies, "Find out the weather."));
    assert_eq!(requests(&lives, "Plan a day."), requests(&dies, "Plan a day."));
    assert_eq!(before(&lives, "Tell it."), conversation(&lives, "Plan a day."));
    assert_eq!(lives.requests().len(), 2);
}

// HV12, A92, A14
#[tokio::test]
async fn a_conversation_along_a_path_survives() {
    let expected = json!({
        "city": "Bern", "sky": "Answer: Find out the weather.", "day": "Answer: Plan a day.", "text": "Answer: Tell it.",
    });
    survives(PATH, &["one", "two"], diligent, expected, (4, 1), 1).await;
}

// HV12, A92, A14
#[tokio::test]
async fn a_conversation_through_branches_survives() {
    let answer = |of| format!("Answer: Do {of}.");
    let expected = json!({
        "city": "Bern", "begun": answer("begin"), "l": answer("left"), "l2": answer("left2"), "r": answer("right"),
        "text": answer("meet"),
    });
    survives(BRANCHES, &["one"], diligent, expected, (6, 1), 2).await;
}
