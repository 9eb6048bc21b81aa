//! Fields that a schema requires and a template lacks. Values that only a run knows are taken to be complete.

use serde_json::Value;

use crate::check::resolved;
use crate::document::template::Template;

/// The paths of the missing fields, in the order of the schema. With `has_defaults`, those of top-level fields are
/// filled in.
pub(super) fn missing(with: Option<&Template>, schema: &Value, has_defaults: bool) -> Vec<String> {
    let empty = Template::Value(Value::Object(serde_json::Map::new()));
    let given = Given::of(with.unwrap_or(&empty));
    let mut search = Search { root: schema, found: Vec::new() };
    search.within(given, schema, "", has_defaults);
    search.found
}

/// A part of a template.
#[derive(Clone, Copy)]
enum Given<'a> {
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
        matches!(self, Self::Template(Template::Map(_)) | Self::Value(Value::Object(_)))
    }

    fn get(self, key: &str) -> Option<Self> {
        match self {
            Self::Template(Template::Map(pairs)) => {
                pairs.iter().find(|(name, _)| **name == *key).map(|(_, value)| Self::of(value))
            }
            Self::Value(value) => value.get(key).map(Self::Value),
            Self::Template(_) => None,
        }
    }
}

struct Search<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl<'a> Search<'a> {
    /// Follows maps of the template, which is at most 64 deep, so that it may recurse.
    fn within(&mut self, given: Given<'_>, schema: &'a Value, path: &str, has_defaults: bool) {
        let Some(schema) = resolved(self.root, schema).filter(|_| given.is_map()) else { return };
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let has_default = has_defaults && !schema["properties"][name]["default"].is_null();
            if given.get(name).is_none() && !has_default {
                self.found.push(joined(path, name));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut properties: Vec<_> = properties.into_iter().flatten().collect();
        // A feature of `serde_json` decides about the order of its maps.
        properties.sort_unstable_by_key(|(name, _)| *name);
        for (name, schema) in properties {
            if let Some(given) = given.get(name) {
                self.within(given, schema, &joined(path, name), false);
            }
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
