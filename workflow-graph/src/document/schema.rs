//! The native format as JSON Schema. It follows the readers of `native`; tests compare both over the examples.

use serde_json::{Value, json};

use super::native::{MOST_ITEMS, MOST_PARALLEL, MOST_STEPS, RESERVED};

pub(super) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A graph of workflow-graph",
        "type": "object",
        "required": ["graph", "nodes"],
        "additionalProperties": false,
        "properties": {
            "graph": {"$ref": "#/$defs/graphName", "description": "The name of the graph, unique in an engine."},
            "format": {"const": 1, "description": "The version of the format."},
            "description": {"type": "string"},
            "input": {"$ref": "#/$defs/schema", "description": "What a run is started with."},
            "vars": {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "description": "Variables and their first values.",
            },
            "output": {"$ref": "#/$defs/template", "description": "The result of a run; default: of its last node."},
            "start": {"$ref": "#/$defs/id", "description": "The first node; default: the first of `nodes`."},
            "limits": object(&json!({
                "steps": {"type": "integer", "minimum": 1, "maximum": MOST_STEPS, "default": 200},
                "time": duration(),
                "items": {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": 10_000},
            }), &[]),
            "defaults": object(&json!({
                "timeout": duration(),
                "retry": {"$ref": "#/$defs/retry"},
                "model": {"type": "string"},
                "judge_model": {"type": "string"},
                "on_no_match": on_no_match(),
            }), &[]),
            "nodes": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"$ref": "#/$defs/id"},
                "additionalProperties": {"$ref": "#/$defs/node"},
            },
        },
        "$defs": definitions(),
    })
}

fn definitions() -> Value {
    json!({
        "graphName": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9._-]{0,63}$"},
        "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"},
        "id": {"allOf": [{"$ref": "#/$defs/name"}, {"not": {"enum": RESERVED}}]},
        "target": {"anyOf": [{"$ref": "#/$defs/id"}, {"const": "end"}]},
        "duration": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"},
        "template": {"description": "Any value; `${ expression }` in its texts is replaced."},
        "text": {"type": "string", "description": "A template that is a text."},
        "texts": {"anyOf": [{"$ref": "#/$defs/text"}, {"type": "array", "items": {"$ref": "#/$defs/text"}}]},
        "names": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "expression": {"type": ["string", "boolean", "number"], "description": "An expression without `${ }`."},
        "schema": {"type": ["object", "boolean"], "description": "A JSON Schema."},
        "count": {"type": "integer", "minimum": 1},
        "retry": {"anyOf": [{"const": "none"}, object(&json!({
            "attempts": {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 3},
            "first": duration(),
            "factor": {"type": "number", "minimum": 1, "maximum": 1_000, "default": 2},
            "most": duration(),
            "jitter": {"type": "number", "minimum": 0, "maximum": 1},
        }), &[])]},
        "failures": {"enum": ["fail_all", "continue_others", "wait_all"], "default": "fail_all"},
        "node": node(),
        "agent": agent(),
        "command": command(),
        "check": check(),
        "checks": {"type": "array", "items": {"$ref": "#/$defs/check"}},
        "routes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/route"}},
        "route": {"anyOf": [{"$ref": "#/$defs/target"}, object(&json!({
            "to": {"$ref": "#/$defs/target"},
            "when": {"$ref": "#/$defs/expression"},
            "max": {"$ref": "#/$defs/count"},
            "id": {"type": "string", "minLength": 1},
        }), &["to"])]},
        "next": next(),
    })
}

fn node() -> Value {
    let mut node = object(
        &json!({
            "function": {"type": "string", "minLength": 1},
            "tool": {"type": "string", "minLength": 1},
            "agent": {"$ref": "#/$defs/agent"},
            "command": {"$ref": "#/$defs/command"},
            "human": object(&json!({
                "ask": {"$ref": "#/$defs/template"},
                "reply": {"$ref": "#/$defs/schema"},
                "expires": duration(),
            }), &["ask"]),
            "value": {"$ref": "#/$defs/template"},
            "graph": {"$ref": "#/$defs/graphName"},
            "workflow": object(&json!({
                "name": {"type": "string", "minLength": 1},
                "start": {"type": "string", "minLength": 1},
            }), &["name", "start"]),
            "description": {"type": "string"},
            "with": {"$ref": "#/$defs/template"},
            "reads": {"anyOf": [{"const": "all"}, {"$ref": "#/$defs/names"}], "default": "all"},
            "output": {"$ref": "#/$defs/schema"},
            "requires": {"anyOf": [{"$ref": "#/$defs/checks"}, object(&json!({
                "all": {"$ref": "#/$defs/checks"},
                "otherwise": {"enum": ["fail", "skip"], "default": "fail"},
            }), &["all"])]},
            "ensure": {"anyOf": [{"$ref": "#/$defs/checks"}, object(&json!({
                "all": {"$ref": "#/$defs/checks"},
                "retries": {"type": "integer", "minimum": 0, "maximum": 100, "default": 0},
                "guidance": {"$ref": "#/$defs/text"},
            }), &["all"])]},
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": duration(),
            "max_visits": {"$ref": "#/$defs/count"},
            "for_each": {"anyOf": [{"$ref": "#/$defs/expression"}, object(&json!({
                "in": {"$ref": "#/$defs/expression"},
                "as": {"anyOf": [{"$ref": "#/$defs/id"}, {"const": "item"}], "default": "item"},
                "concurrency": {"type": "integer", "minimum": 1, "default": 16},
                "failures": {"$ref": "#/$defs/failures"},
            }), &["in"])]},
            "set": {"type": "object", "additionalProperties": {"$ref": "#/$defs/template"}},
            "on_failure": {"anyOf": [
                {"const": "continue"}, {"$ref": "#/$defs/target"}, {"$ref": "#/$defs/routes"},
            ]},
            "next": {"$ref": "#/$defs/next"},
            "on_no_match": on_no_match(),
        }),
        &[],
    );
    node["oneOf"] = ["function", "tool", "agent", "command", "human", "value", "graph", "workflow"]
        .map(|kind| json!({"required": [kind]}))
        .into();
    node
}

fn agent() -> Value {
    let file = object(&json!({"file": {"type": "string", "minLength": 1}}), &["file"]);
    let agent = object(
        &json!({
            "instruction": {"anyOf": [{"$ref": "#/$defs/text"}, file]},
            "model": {"type": "string"},
            "tools": object(&json!({
                "allow": {"$ref": "#/$defs/names"},
                "deny": {"$ref": "#/$defs/names"},
            }), &[]),
            "skills": {"$ref": "#/$defs/names"},
            "max_turns": {"$ref": "#/$defs/count"},
            "rules": {"$ref": "#/$defs/texts"},
            "background": {"$ref": "#/$defs/texts"},
        }),
        &["instruction"],
    );
    json!({"anyOf": [{"$ref": "#/$defs/text"}, agent]})
}

fn command() -> Value {
    let run = json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/template"}});
    let map = object(
        &json!({
            "run": run,
            "stdin": {"$ref": "#/$defs/template"},
            "env": {"type": "object", "additionalProperties": {"$ref": "#/$defs/template"}},
            "parse": {"enum": ["json", "text"]},
        }),
        &["run"],
    );
    json!({"anyOf": [run, map]})
}

fn check() -> Value {
    let name = json!({"type": "string", "minLength": 1});
    let path = json!({"type": "string", "minLength": 1});
    let mut by_path = object(
        &json!({
            "name": name, "path": path, "equals": true, "in": {"type": "array"},
            "matches": {"type": "string", "maxLength": 1_000},
        }),
        &["name", "path"],
    );
    by_path["oneOf"] = ["equals", "in", "matches"].map(|test| json!({"required": [test]})).into();
    let mut called = object(
        &json!({
            "any": {"$ref": "#/$defs/names"}, "all": {"$ref": "#/$defs/names"}, "none": {"$ref": "#/$defs/names"},
        }),
        &[],
    );
    called["minProperties"] = 1.into();
    json!({"anyOf": [
        {"$ref": "#/$defs/expression"},
        object(&json!({"name": name, "check": {"$ref": "#/$defs/expression"}}), &["name", "check"]),
        object(&json!({"name": name, "required": {"type": "array", "items": path}}), &["name", "required"]),
        by_path,
        object(&json!({"name": name, "called": called}), &["name", "called"]),
        object(&json!({
            "name": name,
            "judge": {"$ref": "#/$defs/text"},
            "pass_when": {"type": ["string", "boolean"], "default": "yes"},
            "model": {"type": "string"},
        }), &["name", "judge"]),
    ]})
}

fn next() -> Value {
    let branch =
        object(&json!({"to": {"$ref": "#/$defs/id"}, "when": {"$ref": "#/$defs/expression"}}), &["to"]);
    let choice = object(&json!({"to": {"$ref": "#/$defs/target"}, "about": {"type": "string"}}), &["to"]);
    json!({"anyOf": [
        {"$ref": "#/$defs/target"},
        {"$ref": "#/$defs/routes"},
        object(&json!({
            "parallel": {
                "type": "array", "minItems": 1, "maxItems": MOST_PARALLEL,
                "items": {"anyOf": [{"$ref": "#/$defs/id"}, branch]},
            },
            "join": {"$ref": "#/$defs/id"},
            "failures": {"$ref": "#/$defs/failures"},
            "conflicts": {"enum": ["error", "last_wins", "first_wins"], "default": "error"},
            "concurrency": {"$ref": "#/$defs/count"},
        }), &["parallel"]),
        object(&json!({
            "decide": {"$ref": "#/$defs/text"},
            "choices": {
                "type": "array", "minItems": 1,
                "items": {"anyOf": [{"$ref": "#/$defs/target"}, choice]},
            },
            "otherwise": {"$ref": "#/$defs/target"},
        }), &["decide", "choices", "otherwise"]),
    ]})
}

/// A map with these keys and no others.
fn object(properties: &Value, required: &[&str]) -> Value {
    let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

fn duration() -> Value {
    json!({"$ref": "#/$defs/duration"})
}

fn on_no_match() -> Value {
    json!({"enum": ["fail", "end"], "default": "fail"})
}
