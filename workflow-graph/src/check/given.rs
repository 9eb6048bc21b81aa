//! The input that a node gives beside the schema of its taker: fields that are missing or unknown, and values that can never
//! fit. Values that only a run knows are taken to be complete, and to fit where their type may.

use std::rc::Rc;

use jsonschema::PatternOptions;
use serde_json::Value;

use super::shape::{is_open, resolved};
use super::typing::Typing;
use crate::document::Source;
use crate::document::model::{Name, Node};
use crate::document::native::schema::refers;
use crate::document::template::{Expression, Template};
use crate::expression::{Type, short};
use crate::problem::Code;
use crate::problem::sink::Problems;

/// The most fields that a remedy lists.
const LISTED: usize = 100;

/// The function or graph that takes the input of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taker<'a> {
    /// The word for it.
    pub(crate) kind: &'static str,
    pub(crate) name: &'a Name,
    pub(crate) schema: &'a Value,
    /// Whether absent top-level fields with a default are filled in.
    pub(crate) has_defaults: bool,
}

/// `missing-input`, `unknown-field` and `type-mismatch`: the input of a node beside the schema of its taker.
pub(crate) fn check(
    node: &Node,
    typing: &Typing<'_>,
    taker: Taker<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) {
    let Taker { kind, name, schema, has_defaults } = taker;
    let (id, taker) = (&node.id.value, format!("the {kind} `{}`", name.value));
    for Unfit { path, by, why } in unfit(node, typing, schema, has_defaults) {
        if problems.is_full() {
            return;
        }
        let field = path.split(['.', '[']).next().unwrap_or_default();
        let stated = node.with_at.iter().find(|(known, _)| **known == *field).map(|(_, at)| *at);
        let at = match (by, stated) {
            (Some(expression), _) => expression.locate(source, 0, problems),
            (None, stated) => stated.unwrap_or(name.at),
        };
        let part = if path.is_empty() { "its input".to_owned() } else { format!("`{path}`") };
        match why {
            Why::Missing => {
                let message = format!("`{id}` gives no {part}, which {taker} requires");
                problems.add(Code::MissingInput, name.at, message, format!("add {part} to `with`"));
            }
            Why::Unknown(known) => {
                let message = format!("`{id}` gives {part}, and {taker} has no such field");
                let otherwise = || {
                    let names: Vec<String> =
                        known.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
                    let more = known.len().saturating_sub(LISTED);
                    match &*names {
                        [] => "remove it".to_owned(),
                        names if more == 0 => format!("remove it; the fields are {}", names.join(", ")),
                        names => format!("remove it; the fields are {} and {more} more", names.join(", ")),
                    }
                };
                let written = path.rsplit('.').next().unwrap_or_default();
                problems.add_unknown(
                    Code::UnknownField,
                    at,
                    message,
                    written,
                    known.iter().copied(),
                    otherwise,
                );
            }
            Why::Type(of, wanted) => {
                let message = format!("`{id}` gives {of} as {part}, and {taker} takes {wanted} there");
                problems.add(Code::TypeMismatch, at, message, "convert it, or correct the schema");
            }
            Why::Value(value, problem) => {
                let message =
                    format!("`{id}` gives {value} as {part}, which {taker} does not take: {problem}");
                problems.add(Code::TypeMismatch, at, message, "correct the value, or the schema");
            }
        }
    }
}

/// A field that does not fit. Its path is empty for the input as a whole.
#[derive(Debug)]
struct Unfit<'a> {
    path: String,
    /// The expression that stands for the value, if one does.
    by: Option<&'a Expression>,
    why: Why<'a>,
}

#[derive(Debug)]
enum Why<'a> {
    Missing,
    /// The schema has these fields beside it.
    Unknown(Rc<[&'a str]>),
    /// The type of the value, and those that fit.
    Type(Type, Type),
    /// The value, and why it does not fit.
    Value(String, String),
}

/// The fields of `node.with` that do not fit, in the order of the schema. With `has_defaults`, absent top-level fields are
/// filled in.
fn unfit<'a>(
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
            let known: Rc<[&str]> = properties.iter().map(|(name, _)| name.as_str()).collect();
            let mut keys = given.keys();
            keys.sort_unstable();
            for key in keys.into_iter().filter(|key| known.binary_search(key).is_err()) {
                let why = Why::Unknown(Rc::clone(&known));
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

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
