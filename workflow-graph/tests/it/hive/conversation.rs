//! The tasks and questions of agents: HV12, HV3.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use workflow_graph::{
    AgentExecutor, AgentResult, AgentTask, Choice, ConversationMode, NodeContext, NodeError, Prompt,
    Question, Registry,
};

use super::support::{agent, edge, edge_on, graph, hive, run, with};

/// Notes its tasks, and returns a conversation.
#[derive(Clone, Default)]
struct Noting {
    tasks: Arc<Mutex<Vec<Value>>>,
    /// Bytes of the conversation of each node.
    bytes: usize,
}

impl Noting {
    fn of(&self, node: &str) -> Value {
        self.tasks.lock().unwrap().iter().find(|task| task["node"] == *node).unwrap().clone()
    }
}

impl AgentExecutor for Noting {
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        _: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        let hive = task.hive.unwrap();
        let prior = hive.prior.map(|prior| json!([&*prior.node, prior.result, prior.conversation]));
        self.tasks.lock().unwrap().push(json!({
            "node": task.node, "instruction": task.instruction, "allow": task.allow, "context": task.context,
            "goal": hive.goal, "identity": hive.identity_prompt, "loop": hive.loop_config,
            "is_continuous": hive.conversation_mode == ConversationMode::Continuous,
            "output_keys": hive.output_keys, "prior": prior, "metadata": hive.metadata,
        }));
        let node = task.node.to_owned();
        let said = format!("{node}{}", "x".repeat(self.bytes));
        Box::pin(async move { Ok(AgentResult::new(json!({"by": node})).conversation(json!(said))) })
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        let choices: Vec<_> =
            question.choices.iter().map(|choice| json!([choice.to, choice.about])).collect();
        let asked = json!({
            "node": format!("{}?", question.node), "question": question.question, "result": question.result,
            "context": question.context, "goal": question.goal, "choices": choices,
        });
        self.tasks.lock().unwrap().push(asked);
        Box::pin(async { Ok(Choice::new("b").because("it fits")) })
    }

    fn ask<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        Box::pin(async { Err(NodeError::permanent("no prompt is expected")) })
    }
}

// HV12
#[tokio::test(start_paused = true)]
async fn an_agent_receives_what_the_document_says_of_it() {
    let node = with(
        agent("a"),
        json!({"output_keys": ["by"], "tools": ["search"], "success_criteria": "good", "input_keys": ["k"]}),
    );
    let graph = with(
        graph(&[node], &[]),
        json!({"identity_prompt": "You are Ada.", "loop_config": {"max_iterations": 5}}),
    );
    let document = hive(&json!({"graph": graph, "goal": {"name": "Win", "description": "Be first."}}));
    let noting = Noting::default();
    run(&document, json!({"k": 1, "l": 2}), &Registry::new().agents(noting.clone())).await.result();
    assert_eq!(
        noting.of("a"),
        json!({
            "node": "a", "instruction": "Do a.", "allow": ["search"], "context": {"k": 1},
            "goal": {"name": "Win", "description": "Be first."}, "identity": "You are Ada.",
            "loop": {"max_iterations": 5}, "is_continuous": true, "output_keys": ["by"], "prior": null,
            "metadata": {"success_criteria": "good"},
        })
    );
}

// HV12
#[tokio::test(start_paused = true)]
async fn a_conversation_goes_along_the_path_and_around_branches() {
    let nodes = ["n", "a", "a2", "b", "meet"].map(agent);
    let edges = [edge("n", "a"), edge("n", "b"), edge("a", "a2"), edge("a2", "meet"), edge("b", "meet")];
    let document = graph(&nodes, &edges);
    let noting = Noting::default();
    run(&hive(&document), json!({}), &Registry::new().agents(noting.clone())).await.result();
    let prior = |node: &str| noting.of(node)["prior"].clone();
    assert_eq!(prior("n"), Value::Null);
    for begins in ["a", "b", "meet"] {
        assert_eq!(prior(begins), json!(["n", {"by": "n"}, "n"]), "{begins}");
    }
    assert_eq!(prior("a2"), json!(["a", {"by": "a"}, "a"]));

    let noting = Noting::default();
    let isolated = hive(&with(document, json!({"conversation_mode": "isolated"})));
    run(&isolated, json!({}), &Registry::new().agents(noting.clone())).await.result();
    assert!(noting.tasks.lock().unwrap().iter().all(|task| task["prior"].is_null()));
}

// HV12
#[tokio::test(start_paused = true)]
async fn a_conversation_beyond_its_bound_is_dropped_with_a_warning() {
    let document = hive(&graph(&["a", "b"].map(agent), &[edge("a", "b")]));
    let noting = Noting { bytes: 64 << 10, ..Noting::default() };
    let ran = run(&document, json!({}), &Registry::new().agents(noting.clone())).await;
    assert_eq!(noting.of("b")["prior"], json!(["a", {"by": "a"}, null]));
    let warning =
        "`a`: the conversation has 65539 bytes, and the next agent receives at most 65536: it is dropped";
    assert_eq!(ran.result().warnings[0], warning);
}

// HV3
#[tokio::test(start_paused = true)]
async fn a_model_is_asked_with_goal_memory_result_and_targets() {
    let nodes = ["n", "a", "b"].map(agent);
    let about = json!({"description": "It is done."});
    let edges = [edge_on("n", "a", "llm_decide"), with(edge_on("n", "b", "llm_decide"), about)];
    let goal = json!({"name": "Win", "description": "Be first."});
    let document = hive(&json!({"graph": graph(&nodes, &edges), "goal": goal}));
    let noting = Noting::default();
    let ran = run(&document, json!({"asked": 7}), &Registry::new().agents(noting.clone())).await;
    assert_eq!(ran.routes(), ["n->b: it fits"]);
    let question = "The goal is: Win: Be first.\nWhich node comes next?";
    let choices = json!([["a", null], ["b", "It is done."]]);
    let expected = json!({
        "node": "n?", "question": question, "context": {"asked": 7, "by": "n"}, "result": {"by": "n"},
        "goal": goal, "choices": choices,
    });
    assert_eq!(noting.of("n?"), expected);
}
