//! The schema of an input before its defaults: it holds for a map exactly if the document's schema holds for the map with its
//! defaults.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::{Draft, PatternOptions};
use serde_json::{Map, Value, json};

use super::embed;

/// The place of the document's schema among the definitions.
const ORIGINAL: &str = "#/$defs/input";

/// The most parts that are made anew.
const MOST_PARTS: usize = 256;

/// The keywords that look at each property on its own.
const BY_PROPERTY: [&str; 4] = ["properties", "patternProperties", "additionalProperties", "propertyNames"];

/// A schema, and the definitions to which it refers.
pub(super) struct Filled {
    pub(super) input: Value,
    pub(super) definitions: Map<String, Value>,
}

/// The schema before the defaults. Nothing if it cannot be found, for schemas that name their parts or count properties,
/// for example.
pub(super) fn schema(schema: &Value, draft: Draft, defaults: &Map<String, Value>) -> Option<Filled> {
    if !embed::is_plain(schema) {
        return None;
    }
    let original = embed::refers(schema).then(|| embed::moved(schema, ORIGINAL));
    let mut parts =
        Parts { root: schema, original, draft, defaults, made: 0, names: BTreeMap::new(), open: Vec::new() };
    let input = parts.part(schema)?;
    let mut definitions = Map::new();
    // A part refers to further ones, so that their depth is no depth of calls.
    while let Some(pointer) = parts.open.pop() {
        let name = parts.names.get(pointer)?.clone();
        let part = parts.part(parts.root.pointer(pointer)?)?;
        definitions.insert(name, part);
    }
    definitions.extend(parts.original.map(|original| ("input".to_owned(), without_dialect(original))));
    Some(Filled { input, definitions })
}

struct Parts<'a> {
    root: &'a Value,
    /// The document's schema as a definition, if anything refers to it.
    original: Option<Value>,
    draft: Draft,
    defaults: &'a Map<String, Value>,
    made: usize,
    /// The definitions of parts, by their pointers in the document's schema.
    names: BTreeMap<&'a str, String>,
    open: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    /// The same for a part that looks at the map itself.
    fn part(&mut self, schema: &'a Value) -> Option<Value> {
        let Value::Object(known) = schema else { return Some(schema.clone()) };
        self.made += 1;
        if self.made > MOST_PARTS {
            return None;
        }
        // Old drafts ignore everything beside a reference.
        if self.is_old()
            && let Some(reference) = known.get("$ref")
        {
            return Some(json!({ "$ref": self.reference(reference)? }));
        }
        self.is_known(known).then_some(())?;
        let mut part = Map::new();
        let mut required: BTreeSet<&str> = self.lacking(known)?;
        required.extend(names(known.get("required")).filter(|name| !self.defaults.contains_key(*name)));
        let mut all = Vec::new();
        for (key, value) in known {
            let value = match (&**key, value) {
                ("required" | "$schema" | "$defs" | "definitions" | "minProperties", _) => continue,
                ("$ref", reference) => self.reference(reference)?.into(),
                ("not" | "if" | "then" | "else", schema) => self.part(schema)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().map(|schema| self.part(schema)).collect::<Option<Value>>()?
                }
                ("dependencies", Value::Object(of)) => {
                    let before = all.len();
                    let left = self.dependencies(of, &mut required, &mut all)?;
                    // In new drafts this keyword evaluates no properties, and nor does `not`.
                    for part in &mut all[before..] {
                        *part = json!({ "not": { "not": part.take() } });
                    }
                    left
                }
                ("dependentRequired" | "dependentSchemas", Value::Object(of)) if self.is_new() => {
                    self.dependencies(of, &mut required, &mut all)?
                }
                (key, value) => {
                    // As a keyword of its schema, so that data stays as it is.
                    let keyword = Value::from_iter([(key, value.clone())]);
                    embed::moved(&keyword, ORIGINAL)[key].take()
                }
            };
            part.insert(key.clone(), value);
        }
        if !required.is_empty() {
            part.insert("required".into(), Vec::from_iter(required).into());
        }
        if !all.is_empty() {
            match part.entry("allOf").or_insert_with(|| json!([])) {
                Value::Array(known) => known.extend(all),
                _ => return None,
            }
        }
        Some(Value::Object(part))
    }

    /// Whether each keyword can hold for a map that lacks defaults.
    fn is_known(&self, schema: &Map<String, Value>) -> bool {
        let is_map = |value: &Value| value.is_object();
        let compares = schema.get("const").is_some_and(is_map)
            || schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(is_map));
        // The defaults alone are as many as that.
        let counts = schema.contains_key("maxProperties")
            || schema.get("minProperties").is_some_and(|least| {
                least
                    .as_u64()
                    .and_then(|least| usize::try_from(least).ok())
                    .is_none_or(|least| least > self.defaults.len())
            });
        // A default that no keyword here looks at is left over.
        let has_all = || {
            let own = schema.get("properties").and_then(Value::as_object);
            own.is_some_and(|own| self.defaults.keys().all(|name| own.contains_key(name)))
        };
        let is_left_over = schema.contains_key("unevaluatedProperties") && !has_all();
        !compares && !counts && !is_left_over
    }

    /// The properties whose defaults do not fit: they have to be given.
    fn lacking(&self, schema: &Map<String, Value>) -> Option<BTreeSet<&'a str>> {
        let own = schema.iter().filter(|(key, _)| BY_PROPERTY.contains(&&***key));
        let mut check: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        if check.is_empty() {
            return Some(BTreeSet::new());
        }
        if self.original.is_some() {
            let Value::Object(moved) = embed::moved(&Value::Object(check), ORIGINAL) else { return None };
            check = moved;
            check.insert("$defs".into(), json!({ "input": self.original }));
        }
        check.extend(self.root.get("$schema").map(|dialect| ("$schema".to_owned(), dialect.clone())));
        let check = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .build(&Value::Object(check))
            .ok()?;
        let lacks = |(name, default): (&String, &Value)| {
            !check.is_valid(&Value::Object(Map::from_iter([(name.clone(), default.clone())])))
        };
        Some(self.defaults.iter().filter(|entry| lacks(*entry)).map(|(name, _)| &**name).collect())
    }

    /// What depends on the presence of properties. A property with a default is always there.
    fn dependencies(
        &mut self,
        of: &'a Map<String, Value>,
        required: &mut BTreeSet<&'a str>,
        all: &mut Vec<Value>,
    ) -> Option<Value> {
        let mut left = Map::new();
        for (name, value) in of {
            let is_there = self.defaults.contains_key(name);
            match value {
                Value::Array(_) => {
                    let needed = names(Some(value)).filter(|name| !self.defaults.contains_key(*name));
                    let needed: Vec<&str> = needed.collect();
                    if is_there {
                        required.extend(needed);
                    } else if !needed.is_empty() {
                        left.insert(name.clone(), needed.into());
                    }
                }
                schema => {
                    let part = self.part(schema)?;
                    if is_there {
                        // Other values than maps have no properties.
                        all.push(json!({ "anyOf": [{ "not": { "type": "object" } }, part] }));
                    } else {
                        left.insert(name.clone(), part);
                    }
                }
            }
        }
        Some(Value::Object(left))
    }

    /// The reference to the part to which this one leads.
    fn reference(&mut self, reference: &'a Value) -> Option<String> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        // An encoded pointer is not worth a decoder.
        if pointer.contains('%') || self.root.pointer(pointer).is_none() {
            return None;
        }
        let next = self.names.len() + 1;
        let name = self.names.entry(pointer).or_insert_with(|| {
            self.open.push(pointer);
            format!("filled-{next}")
        });
        Some(format!("#/$defs/{name}"))
    }

    fn is_old(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    fn is_new(&self) -> bool {
        !self.is_old()
    }
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The root says which dialect it is.
fn without_dialect(mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.remove("$schema");
    }
    schema
}
