//! Sources of SWEny documents: where they come from, and their hashes in results.

use serde_json::json;
use workflow_graph::{Document, Registry};

use super::play::{Noting, run_in};

// SW20
#[tokio::test]
async fn sources_are_read_before_the_run_and_its_result_has_their_hashes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
id: g
name: G
entry: a
rules: [Be brief., {file: rules.md}]
nodes:
  a: {name: A, instruction: ./task.md, context: {only: true, sources: [{inline: ./kept as it is}]}}
edges: []
";
    std::fs::write(folder.path().join("g.yaml"), text).unwrap();
    std::fs::write(folder.path().join("task.md"), "Write ${ input.x }.").unwrap();
    std::fs::write(folder.path().join("rules.md"), "Be kind.").unwrap();
    let document = Document::load(folder.path().join("g.yaml")).unwrap();
    std::fs::write(folder.path().join("task.md"), "Something else.").unwrap();

    let ran = run_in(&document, json!({}), Noting::new(&json!({})), Registry::new()).await;

    let task = ran.task("a");
    assert_eq!(task.instruction, "Write ${ input.x }.");
    assert_eq!(task.rules, ["Be brief.", "Be kind."]);
    assert_eq!(task.background, ["./kept as it is"]);
    let sources = serde_json::to_value(&ran.result.sources).unwrap();
    assert_eq!(
        sources,
        json!([
            {"place": "rules[0]", "hash": hash("Be brief.")},
            {"place": "rules[1]", "file": "rules.md", "hash": hash("Be kind.")},
            {"place": "nodes.a.instruction", "file": "./task.md", "hash": hash("Write ${ input.x }.")},
            {"place": "nodes.a.context[0]", "hash": hash("./kept as it is")},
        ])
    );
}

fn hash(text: &str) -> &'static str {
    match text {
        "Be brief." => "213c22ed7234eb11",
        "Be kind." => "5499befb38dbf3fc",
        "Write ${ input.x }." => "438e727c5c95ffd0",
        _ => "468eeb7592f7324e",
    }
}
