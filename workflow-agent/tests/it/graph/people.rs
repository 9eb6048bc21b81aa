use std::time::Duration;

use workflow_agent::PendingQuestion;
use workflow_agent::tool::FnTool;
use workflow_core::DisplayItem;

use super::*;

/// An agent that pays after an approval, beside a person who is asked by the document.
const PAYING: &str = "
graph: test
nodes:
  plan: {value: 700, next: {parallel: [pay, check], join: report}}
  pay: {agent: 'Pay ${ plan } cents.', next: report}
  check: {human: {ask: 'Is it right?', reply: {type: object, properties: {right: {type: boolean}}, required: [right]}}, next: report}
  report: {value: {paid: '${ pay }', right: '${ check.right }'}}
";

fn paying(calls: &Calls) -> AgentBuilder {
    let calls = calls.clone();
    let pay = FnTool::new("pay", "Pays.", move |amount: Value, _| {
        calls.add(amount.to_string());
        async move { Ok::<_, ToolError>("paid") }
    });
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "pay", json!({"cents": 700})),
        3 => ScriptedReply::call("2", "ask_user", json!({"question": "Which account?"})),
        _ => ScriptedReply::text(texts(request).pop().unwrap()),
    });
    agent("one", &model).tool(pay.approval(Approval::Always)).ask_user()
}

/// Waits until people were asked so many things, by the run or by one below it.
async fn asked(run: &GraphRun, mut count: usize) {
    let mut display = run.run().display();
    while count > 0 {
        let item = display.next().await.unwrap();
        let item = match &item {
            DisplayItem::Child { item, .. } => item,
            item => item,
        };
        count -= usize::from(matches!(item, DisplayItem::Asked { .. }));
    }
}

/// The question that the agent asks after its approval.
async fn question(agents: &GraphAgents, engine: &Engine, run: &GraphRun) -> PendingQuestion {
    let mut display = run.run().display();
    loop {
        if let Some(question) = agents.questions(engine, run).await.unwrap().pop() {
            return question;
        }
        display.next().await.unwrap();
    }
}

/// A92, A24
#[tokio::test]
async fn gates_of_the_document_and_approvals_of_its_agents_are_answered_in_one_program() {
    let calls = Calls::default();
    let (agents, hosted) = only(paying(&calls));
    let store = store();
    let host = || builder(PAYING, &agents).agent(hosted.clone()).store(Arc::clone(&store)).build().unwrap();
    let engine = host();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    asked(&run, 2).await;
    let approvals = agents.approvals(&engine, &run).await.unwrap();
    assert_eq!(approvals.len(), 1);
    assert_eq!((approvals[0].tool(), approvals[0].arguments()), ("pay", &json!({"cents": 700})));
    assert!(agents.questions(&engine, &run).await.unwrap().is_empty());
    let gates = run.gates().await.unwrap();
    assert_eq!(gates.iter().map(|gate| &*gate.node).collect::<Vec<_>>(), ["check"]);
    let (id, asking) = (run.id().clone(), approvals[0].run().clone());
    assert!(asking.as_str().starts_with(id.as_str()));
    engine.shut_down(Duration::from_secs(10)).await;
    assert_eq!(calls.len(), 0);

    // Both survive the end of the process.
    let engine = host();
    let run = GraphRun::attach(&engine, id).await.unwrap();
    asked(&run, 2).await;
    let gates = run.gates().await.unwrap();
    run.answer(gates[0].id, json!({"right": true})).await.unwrap();
    let approvals = agents.approvals(&engine, &run).await.unwrap();
    assert_eq!((approvals.len(), approvals[0].run()), (1, &asking));
    approvals[0].edit(json!({"cents": 650})).await.unwrap();
    let question = question(&agents, &engine, &run).await;
    assert_eq!((calls.len(), question.question()), (1, "Which account?"));
    assert!(agents.approvals(&engine, &run).await.unwrap().is_empty());
    question.answer("the blue one").await.unwrap();
    let result = run.outcome().await.unwrap();
    assert!(reads(&result.output["paid"], "the blue one"), "{}", result.output);
    assert_eq!((calls.len(), &result.output["right"]), (1, &json!(true)));
    // The call ran with the arguments of the person.
    let made = &result.results["pay"].calls;
    let expected = ("pay", &json!({"cents": 650}), &json!("paid"));
    assert_eq!((&*made[0].tool, &*made[0].input, &*made[0].output), expected);
    assert_eq!(*made[1].input, json!({"question": "Which account?"}), "nobody edited this one");
    assert!(agents.approvals(&engine, &run).await.unwrap().is_empty(), "the run has ended");
}

/// A92, A21
#[tokio::test]
async fn an_approval_below_a_graph_within_a_graph_is_found_and_rejected() {
    let text = "
graph: test
nodes: {call: {graph: inner}}
---
graph: inner
nodes: {pay: {agent: 'Pay.'}}
";
    let calls = Calls::default();
    let (agents, hosted) = only(paying(&calls));
    let engine = builder(text, &agents).agent(hosted).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    assert_eq!(run.settled().await, workflow_core::RunStatus::Waiting);
    assert!(run.gates().await.unwrap().is_empty(), "approvals are no questions of the documents");
    let approvals = agents.approvals(&engine, &run).await.unwrap();
    approvals[0].reject("too much").await.unwrap();
    question(&agents, &engine, &run).await.answer("none").await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(calls.len(), 0);
}
