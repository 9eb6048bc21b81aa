//! The schema of `graph.input` beside what is accepted, over random schemas of inputs.

use fastrand::Rng;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::fixtures::{document, graph};
use crate::schema::defaults;

const NAMES: [&str; 4] = ["a", "b", "c", "input"];

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// Starts whose maps have each of the names, or not.
fn starts() -> Vec<Value> {
    let values = [None, Some(json!(null)), Some(json!(0)), Some(json!("x")), Some(json!({"a": 1}))];
    let mut inputs = vec![json!(null), json!(1), json!("x"), json!([]), json!([{}])];
    for of in 0..values.len().pow(3) {
        let mut map = Map::new();
        for (place, name) in NAMES.iter().take(3).enumerate() {
            let value = &values[of / values.len().pow(u32::try_from(place).unwrap()) % values.len()];
            map.extend(value.clone().map(|value| ((*name).to_owned(), value)));
        }
        inputs.push(Value::Object(map));
    }
    let mut starts: Vec<Value> = inputs.into_iter().map(|input| json!({ "input": input })).collect();
    starts.push(json!({}));
    starts
}

/// Whether the schema validates exactly the starts that are accepted, and how many it refuses.
fn compare(input: &Value, starts: &[Value]) -> (usize, Value) {
    let text = json!({"graph": "g", "input": input, "nodes": {"a": {"value": 1}}}).to_string();
    let document = document(&text);
    let (graph, defaults) = (graph(&document), defaults(input));
    let schema = super::schema(graph);
    let checked = validator(&schema);
    let mut refused = 0;
    for start in starts {
        let accepted = super::accept(graph, &defaults, start);
        assert_eq!(
            checked.is_valid(start),
            accepted.is_ok(),
            "{start} of {input}\nby {schema}: {accepted:?}"
        );
        refused += usize::from(accepted.is_err());
    }
    (refused, schema)
}

fn one_of(random: &mut Rng, values: &[Value]) -> Value {
    values[random.usize(..values.len())].clone()
}

/// A schema of a value, with which defaults fit or not.
fn field(random: &mut Rng) -> Value {
    let fields = [
        json!({"type": "integer"}),
        json!({"type": ["string", "null"]}),
        json!({"enum": [0, "x"]}),
        json!({"const": {"a": 1}}),
        json!({"pattern": "^x"}),
        json!({"$ref": "#/$defs/field"}),
        json!({"$ref": "#"}),
        json!(true),
        json!({}),
    ];
    one_of(random, &fields)
}

fn some(random: &mut Rng) -> Vec<&'static str> {
    NAMES.iter().take(3).filter(|_| random.bool()).copied().collect()
}

fn name(random: &mut Rng) -> &'static str {
    NAMES[random.usize(..3)]
}

/// A part of a schema that looks at a map.
fn part(random: &mut Rng, depth: usize) -> Value {
    let mut part = Map::new();
    for _ in 0..random.usize(1..4) {
        let (key, value) = match random.usize(..if depth == 0 { 8 } else { 14 }) {
            0 => ("type", one_of(random, &[json!("object"), json!(["object", "null"]), json!("string")])),
            1 => ("required", some(random).into()),
            2 => {
                let names = some(random).into_iter();
                (
                    "properties",
                    names.map(|name| (name.to_owned(), field(random))).collect::<Map<_, _>>().into(),
                )
            }
            3 => ("additionalProperties", one_of(random, &[json!(false), json!({"type": "integer"})])),
            4 => ("patternProperties", json!({ "^[ab]$": field(random) })),
            5 => ("propertyNames", json!({ "pattern": "^[bc]$" })),
            6 => ("minProperties", random.u32(0..3).into()),
            7 => ("dependentRequired", json!({ name(random): some(random) })),
            8 => ("dependentSchemas", json!({ name(random): self::part(random, depth - 1) })),
            9 => (
                "dependencies",
                json!({ name(random): some(random), name(random): self::part(random, depth - 1) }),
            ),
            10 => {
                let parts: Vec<Value> = (0..2).map(|_| self::part(random, depth - 1)).collect();
                (["allOf", "anyOf", "oneOf"][random.usize(..3)], parts.into())
            }
            11 => ("not", self::part(random, depth - 1)),
            12 => {
                part.insert("then".into(), self::part(random, depth - 1));
                part.insert("else".into(), self::part(random, depth - 1));
                ("if", self::part(random, depth - 1))
            }
            _ => ("$ref", "#/$defs/part".into()),
        };
        part.insert(key.to_owned(), value);
    }
    Value::Object(part)
}

/// A schema of an input, with defaults for some fields.
fn input(random: &mut Rng) -> Value {
    let mut schema = part(random, 2);
    let mut properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in some(random) {
        let mut field = properties.remove(name).unwrap_or_else(|| field(random));
        if field.is_boolean() {
            field = json!({});
        }
        field["default"] = one_of(random, &[json!(null), json!(0), json!("x"), json!({"a": 1})]);
        properties.insert(name.to_owned(), field);
    }
    schema["properties"] = properties.into();
    // A reference to the whole at the whole itself would never end.
    schema["$defs"] = json!({"field": {"type": ["integer", "object"]}, "part": part(random, 0)});
    if random.u32(..4) == 0 {
        schema["unevaluatedProperties"] = false.into();
    }
    if random.u32(..4) == 0 {
        schema["$schema"] = one_of(
            random,
            &[
                json!("http://json-schema.org/draft-07/schema#"),
                json!("https://json-schema.org/draft/2019-09/schema"),
            ],
        );
    }
    schema
}

// G11
#[test]
fn the_schema_of_starts_validates_exactly_the_starts_that_are_accepted() {
    let (mut random, starts) = (Rng::with_seed(7), starts());
    let (mut mixed, mut exact) = (0, 0);
    for _ in 0..4_000 {
        let input = input(&mut random);
        // A document whose defaults do not fit is refused.
        let text = json!({"graph": "g", "input": input, "nodes": {"a": {"value": 1}}}).to_string();
        if crate::Document::parse(&text, "g.yaml").is_err() {
            continue;
        }
        let has_defaults = !defaults(&input).is_empty();
        if has_defaults
            && super::filled::schema(&input, validator(&input).draft(), &defaults(&input)).is_none()
        {
            continue;
        }
        let (refused, _) = compare(&input, &starts);
        exact += usize::from(has_defaults);
        mixed += usize::from(refused > 0 && refused < starts.len());
    }
    assert!(exact > 500 && mixed > 500, "{exact} with defaults, {mixed} accept some");
}

// G11
#[test]
fn parts_of_a_schema_are_found_again_below_the_start() {
    let starts = starts();
    for schema in [
        json!({"$ref": "#/$defs/whole", "$defs": {"whole": {"type": "object", "required": ["a"]}}}),
        json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "integer"}}}),
        json!({"$id": "urn:own", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}),
        json!({"properties": {"a": {"$ref": "#n"}}, "$defs": {"n": {"$anchor": "n", "type": "integer"}}}),
        json!({"properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "null"}}}),
        json!({
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "type": "object",
            "properties": {"a": {"$recursiveRef": "#"}},
        }),
        json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/n"}, "b": {"default": 1}},
            "required": ["b"],
            "definitions": {"n": {"type": "integer", "maximum": 0, "exclusiveMaximum": true}},
        }),
        json!({"type": "object", "const": {"$ref": "#/a"}}),
        json!(true),
        json!(false),
    ] {
        compare(&schema, &starts);
    }
}

// G11
#[test]
fn the_schema_of_an_input_with_defaults_reads_as_the_document_has_it() {
    let schema = json!({
        "type": "object",
        "properties": {"cents": {"type": "integer", "default": 5}, "to": {"type": "string"}},
        "required": ["cents", "to"],
        "additionalProperties": false,
    });
    let (_, begin) = compare(&schema, &starts());
    let mut expected = schema;
    expected["required"] = json!(["to"]);
    assert_eq!(begin["properties"]["input"], expected);
    assert_eq!(begin["required"], json!(["input"]));
}

// G11
#[test]
fn a_schema_that_counts_properties_or_compares_maps_leaves_the_check_of_defaults_to_the_engine() {
    for keyword in [
        json!({"maxProperties": 2}),
        json!({"minProperties": 2}),
        json!({"enum": [{"a": 1}]}),
        json!({"$anchor": "n"}),
        json!({"allOf": [{"unevaluatedProperties": false}]}),
    ] {
        let mut schema = json!({"type": "object", "properties": {"a": {"default": 1}}});
        schema.as_object_mut().unwrap().extend(keyword.as_object().unwrap().clone());
        let text = json!({"graph": "g", "input": schema, "nodes": {"a": {"value": 1}}}).to_string();
        let begin = super::schema(graph(&document(&text)));
        assert_eq!(
            (&begin["properties"]["input"], &begin["required"]),
            (&json!(true), &Value::Null),
            "{keyword}"
        );
        let checked = validator(&begin);
        assert!(checked.is_valid(&json!({})) && !checked.is_valid(&json!({"inputs": 1})));
    }
}
