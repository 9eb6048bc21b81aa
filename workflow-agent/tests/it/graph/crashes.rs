//! Ends of the process at every write: no reply that is in a journal is paid for again, and no call of a tool runs twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use workflow_agent::tool::FnTool;
use workflow_testkit::{Confirms, CrashStore, Runtime, Scenario, Start, crash_everywhere};

use super::*;

/// The calls outside of a run, over all processes of one crash test.
#[derive(Debug, Default)]
struct Paid {
    lives: usize,
    /// How often each request of an agent's turn came to the model.
    turns: BTreeMap<String, usize>,
    /// How often a question came: judges and decisions.
    questions: BTreeMap<String, usize>,
    /// How often the tool ran, by its key.
    tools: BTreeMap<String, usize>,
}

#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<Paid>>>);

impl Ledger {
    fn with<T>(&self, look: impl FnOnce(&mut Paid) -> T) -> T {
        look(self.0.lock().unwrap().last_mut().unwrap())
    }

    fn store(&self) -> impl Fn() -> MemoryStore + Send + 'static + use<> {
        let ledger = self.clone();
        move || {
            ledger.0.lock().unwrap().push(Paid::default());
            MemoryStore::default()
        }
    }

    fn model(&self, reply: fn(&ModelRequest) -> ScriptedReply) -> ScriptedModel {
        let ledger = self.clone();
        ScriptedModel::respond(move |request| {
            crate::pairing::check(request).unwrap();
            let key = format!("{}\n{:?}", request.system, request.messages);
            ledger.with(|paid| {
                let is_turn = request.system.starts_with("You are the");
                let calls = if is_turn { &mut paid.turns } else { &mut paid.questions };
                *calls.entry(key).or_default() += 1;
            });
            reply(request)
        })
    }

    fn tool(&self, name: &'static str) -> FnTool {
        let ledger = self.clone();
        FnTool::new(name, "Does it.", move |_: Value, context: ToolContext| {
            let key = format!("{name} {}", context.idempotency_key());
            ledger.with(|paid| *paid.tools.entry(key).or_default() += 1);
            async move { Ok::<_, ToolError>("done") }
        })
        .idempotent()
    }
}

pub(super) async fn survives(
    text: &'static str,
    names: &'static [&'static str],
    reply: fn(&ModelRequest) -> ScriptedReply,
    expected: Value,
    (turns, tools): (usize, usize),
    branches: usize,
) {
    let ledger = Ledger::default();
    let (starts, checks) = (ledger.clone(), ledger.clone());
    let start = move |store: CrashStore| -> Start<Runtime> {
        starts.with(|paid| paid.lives += 1);
        let model = starts.model(reply);
        let agents = names.iter().map(|name| {
            let agent = agent(name, &model).tool(starts.tool("weather")).tool(starts.tool("visit"));
            agent.build().unwrap()
        });
        let agents: Vec<Agent> = agents.collect();
        let graph = bound(text, &GraphAgents::new(agents.clone())).remove(0);
        let scenario = Scenario::runtime(graph).engine(|engine| engine.store(store));
        let scenario = agents
            .into_iter()
            .fold(scenario, |scenario, agent| scenario.host_named(agent.name().to_owned(), agent));
        scenario.start_json("graph.input", json!({"input": {"city": "Bern"}}))
    };
    let crashes = crash_everywhere(start).on(ledger.store());
    let crashes = crashes.confirming([Confirms::AtOnce, Confirms::Late]).pairs(4).comparing_outcomes();
    let survived = crashes.assert(move |run| {
        let output = run.outcome().unwrap();
        assert_eq!(output["output"], expected, "{output}");
        checks.with(|paid| {
            let crashes = paid.lives - 1;
            let calls: usize = paid.turns.values().sum();
            // A repeated request has the bytes of the one before, and comes again for a crash alone, which ends one call of
            // each branch at most.
            assert_eq!(paid.turns.len(), turns, "{paid:#?}");
            assert!(
                calls <= turns + crashes * branches,
                "{calls} calls of a model, {turns} replies: {paid:#?}"
            );
            let calls: usize = paid.tools.values().sum();
            assert_eq!(paid.tools.len(), tools, "{paid:#?}");
            assert!(calls <= tools + crashes, "{paid:#?}");
        });
    });
    let survived = survived.await;
    assert!(survived.once() > 20 && survived.twice() > 2, "{survived}");
    assert!(ledger.0.lock().unwrap().iter().any(|paid| paid.lives == 3));
}

/// A92, A14
#[tokio::test]
async fn a_document_of_two_agents_a_judge_and_a_decision_survives() {
    survives(REPORT, &["scout", "writer"], reporter, json!("The sky is clear."), (4, 2), 1).await;
}

/// A92
#[tokio::test]
async fn a_conversation_over_two_runs_survives() {
    let text = "
graph: test
nodes:
  a:
    agent: 'Go to Bern.'
    ensure: {all: [{name: both, called: {all: [weather, visit]}}], retries: 1}
    next: b
  b: {value: 'then ${ a }'}
";
    let reply = |request: &ModelRequest| {
        let asked = request.messages.iter().filter(|message| matches!(message, Message::User { .. })).count();
        match (request.messages.last().unwrap(), asked) {
            (Message::Results(_), _) => ScriptedReply::text(format!("run {asked}")),
            (_, 1) => call("1", "weather", "Bern"),
            _ => call("1", "visit", "Bern"),
        }
    };
    survives(text, &["one"], reply, json!("then run 2"), (4, 2), 1).await;
}
