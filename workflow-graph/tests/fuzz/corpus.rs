//! The examples, their cases, and the parts that edits put into other places.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};
use workflow_graph::{BranchConflicts, BranchFailures, Format, HiveOptions, SwenyOptions};

use crate::pick;

const NAMES: [&str; 8] = [
    "draft-loop.yaml",
    "refund.yaml",
    "release-checks.yaml",
    "thumbnails.yaml",
    "sweny-triage.yaml",
    "sweny-notes.yaml",
    "hive-support.json",
    "hive-survey.json",
];

/// Keys that no example has.
const KEYS: &str = "format description vars output start limits steps items defaults timeout retry model judge_model \
    on_no_match function tool agent command human value graph workflow with reads requires ensure max_visits for_each set \
    on_failure next parallel join failures conflicts concurrency decide choices otherwise to when max id all guidance \
    check required path equals in matches called judge pass_when run stdin env parse ask reply expires file rules \
    background skills max_turns as fail_soft eval max_iterations inputs context_sources entry_points pause_nodes \
    isolation input_mapping node_type success_criteria sub_agents gcu memory";

/// Values that no example has.
const WORDS: &str = "end continue fail skip none auto all fail_all continue_others wait_all error last_wins first_wins \
    true false null ${ $${ ${} ${input} ${visits+1} ${error.message} ${joined.failed} ${1/0} 1/0 visits<3 [] {} 0s 1ms \
    99999999999d 0 -1 1e999 always on_success on_failure conditional llm_decide event_loop any:a[*].b a.b[*].c .* ( \
    ${'x'*9} ${nodes.x.visits} ${item} ${range(9)} ${[1,2,3]} é \u{0} \u{feff}";

/// An example as it is read, and as it is tried.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) documents: Vec<Value>,
    pub(crate) cases: Vec<Value>,
}

impl Example {
    fn of(name: &'static str, expected: &BTreeMap<String, Value>) -> Self {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let parts: Vec<&str> = text.split("\n---").collect();
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for (document, part) in documents.iter_mut().zip(parts) {
            bound(document, part);
        }
        let cases = expected[name].as_array().unwrap().clone();
        Self { name, text, documents, cases }
    }

    pub(crate) fn case(&self, number: u32) -> &Value {
        &self.cases[pick(number, self.cases.len())]
    }
}

/// Gives a native document the start that its order has, which maps lose here, and small limits.
fn bound(document: &mut Value, text: &str) {
    let Some(fields) =
        document.as_object_mut().filter(|fields| fields.get("graph").is_some_and(Value::is_string))
    else {
        return;
    };
    let nodes = fields["nodes"].as_object().unwrap().keys();
    let start = nodes.min_by_key(|id| text.find(&format!("\n  {id}:")).unwrap()).unwrap().clone();
    fields.entry("start").or_insert(json!(start));
    fields.entry("limits").or_insert(json!({"steps": 40, "items": 40}));
}

/// Everything that inputs are made of.
pub(crate) struct Corpus {
    pub(crate) examples: Vec<Example>,
    pub(crate) keys: Vec<String>,
    pub(crate) values: Vec<Value>,
}

impl Corpus {
    pub(crate) fn example(&self, number: u8) -> &Example {
        &self.examples[usize::from(number) % self.examples.len()]
    }

    pub(crate) fn key(&self, number: u32) -> String {
        self.keys[pick(number, self.keys.len())].clone()
    }

    pub(crate) fn value(&self, number: u32) -> Value {
        self.values[pick(number, self.values.len())].clone()
    }
}

pub(crate) fn corpus() -> &'static Corpus {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let text = std::fs::read_to_string(folder().join("expected.yaml")).unwrap();
        let expected = serde_saphyr::from_str(&text).unwrap();
        let examples: Vec<Example> = NAMES.into_iter().map(|name| Example::of(name, &expected)).collect();
        let mut keys: Vec<String> = KEYS.split_whitespace().map(str::to_owned).collect();
        let mut values: Vec<Value> = WORDS.split_whitespace().map(word).collect();
        for document in examples.iter().flat_map(|example| &example.documents) {
            parts(document, &mut keys, &mut values);
        }
        keys.sort_unstable();
        keys.dedup();
        Corpus { examples, keys, values }
    })
}

fn word(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// The keys and the values in a value.
fn parts(of: &Value, keys: &mut Vec<String>, values: &mut Vec<Value>) {
    match of {
        Value::Array(items) => items.iter().for_each(|item| parts(item, keys, values)),
        Value::Object(fields) => {
            for (key, value) in fields {
                keys.push(key.clone());
                parts(value, keys, values);
            }
        }
        _ => {}
    }
    values.push(of.clone());
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// A format to read with, or none where the keys of a document tell it.
pub(crate) fn format(number: u8) -> Option<Format> {
    let hive = |failures, conflicts| Format::Hive(HiveOptions::new().failures(failures).conflicts(conflicts));
    match number % 8 {
        0 => Some(Format::Native),
        1 => Some(Format::Sweny(SwenyOptions::new())),
        2 => Some(hive(BranchFailures::ContinueOthers, BranchConflicts::FirstWins)),
        3 => Some(hive(BranchFailures::WaitAll, BranchConflicts::Error)),
        _ => None,
    }
}
