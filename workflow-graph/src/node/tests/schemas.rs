//! Data beside output schemas.

use serde_json::{Value, json};

use super::support::document;
use crate::node::checks;

fn unfit(schema: &str, data: &Value) -> Option<String> {
    let document = document(&format!("graph: g\nnodes:\n  n: {{function: f, output: {schema}}}\n"));
    checks::output(document.graphs()[0].nodes[0].output.as_ref().unwrap(), data).err()
}

// G18
#[test]
fn every_violation_is_named_with_its_path() {
    let schema =
        "{type: object, required: [text], properties: {n: {type: integer}, list: {items: {enum: [a, b]}}}}";
    assert_eq!(unfit(schema, &json!({"text": "", "n": 1, "list": ["a"]})), None);
    assert_eq!(
        unfit(schema, &json!({"n": "x", "list": ["a", "c"]})).unwrap(),
        "the data does not fit `output`: \"text\" is a required property; `/list/1`: \"c\" is not one of \"a\" or \"b\"; \
         `/n`: \"x\" is not of type \"integer\""
    );
}

// G18
#[test]
fn the_message_does_not_grow_with_the_data() {
    let many = json!(vec![json!({"text": "long ".repeat(1_000)}); 1_000]);
    let message = unfit("{items: {type: integer}}", &many).unwrap();
    assert!(message.len() < 20_000, "{}", message.len());
    assert!(message.contains("`/19`: ") && message.ends_with("; and 980 more"), "{message}");
}
