//! Functions by their names: inputs, outputs, errors.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow_core::ErrorClass;

use super::Registry;
use crate::context::testing::context;
use crate::{NodeContext, NodeError, ScriptedExecutor};

#[derive(Deserialize, JsonSchema)]
struct Order {
    lines: Vec<Line>,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    cents: u64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    cents: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

async fn sum(order: Order, _: NodeContext) -> Result<Sum, NodeError> {
    Ok(Sum { cents: order.lines.iter().map(|line| line.cents).sum(), note: order.note })
}

async fn call(registry: &Registry, name: &str, input: Value) -> Result<Value, (ErrorClass, String)> {
    let function = registry.executors().function(name).unwrap();
    let called = function.call(input, context("node", 0)).await;
    called.map_err(|error| (error.class(), error.to_string()))
}

#[tokio::test]
async fn functions_read_and_write_json() {
    let registry = Registry::new().function("sum", sum);
    let output = call(&registry, "sum", json!({"lines": [{"cents": 2}, {"cents": 3}]})).await;
    assert_eq!(output.unwrap(), json!({"cents": 5}));
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_permanent_and_names_the_path() {
    let registry = Registry::new().function("sum", sum);
    let refused = call(&registry, "sum", json!({"lines": [{"cents": 2}, {"cents": "3"}]})).await.unwrap_err();
    let message = "the input of the function `sum` cannot be read at `lines[1].cents`: \
                   invalid type: string \"3\", expected u64";
    assert_eq!(refused, (ErrorClass::Permanent, message.to_owned()));
    let refused = call(&registry, "sum", json!({})).await.unwrap_err();
    let message = "the input of the function `sum` cannot be read: missing field `lines`";
    assert_eq!(refused, (ErrorClass::Permanent, message.to_owned()));
}

#[tokio::test]
async fn a_function_without_input_takes_unit() {
    let registry = Registry::new().function("now", |(): (), _| async { Ok::<_, NodeError>(7) });
    assert_eq!(call(&registry, "now", json!({})).await.unwrap(), json!(7));
    assert!(call(&registry, "now", json!({"a": 1})).await.is_err());
}

/// G17
#[tokio::test]
async fn errors_keep_their_class_and_others_are_transient() {
    let registry = Registry::new()
        .function("io", |(): (), _| async { Err::<(), _>(io::Error::other("down")) })
        .function("no", |(): (), _| async { Err::<(), _>(NodeError::rejected("no")) });
    assert_eq!(call(&registry, "io", json!({})).await, Err((ErrorClass::Transient, "down".to_owned())));
    assert_eq!(call(&registry, "no", json!({})).await, Err((ErrorClass::Rejected, "no".to_owned())));
}

#[tokio::test]
async fn an_output_without_json_is_permanent() {
    let odd = |(): (), _| async { Ok::<_, NodeError>(std::collections::HashMap::from([((1, 2), 3)])) };
    let registry = Registry::new().function("odd", odd);
    let refused = call(&registry, "odd", json!({})).await.unwrap_err();
    let message = "the output of the function `odd` has no JSON: key must be a string";
    assert_eq!(refused, (ErrorClass::Permanent, message.to_owned()));
}

#[test]
fn described_functions_have_schemas_of_reading_and_of_writing() {
    let registry = Registry::new().described("sum", sum).function("plain", sum);
    let executors = registry.executors();
    assert_eq!(executors.input_of("sum").unwrap()["required"], json!(["lines"]));
    assert_eq!(executors.output_of("sum").unwrap()["required"], json!(["cents"]));
    assert!(executors.input_of("plain").is_none() && executors.output_of("plain").is_none());
}

#[tokio::test]
async fn a_script_stands_in_for_every_executor() {
    let script = ScriptedExecutor::parse("nodes: {node: [{data: played}]}", "s.yaml").unwrap();
    let registry = Registry::new().function("sum", sum).script(script);
    assert_eq!(call(&registry, "sum", json!({})).await.unwrap(), json!("played"));
    assert_eq!(call(&registry, "absent", json!({})).await.unwrap(), json!("played"));
    let executors = registry.executors();
    let called = executors.tools().unwrap().call("any", json!({}), &context("node", 0)).await;
    assert_eq!(called.unwrap(), json!("played"));
    assert!(executors.agents().is_some() && executors.script().is_some());
    let none = Registry::new();
    assert!(none.executors().agents().is_none() && none.executors().tools().is_none());
}

#[test]
fn skills_add_up_and_are_unknown_at_first() {
    assert!(Registry::new().executors().skills().is_none());
    let registry = Registry::new().skills(["b"]).skills(["a", "b"]);
    let skills: Vec<&str> = registry.executors().skills().unwrap().iter().map(|name| &**name).collect();
    assert_eq!(skills, ["a", "b"]);
    let none: [&str; 0] = [];
    assert!(Registry::new().skills(none).executors().skills().unwrap().is_empty());
}

#[test]
fn a_registry_shows_its_names() {
    let registry = Registry::new().function("sum", sum).allow_commands();
    expect_test::expect![[r#"
        Registry { executors: Executors { functions: ["sum"], agents: false, tools: false, skills: None, script: None, .. }, documents: [], workflows: [], allows_commands: true, .. }"#]]
    .assert_eq(&format!("{registry:?}"));
}
