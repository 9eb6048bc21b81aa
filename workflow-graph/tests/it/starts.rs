//! The schema of `graph.input`, as front ends find it, beside the starts that an engine accepts.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};
use workflow_core::prelude::*;
use workflow_core::{RunOptions, StartError};
use workflow_graph::{Document, GraphError, GraphRun, Registry, ScriptedExecutor};

use super::support::{IMPORTED, examples};

/// The fields of the inputs below, with values that fit somewhere.
const FIELDS: [&str; 4] = ["cents", "to", "tags", "other"];

fn values() -> Vec<Option<Value>> {
    vec![
        None,
        Some(json!(null)),
        Some(json!(7)),
        Some(json!("DE1")),
        Some(json!(["a", "b"])),
        Some(json!({"cents": 1})),
    ]
}

fn inputs() -> Vec<Value> {
    let values = values();
    let mut inputs: Vec<Value> = values.iter().flatten().cloned().collect();
    for of in 0..values.len().pow(4) {
        let mut rest = of;
        let mut map = Map::new();
        for field in FIELDS {
            map.extend(values[rest % values.len()].clone().map(|value| (field.to_owned(), value)));
            rest /= values.len();
        }
        inputs.push(Value::Object(map));
    }
    inputs
}

/// Starts beside the plain ones, with an input that fits or not.
fn further(input: &Value) -> Vec<Value> {
    let mut starts =
        vec![json!(null), json!([]), json!([input]), json!("start"), json!({}), json!({"inputs": input})];
    for (key, values) in [
        ("dry_run", vec![json!(true), json!(false), json!(null), json!("true"), json!(1)]),
        (
            "played",
            vec![
                json!(0),
                json!(2.0),
                json!(2.5),
                json!(-1),
                json!(u32::MAX),
                json!(1_u64 << 32),
                json!("1"),
            ],
        ),
        ("document", vec![json!("hash"), json!(null), json!(7)]),
        ("unknown", vec![json!(null)]),
    ] {
        for value in values {
            starts.push(json!({ "input": input, key: value }));
            starts.push(json!({ key: value }));
        }
    }
    starts
}

fn native(input: &Value) -> String {
    json!({"graph": "g", "input": input, "nodes": {"a": {"value": 1}}}).to_string()
}

fn engine(document: &Document) -> Engine {
    let registry = Registry::new().script(ScriptedExecutor::from_json(&json!({})).unwrap());
    let workflows = document.bind(&registry).unwrap_or_else(|error| panic!("{error}"));
    Engine::builder().workflows(workflows).build().unwrap()
}

fn validator(engine: &Engine, graph: &str) -> Validator {
    let hosted = engine.hosted().into_iter().find(|hosted| *hosted.name == *graph).unwrap();
    let start = hosted.events.into_iter().find(|event| &*event.name == "graph.input").unwrap();
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(&start.schema.unwrap()).unwrap()
}

/// How many of the starts the engine accepts: those that the schema validates.
async fn compare(engine: &Engine, graph: &str, starts: &[Value]) -> usize {
    let schema = validator(engine, graph);
    let mut accepted = 0;
    for start in starts {
        let started = engine.start_json(graph, "graph.input", start.clone(), RunOptions::new()).await;
        match &started {
            Ok(_) => accepted += 1,
            Err(StartError::Unfit { .. }) => {}
            Err(error) => panic!("{start}: {error}"),
        }
        assert_eq!(schema.is_valid(start), started.is_ok(), "{graph}: {start}: {:?}", started.err());
    }
    accepted
}

// G11
#[tokio::test(start_paused = true)]
async fn an_engine_accepts_exactly_the_starts_that_the_schema_of_the_start_validates() {
    let cents = json!({"type": "integer", "minimum": 1, "default": 5});
    let iban = json!({"type": "string", "pattern": "^DE[0-9]+$"});
    let tags = json!({"type": "array", "items": {"enum": ["a", "b"]}});
    let documents = [
        native(&json!({"type": "object"})),
        native(&json!({"type": ["object", "null"], "properties": {"to": iban}, "additionalProperties": false})),
        native(&json!({"type": "object", "properties": {"cents": {"type": "integer"}, "to": iban}, "required": ["to"]})),
        native(&json!({"type": "object", "properties": {"cents": cents, "tags": tags}, "required": ["cents"]})),
        native(&json!({
            "type": "object",
            "properties": {"cents": cents, "to": iban, "tags": tags},
            "required": ["cents", "to"],
            "additionalProperties": false,
        })),
        native(&json!({"properties": {"cents": cents, "to": {"default": null}}, "required": ["other"]})),
        native(&json!({
            "type": "object",
            "properties": {"cents": cents, "to": {"$ref": "#/$defs/iban"}, "other": {"$ref": "#"}},
            "oneOf": [{"required": ["cents"]}, {"required": ["cents", "to"]}],
            "$defs": {"iban": iban},
        })),
        native(&json!(true)),
        "graph: g\nnodes: {a: {value: 1}}\n".to_owned(),
        "
id: g
name: G
entry: a
inputs:
  cents: {type: number, default: 5}
  to: {type: string, required: true}
  tags: {type: 'string[]', enum: [a, b]}
nodes: {a: {name: A, instruction: Go.}}
edges: []
"
        .to_owned(),
        "id: g\nname: G\nentry: a\ninputs: {to: {type: string}}\nnodes: {a: {name: A, instruction: Go.}}\nedges: []\n"
            .to_owned(),
    ];
    let inputs = inputs();
    for text in documents {
        let document = Document::parse(&text, "g.yaml").unwrap_or_else(|error| panic!("{error}"));
        let engine = engine(&document);
        let plain: Vec<Value> = inputs.iter().map(|input| json!({ "input": input })).collect();
        let accepted = compare(&engine, "g", &plain).await;
        assert!(accepted > 0, "{text}");
        for input in [
            json!({"cents": 7, "to": "DE1"}),
            json!({"to": "DE1", "other": {"cents": 1}}),
            json!({"cents": "7"}),
        ] {
            compare(&engine, "g", &further(&input)).await;
        }
        // A start by the crate's own handle is one of them.
        let schema = validator(&engine, "g");
        for input in inputs.iter().step_by(7) {
            let started = GraphRun::start(&engine, "g", input).await;
            assert!(matches!(&started, Ok(_) | Err(GraphError::Unfit { .. })), "{input}");
            assert_eq!(schema.is_valid(&json!({ "input": input })), started.is_ok(), "{text}: {input}");
        }
    }
}

// G11
#[tokio::test(start_paused = true)]
async fn starts_of_imported_examples_are_those_that_their_schemas_validate() {
    for name in IMPORTED {
        let document = Document::load(examples().join(name)).unwrap_or_else(|error| panic!("{error}"));
        let engine = engine(&document);
        let graph = engine.hosted()[0].name.clone();
        for input in [json!({}), json!(null), json!([]), json!({"cents": 7})] {
            compare(&engine, &graph, &further(&input)).await;
        }
    }
}
