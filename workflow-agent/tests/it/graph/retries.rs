use super::*;

const TWICE: &str = "
graph: test
nodes:
  a:
    agent: {instruction: 'Go to Bern.', max_turns: 5}
    ensure:
      all:
        - {name: both, called: {all: [weather, visit]}}
      retries: 2
      guidance: 'Do not forget a tool.'
";

/// Calls one tool in each run, and answers.
fn forgetful(request: &ModelRequest) -> ScriptedReply {
    let asked = request.messages.iter().filter(|message| matches!(message, Message::User { .. })).count();
    match (request.messages.last().unwrap(), asked) {
        (Message::Results(_), _) => ScriptedReply::text(format!("run {asked}")),
        (_, 1) => call("1", "weather", "Bern"),
        _ => call("1", "visit", "Bern"),
    }
}

/// A92, A7
#[tokio::test]
async fn failed_checks_are_the_next_message_of_the_conversation_and_calls_before_count() {
    for with_store in [false, true] {
        let (model, calls) = (ScriptedModel::respond(forgetful), Calls::default());
        let (agents, hosted) = only(agent("one", &model).tool(weather()).tool(visit(&calls)));
        let mut engine = builder(TWICE, &agents).agent(hosted);
        if with_store {
            engine = engine.store(store());
        }
        let engine = engine.build().unwrap();
        let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
        let result = run.outcome().await.unwrap();
        assert_eq!((result.output, calls.len()), (json!("run 2"), 1));
        // The calls of both runs, with what they were given and what they returned.
        let made = json!(result.results["a"].calls);
        assert_eq!(
            made,
            json!([
                {"tool": "weather", "ok": true, "input": {"city": "Bern"}, "output": "warm in Bern"},
                {"tool": "visit", "ok": true, "input": {"city": "Bern"}, "output": "visited Bern"},
            ])
        );
        assert_eq!(json!(result.trace.visits[0].calls), made);

        let requests = model.requests();
        assert_eq!(requests.len(), 4);
        for (before, after) in requests.iter().zip(&requests[1..]) {
            assert_eq!(before.system, after.system);
            assert_eq!(texts(&after.clone())[..before.messages.len()], texts(before));
        }
        let again = texts(&requests[2]).pop().unwrap();
        assert!(
            again.starts_with("Your result did not pass these checks:\n<data source=\"checks\">"),
            "{again}"
        );
        assert!(again.contains("visit") && again.contains("# Advice\nDo not forget a tool."), "{again}");
        assert_eq!(texts(&requests[2])[3], "run 1", "the answer before");
    }
}

/// A92, A1
#[tokio::test]
async fn a_run_that_continues_another_copies_nothing_of_it() {
    let (model, calls) = (ScriptedModel::respond(forgetful), Calls::default());
    let (agents, hosted) = only(agent("one", &model).tool(weather()).tool(visit(&calls)));
    let engine = builder(TWICE, &agents).agent(hosted).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    run.outcome().await.unwrap();
    let report = run.run().report().await.unwrap();
    let logs = report.children.iter().map(|child| {
        let report = child.report.clone().unwrap();
        let log: Vec<String> =
            report.log.iter().map(|logged| logged.value.to_json().unwrap().to_string()).collect();
        log.join("\n")
    });
    let logs: Vec<String> = logs.collect();
    assert_eq!(logs.len(), 2);
    assert!(logs[0].contains("warm in Bern") && !logs[1].contains("warm in Bern"), "{logs:#?}");
    assert!(logs.iter().all(|log| log.len() < 8_000));
}

/// A92
#[tokio::test]
async fn the_last_failure_of_the_checks_fails_the_node() {
    let text = "
graph: test
nodes:
  a: {agent: 'Go.', output: {type: string}, ensure: {all: [\"a == 'yes'\"], retries: 2}}
";
    let model = ScriptedModel::respond(|request| {
        let users = request.messages.iter().filter(|message| matches!(message, Message::User { .. })).count();
        ScriptedReply::call("1", "final_answer", json!({"answer": format!("no {users}")}))
    });
    let failure = failed(run(text, agent("one", &model)).await);
    assert_eq!(model.requests().len(), 3);
    assert!(failure.to_string().contains("a == 'yes'"), "{failure}");
}

/// A92, A53
#[tokio::test]
async fn a_long_conversation_over_several_runs_is_summarised() {
    let text = "
graph: test
nodes:
  a: {agent: 'Go.', ensure: {all: [\"contains(a, 'end')\"], retries: 6}}
";
    let model = ScriptedModel::respond(|request| {
        if request.system.starts_with("You summarise") {
            return ScriptedReply::text("so far");
        }
        let is_short = texts(request).iter().any(|text| text.contains("so far"));
        ScriptedReply::text(if is_short { "end".to_owned() } else { "word ".repeat(150) })
    });
    let model = model.limits(workflow_agent::model::ModelLimits::new(1_000, 100));
    let ended = run(text, agent("one", &model)).await;
    let longest = model.requests().iter().map(|request| texts(request).concat().len()).max().unwrap();
    assert!(longest < 4_000, "{longest}");
    match ended {
        Ok(result) => assert_eq!(result.output, "end"),
        // The newest exchanges within half the window were enough for each run.
        Err(error) => assert_eq!(model.requests().len(), 7, "{error}"),
    }
}
