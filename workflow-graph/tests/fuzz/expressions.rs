//! Expressions in a document: parsed, checked with the types of what they read, evaluated in a run, and explained.

use serde_json::{Value, json};

use crate::runs::try_text;
use crate::watchdog::Watchdog;
use crate::{INPUTS, TIME};

const WORDS: &str = "input input.n [ ] [0] [-1] ( ) , . .n ' \" \\ + - * / // % == < >= in not is and || ! if else len( \
    default( .upper() .get( __ ${ } : é";

const OPERANDS: &str = "input.n input.text input.list vars.v a a.n a.list a.text nodes.a nodes.a.visits nodes[\"a\"].data \
    visits a.none category confidence 0 1 -1 2.5 1e308 'x' \"y\" '' true False None 9223372036854775807 -9223372036854775808 \
    [] [1,2] ['a',None] (1,) a.list[0] a.list[-1] a.list[9] input.text[0]";

const OPERATORS: [&str; 20] = [
    "+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "and",
    "or", "&&", "||",
];

const FUNCTIONS: &str = "len str int float bool lower upper strip contains starts_with ends_with matches has default get \
    keys values min max sum round abs any all";

/// An expression that can be parsed, built from the bytes.
fn built(bytes: &mut dyn Iterator<Item = u8>, depth: u8) -> String {
    let mut next = || usize::from(bytes.next().unwrap_or_default());
    let chosen = |words: &'static str, number: usize| {
        let words: Vec<&str> = words.split_whitespace().collect();
        words[number % words.len()]
    };
    let form = if depth == 0 { 0 } else { next() % 8 };
    let number = next();
    match form {
        0 | 1 => chosen(OPERANDS, number).to_owned(),
        2 => format!("{}({})", chosen(FUNCTIONS, number), built(bytes, depth - 1)),
        3 => {
            let (one, other) = (built(bytes, depth - 1), built(bytes, depth - 1));
            format!("{}({one}, {other})", chosen(FUNCTIONS, number))
        }
        4 => format!("not {}", built(bytes, depth - 1)),
        5 => {
            let parts = [(); 3].map(|()| built(bytes, depth - 1));
            format!("({} if {} else {})", parts[0], parts[1], parts[2])
        }
        _ => {
            let (one, other) = (built(bytes, depth - 1), built(bytes, depth - 1));
            format!("({one} {} {other})", OPERATORS[number % OPERATORS.len()])
        }
    }
}

/// A document with the expression at one of the places that want different types.
fn native(source: &str, place: usize) -> Value {
    let node = match place % 3 {
        0 => json!({
            "value": {"whole": format!("${{ {source} }}"), "within": format!("<${{{source}}}>")},
            "set": {"v": format!("${{ {source} }}")},
        }),
        1 => json!({"value": 1, "next": [{"when": source, "to": "c"}, {"to": "end"}]}),
        _ => json!({"value": "${ item }", "for_each": source}),
    };
    let mut document = json!({
        "graph": "g",
        "input": {"type": "object", "properties": {
            "n": {"type": "integer"}, "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "number"}},
        }, "required": ["n", "text"]},
        "vars": {"v": 1},
        "start": "a",
        "limits": {"steps": 20, "items": 20},
        "nodes": {
            "a": {"value": {"n": 2, "list": [1, 2.5, {"k": "v"}], "text": "é"}, "next": "b"},
            "b": node,
            "c": {"value": "${ default(error.message, a.n) }"},
        },
    });
    let b = document["nodes"]["b"].as_object_mut().unwrap();
    b.insert("on_failure".into(), "c".into());
    b.entry("next").or_insert("c".into());
    document
}

fn hive(source: &str) -> Value {
    json!({
        "id": "h", "entry_node": "a",
        "nodes": [
            {"id": "a", "node_type": "function", "function": "f", "output_keys": ["category", "confidence"]},
            {"id": "b", "node_type": "function", "function": "f"},
        ],
        "edges": [{"source": "a", "target": "b", "condition": "conditional", "condition_expr": source}],
    })
}

fn try_source(source: &str) -> bool {
    let case = json!({
        "input": {"n": 3, "text": "x", "list": [1, 2]},
        "script": {"nodes": {"a": [{"data": {"category": "billing", "confidence": 0.5}}]}},
    });
    let documents = (0..3).map(|place| native(source, place)).chain([hive(source)]);
    // Each of them is tried.
    documents.filter(|document| try_text(&document.to_string(), None, &case)).count() > 0
}

/// G35, G36, G37
#[test]
fn any_text_is_refused_or_evaluated() {
    let watchdog = Watchdog::of("texts of expressions");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check
        .with_type::<Vec<u8>>()
        .for_each(|bytes| watchdog.watch(bytes, || try_source(&String::from_utf8_lossy(bytes))));
}

/// G35, G36, G37
#[test]
fn any_words_are_refused_or_evaluated() {
    let words: Vec<&str> = WORDS.split_whitespace().chain(OPERANDS.split_whitespace()).collect();
    let watchdog = Watchdog::of("words of expressions");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<Vec<u8>>().for_each(|bytes| {
        let most = bytes.first().map_or(0, |byte| 1 + usize::from(byte % 12));
        let chosen = bytes.iter().take(most).map(|byte| words[usize::from(*byte) % words.len()]);
        let source = chosen.collect::<Vec<_>>().join(" ");
        watchdog.watch(&source, || try_source(&source));
    });
}

/// G35, G36, G37
#[test]
fn what_can_be_parsed_is_refused_or_evaluated() {
    let watchdog = Watchdog::of("built expressions");
    let check = bolero::check!().with_iterations(2 * INPUTS).with_test_time(TIME);
    check.with_type::<Vec<u8>>().for_each(|bytes| {
        let source = built(&mut bytes.iter().copied(), 3);
        watchdog.watch(&source, || try_source(&source));
    });
}
