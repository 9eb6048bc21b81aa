//! Shapes of values before they exist: by a schema, by a template, or unknown. This module reports nothing.

use serde_json::{Map, Value};

use crate::document::model::{Graph, Node, Work};
use crate::document::template::Template;
use crate::expression::{Segment, Type};

/// The most `$ref` on one path.
const MOST_REFERENCES: usize = 16;

/// The possible forms of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    Any,
    Of(Type),
    /// By the second schema, which is part of the first.
    Schema(&'a Value, &'a Value),
    Template(&'a Template),
    /// Of a node with `for_each`.
    Items,
}

/// The result of following a path.
#[derive(Debug)]
pub(super) enum Found<'a> {
    Shape(Shape<'a>),
    /// The field of this place in the path does not exist; these do.
    Unknown {
        place: usize,
        known: Vec<&'a str>,
    },
}

/// The shape of the data of a node.
pub(super) fn of_node(node: &Node) -> Shape<'_> {
    if node.for_each.is_some() {
        return Shape::Items;
    }
    of_work(node)
}

/// The shape of the data of one run of a node.
pub(super) fn of_work(node: &Node) -> Shape<'_> {
    if node.unread.data {
        return Shape::Any;
    }
    match (&node.work, &node.output) {
        (_, Some(schema)) => Shape::Schema(&schema.value, &schema.value),
        (Work::Human(human), None) => {
            human.reply.as_ref().map_or(Shape::Any, |schema| Shape::Schema(&schema.value, &schema.value))
        }
        (Work::Value(template), None) => Shape::Template(template),
        _ => Shape::Any,
    }
}

/// The shape of the input of a run.
pub(super) fn of_input(graph: &Graph) -> Shape<'_> {
    graph.input.as_ref().map_or(Shape::Any, |schema| Shape::Schema(&schema.value, &schema.value))
}

impl<'a> Shape<'a> {
    /// Follows a path. The second value is the first place that need not be there.
    pub(super) fn follow(self, segments: &[Segment]) -> (Found<'a>, Option<usize>) {
        let (mut shape, mut optional) = (self, None);
        for (place, segment) in segments.iter().enumerate() {
            match shape.step(segment) {
                Step::To(next, is_required) => {
                    shape = next;
                    if !is_required {
                        optional = optional.or(Some(place));
                    }
                }
                Step::Any => return (Found::Shape(Shape::Any), optional),
                Step::Unknown(known) => return (Found::Unknown { place, known }, optional),
            }
        }
        (Found::Shape(shape), optional)
    }

    fn step(self, segment: &Segment) -> Step<'a> {
        match (self, segment) {
            (Shape::Schema(root, schema), segment) => {
                let Some(schema) = resolved(root, schema) else { return Step::Any };
                match segment {
                    Segment::Field(name) => field(root, schema, name),
                    // The first items have schemas of their own.
                    Segment::Index(_) if schema.get("prefixItems").is_some() => Step::Any,
                    Segment::Index(_) => schema
                        .get("items")
                        .map_or(Step::Any, |items| Step::To(Shape::Schema(root, items), true)),
                }
            }
            (Shape::Template(Template::Map(pairs)), Segment::Field(name)) => {
                let found = pairs.iter().find(|(key, _)| **key == **name);
                let known = || Step::Unknown(pairs.iter().map(|(key, _)| &**key).collect());
                found.map_or_else(known, |(_, value)| Step::To(Shape::Template(value), true))
            }
            (Shape::Template(Template::Value(Value::Object(map))), Segment::Field(name)) => {
                let known = || Step::Unknown(sorted(map));
                map.get(name).map_or_else(known, |value| Step::To(Shape::Of(Type::of(value)), true))
            }
            (Shape::Items, Segment::Field(name)) => match name.as_str() {
                "items" | "failed" => Step::To(Shape::Of(Type::LIST), true),
                _ => Step::Unknown(vec!["items", "failed"]),
            },
            _ => Step::Any,
        }
    }

    pub(super) fn as_type(self) -> Type {
        match self {
            Shape::Any | Shape::Template(Template::Expression(_)) => Type::ANY,
            Shape::Of(of) => of,
            Shape::Schema(root, schema) => {
                let is_open = |schema: &&Value| !COMBINED.iter().any(|key| schema.get(key).is_some());
                resolved(root, schema).filter(is_open).map_or(Type::ANY, Type::of_schema)
            }
            Shape::Template(Template::Value(value)) => Type::of(value),
            Shape::Template(Template::Text(_)) => Type::TEXT,
            Shape::Template(Template::List(_)) => Type::LIST,
            Shape::Template(Template::Map(_)) | Shape::Items => Type::MAP,
        }
    }
}

/// Longer lists of values are not looked at.
const MOST_VALUES: usize = 1_000;

impl<'a> Shape<'a> {
    /// Every value by `const` or `enum` of the schema.
    pub(super) fn values(self) -> Option<Vec<&'a Value>> {
        let Shape::Schema(root, schema) = self else { return None };
        let schema = resolved(root, schema)?;
        let values: Vec<&Value> = match (schema.get("const"), schema.get("enum")) {
            (Some(only), _) => vec![only],
            (None, Some(Value::Array(values))) if (1..=MOST_VALUES).contains(&values.len()) => {
                values.iter().collect()
            }
            _ => return None,
        };
        // A default need not be one of them.
        let has_other = schema.get("default").is_some_and(|default| !values.contains(&default));
        (!has_other).then_some(values)
    }
}

/// Keywords that add to what `properties` and `type` say.
const COMBINED: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "$dynamicRef",
    "patternProperties",
    "unevaluatedProperties",
];

/// Where one segment leads.
enum Step<'a> {
    /// To a value, and whether it is always there.
    To(Shape<'a>, bool),
    Any,
    /// To nothing; these fields exist.
    Unknown(Vec<&'a str>),
}

fn field<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Step<'a> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Step::Any };
    let required = schema.get("required").and_then(Value::as_array);
    if let Some(schema) = properties.get(name) {
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
        return Step::To(Shape::Schema(root, schema), is_required);
    }
    if is_open(schema) { Step::Any } else { Step::Unknown(sorted(properties)) }
}

/// Whether maps may have fields that a schema with `properties` does not list.
pub(crate) fn is_open(schema: &Value) -> bool {
    // A schema that says nothing about further properties is taken at its word: they are not described.
    schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
        || COMBINED.iter().any(|key| schema.get(key).is_some())
}

/// The keys of a map, in an order that no feature of `serde_json` changes.
fn sorted(map: &Map<String, Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The schema that a `$ref` within the same schema leads to.
pub(crate) fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> Option<&'a Value> {
    for _ in 0..MOST_REFERENCES {
        let Some(reference) = schema.get("$ref") else { return Some(schema) };
        schema = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
    }
    None
}
