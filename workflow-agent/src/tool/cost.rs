//! The cost of a check before it is made. A schema of a few lines can double the work with each level of its value, and schemas
//! come from servers. The count has one entry for each schema and value that meet, so it is fast where the check is not.

use std::collections::HashMap;

use serde_json::Value;

/// The most schemas that may meet a value in one check, each time counted.
pub(crate) const MOST: u64 = 1_000_000;
/// The most pairs of schema and value that are counted.
const PAIRS: usize = 200_000;
/// The count of one search of a pattern. Each has a bound of its own: see `check`.
const PATTERN: u64 = 20;
/// The deepest that schemas and values may nest together.
const DEPTH: usize = 500;

/// The number of schemas that meet a value or its parts when `value` is checked by `schema`: at most this many, and none
/// if there are more than [`MOST`].
pub(crate) fn of(schema: &Value, value: &Value) -> Option<u64> {
    within(schema, value, MOST)
}

/// The same with another bound. The count itself takes at most as many steps, and [`PAIRS`] at most.
pub(crate) fn within(schema: &Value, value: &Value, most: u64) -> Option<u64> {
    Count { root: schema, most, steps: 0, counted: HashMap::new() }.of(schema, value, 0)
}

struct Count<'a> {
    root: &'a Value,
    most: u64,
    /// Schemas that met a value so far, those of a pair that was counted before left out.
    steps: u64,
    /// By the addresses of schema and value, which stay where they are. A pair that is being counted has nothing yet.
    counted: HashMap<(usize, usize), Option<u64>>,
}

impl<'a> Count<'a> {
    fn of(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Option<u64> {
        let Value::Object(keywords) = schema else { return Some(1) };
        let own = 1 + keywords.len() as u64;
        self.steps = self.steps.saturating_add(own);
        if self.steps > self.most {
            return None;
        }
        if !keywords.iter().any(|(key, value)| applies(key, value)) {
            return Some(own);
        }
        let pair = (address(schema), address(value));
        if let Some(counted) = self.counted.get(&pair) {
            // One that is being counted leads to itself, and its check would have no end.
            return *counted;
        }
        if depth > DEPTH || self.counted.len() >= PAIRS {
            return None;
        }
        self.counted.insert(pair, None);
        // Keywords about what no other keyword evaluated evaluate the others once more.
        let times = 1 + u64::from(keywords.keys().any(|key| key.starts_with("unevaluated")));
        let mut total = own;
        for (key, keyword) in keywords {
            total = total.checked_add(self.of_keyword(key, keyword, (value, times), depth + 1)?)?;
            if total > self.most {
                return None;
            }
        }
        self.counted.insert(pair, Some(total));
        Some(total)
    }

    fn of_keyword(
        &mut self,
        key: &str,
        keyword: &'a Value,
        (value, times): (&'a Value, u64),
        depth: usize,
    ) -> Option<u64> {
        match (key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                let target = self.target(keyword.as_str()?)?;
                self.of(target, value, depth)?.checked_mul(times)
            }
            ("allOf" | "anyOf" | "oneOf", _) => {
                self.sum(keyword.as_array()?.iter().map(|schema| (schema, value)), depth)?.checked_mul(times)
            }
            ("not" | "if" | "then" | "else", _) => self.of(keyword, value, depth)?.checked_mul(times),
            ("dependentSchemas" | "dependencies", Value::Object(_)) => {
                let schemas = keyword.as_object()?.values();
                self.sum(schemas.map(|schema| (schema, value)), depth)?.checked_mul(times)
            }
            ("properties", Value::Object(fields)) => {
                let schemas = keyword.as_object()?;
                self.sum(fields.iter().filter_map(|(name, field)| Some((schemas.get(name)?, field))), depth)
            }
            ("patternProperties", Value::Object(fields)) => {
                let searches = (keyword.as_object()?.len() as u64).checked_mul(fields.len() as u64)?;
                let mut total = searches.checked_mul(PATTERN)?;
                for schema in keyword.as_object()?.values() {
                    total =
                        total.checked_add(self.sum(fields.values().map(|field| (schema, field)), depth)?)?;
                }
                Some(total)
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Object(fields)) => {
                self.sum(fields.values().map(|field| (keyword, field)), depth)
            }
            // A name stands for each of them: names have no parts.
            ("propertyNames", Value::Object(fields)) => {
                self.of(keyword, &Value::Null, depth)?.checked_mul(fields.len() as u64)
            }
            ("prefixItems", Value::Array(items)) => self.sum(keyword.as_array()?.iter().zip(items), depth),
            ("items", Value::Array(items)) if keyword.is_array() => {
                self.sum(keyword.as_array()?.iter().zip(items), depth)
            }
            ("items" | "contains" | "additionalItems" | "unevaluatedItems", Value::Array(items)) => {
                self.sum(items.iter().map(|item| (keyword, item)), depth)
            }
            ("pattern", Value::String(_)) => Some(PATTERN),
            // Each item may be compared with each choice.
            ("enum", _) => Some(keyword.as_array().map_or(0, Vec::len) as u64),
            _ => Some(0),
        }
    }

    fn sum(&mut self, pairs: impl Iterator<Item = (&'a Value, &'a Value)>, depth: usize) -> Option<u64> {
        let mut total = 0_u64;
        for (schema, value) in pairs {
            total = total.checked_add(self.of(schema, value, depth)?)?;
            if total > self.most {
                return None;
            }
        }
        Some(total)
    }

    /// The schema that a reference leads to: the root, a pointer, or an anchor.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let (_, fragment) = reference.split_once('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decoded(fragment));
        }
        anchored(self.root, fragment, 0)
    }
}

/// Whether a keyword leads to other schemas, or to more than one comparison.
fn applies(key: &str, keyword: &Value) -> bool {
    match key {
        "required" | "$defs" | "definitions" | "default" | "examples" | "const" => false,
        "enum" => keyword.as_array().is_some_and(|choices| choices.len() > 1),
        "$ref" | "$dynamicRef" | "$recursiveRef" | "pattern" => true,
        _ => keyword.is_object() || keyword.is_array(),
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// The fragment of an address without `%XX`.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn anchored<'a>(schema: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    let is_named = |key| schema.get(key).and_then(Value::as_str) == Some(name);
    if is_named("$anchor") || is_named("$dynamicAnchor") {
        return Some(schema);
    }
    let inner: Vec<&Value> = match schema {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => return None,
    };
    inner.into_iter().filter(|_| depth < DEPTH).find_map(|inner| anchored(inner, name, depth + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::of;

    /// A10
    #[test]
    fn the_cost_of_ordinary_arguments_is_a_few_schemas_for_each_part() {
        let schema = json!({"type": "object", "properties": {"at": {"type": "array", "items": {"$ref": "#/$defs/point"}}},
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}}});
        let value = json!({"at": vec![json!({"x": 1}); 100]});
        assert!((500..2_000).contains(&of(&schema, &value).unwrap()));
    }

    /// A10
    #[test]
    fn a_search_of_a_pattern_counts_more_than_a_comparison() {
        let words = json!(vec!["word"; 60_000]);
        assert!(of(&json!({"items": {"type": "string"}}), &words).is_some());
        assert_eq!(of(&json!({"items": {"type": "string", "pattern": "(?=w)w"}}), &words), None);
    }

    /// A10
    #[test]
    fn doubling_and_endless_schemas_have_no_cost_within_the_bound() {
        let mut definitions = json!({ "d0": { "type": "string" } });
        for level in 1..40 {
            let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            definitions[format!("d{level}")] = json!({ "anyOf": [below, below] });
        }
        let doubling = json!({"properties": {"a": {"$ref": "#/$defs/d39"}}, "$defs": definitions});
        assert_eq!(of(&doubling, &json!({"a": 1})), None);
        assert!(of(&doubling, &json!({"b": 1})).is_some());

        let node =
            json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let deep = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
        assert!(of(&node, &deep(3)).is_some());
        assert_eq!(of(&node, &deep(60)), None);
        assert_eq!(of(&json!({"$ref": "#"}), &Value::Null), None);
        assert_eq!(of(&json!({"allOf": [{"$ref": "#/$defs/none"}]}), &Value::Null), None);
    }
}
