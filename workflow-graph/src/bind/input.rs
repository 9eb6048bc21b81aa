//! The input that a node gives beside the schema of its taker: fields that are missing or unknown, and values that can never
//! fit. Values that only a run knows are taken to be complete, and to fit where their type may.

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::check::{Typing, is_open, resolved};
use crate::document::model::Node;
use crate::document::template::{Expression, Template};
use crate::expression::{Type, short};

/// A field that does not fit. Its path is empty for the input as a whole.
#[derive(Debug)]
pub(super) struct Unfit<'a> {
    pub(super) path: String,
    /// The expression that stands for the value, if one does.
    pub(super) by: Option<&'a Expression>,
    pub(super) why: Why<'a>,
}

#[derive(Debug)]
pub(super) enum Why<'a> {
    Missing,
    /// The schema has these fields beside it.
    Unknown(Vec<&'a str>),
    /// The type of the value, and those that fit.
    Type(Type, Type),
    /// The value, and why it does not fit.
    Value(String, String),
}

/// The fields of `node.with` that do not fit, in the order of the schema. With `has_defaults`, absent top-level fields are
/// filled in.
pub(super) fn unfit<'a>(
    node: &'a Node,
    typing: &'a Typing<'a>,
    schema: &'a Value,
    has_defaults: bool,
) -> Vec<Unfit<'a>> {
    let mut search = Search { root: schema, node, typing, found: Vec::new() };
    search.within(node.with.as_ref().map_or(Given::Nothing, Given::of), schema, "", has_defaults);
    search.found
}

/// A part of a template.
#[derive(Clone, Copy)]
enum Given<'a> {
    /// An empty map.
    Nothing,
    Template(&'a Template),
    Value(&'a Value),
}

impl<'a> Given<'a> {
    fn of(template: &'a Template) -> Self {
        match template {
            Template::Value(value) => Self::Value(value),
            template => Self::Template(template),
        }
    }

    fn is_map(self) -> bool {
        matches!(self, Self::Nothing | Self::Template(Template::Map(_)) | Self::Value(Value::Object(_)))
    }

    fn get(self, key: &str) -> Option<Self> {
        match self {
            Self::Template(Template::Map(pairs)) => {
                pairs.iter().find(|(name, _)| **name == *key).map(|(_, value)| Self::of(value))
            }
            Self::Value(value) => value.get(key).map(Self::Value),
            Self::Template(_) | Self::Nothing => None,
        }
    }

    fn keys(self) -> Vec<&'a str> {
        match self {
            Self::Template(Template::Map(pairs)) => pairs.iter().map(|(name, _)| &**name).collect(),
            Self::Value(Value::Object(map)) => map.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn items(self) -> Vec<Self> {
        match self {
            Self::Template(Template::List(items)) => items.iter().map(Self::of).collect(),
            Self::Value(Value::Array(items)) => items.iter().map(Self::Value).collect(),
            _ => Vec::new(),
        }
    }
}

struct Search<'a> {
    root: &'a Value,
    node: &'a Node,
    typing: &'a Typing<'a>,
    found: Vec<Unfit<'a>>,
}

impl<'a> Search<'a> {
    /// Follows maps and lists of the template, which is at most 64 deep, so that it may recurse.
    fn within(&mut self, given: Given<'a>, schema: &'a Value, path: &str, has_defaults: bool) {
        let Some(schema) = resolved(self.root, schema) else { return };
        if !self.fits(given, schema, path) {
            return;
        }
        if let Some(schema) = schema.get("items") {
            for (index, item) in given.items().into_iter().enumerate() {
                self.within(item, schema, &format!("{path}[{index}]"), false);
            }
        }
        if !given.is_map() {
            return;
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let has_default = has_defaults && !schema["properties"][name]["default"].is_null();
            if given.get(name).is_none() && !has_default {
                self.found.push(Unfit { path: joined(path, name), by: None, why: Why::Missing });
            }
        }
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let mut properties: Vec<_> = properties.iter().collect();
        // A feature of `serde_json` decides about the order of its maps.
        properties.sort_unstable_by_key(|(name, _)| *name);
        if !is_open(schema) {
            let known: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
            let mut keys = given.keys();
            keys.sort_unstable();
            for key in keys.into_iter().filter(|key| !known.contains(key)) {
                let why = Why::Unknown(known.clone());
                self.found.push(Unfit { path: joined(path, key), by: None, why });
            }
        }
        for (name, schema) in properties {
            if let Some(given) = given.get(name) {
                self.within(given, schema, &joined(path, name), false);
            }
        }
    }

    /// Whether a value may fit, but for its parts.
    fn fits(&mut self, given: Given<'a>, schema: &'a Value, path: &str) -> bool {
        let (of, by) = match given {
            Given::Value(value) if !value.is_object() && !value.is_array() => {
                let problem = problem(schema, value);
                let fits = problem.is_none();
                let why = problem.map(|problem| Why::Value(short(value), problem));
                self.found.extend(why.map(|why| Unfit { path: path.to_owned(), by: None, why }));
                return fits;
            }
            Given::Value(value) => (Type::of(value), None),
            Given::Template(Template::Expression(expression)) => {
                (self.typing.of(self.node, expression), Some(expression))
            }
            Given::Template(Template::Text(_)) => (Type::TEXT, None),
            Given::Template(Template::List(_)) => (Type::LIST, None),
            Given::Nothing | Given::Template(Template::Map(_) | Template::Value(_)) => (Type::MAP, None),
        };
        let takes = Type::of_schema(schema);
        let fits = of.fits(takes);
        if !fits {
            self.found.push(Unfit { path: path.to_owned(), by, why: Why::Type(of, takes) });
        }
        fits
    }
}

/// Why a value without parts does not fit a schema.
fn problem(schema: &Value, value: &Value) -> Option<String> {
    // A part of a schema that refers to the rest of it cannot stand alone.
    if refers(schema) {
        let (of, takes) = (Type::of(value), Type::of_schema(schema));
        return (!of.fits(takes)).then(|| format!("it is no {takes}").replace("no a ", "no "));
    }
    let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).ok()?;
    validator.validate(value).err().map(|error| error.to_string())
}

/// Whether a schema, which is at most 64 deep, has a reference in it.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key("$ref") || map.contains_key("$dynamicRef") || map.values().any(refers)
        }
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
