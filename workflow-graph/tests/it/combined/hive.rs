//! A document of Hive.

use workflow_graph::{Format, HiveOptions};

use super::{Mistake, every_combination, mistake, slip};

const SUPPORT: &str = r#"{
  "id": @0, "entry_node": @1, "conversation_mode": @2,
  "nodes": [
    {"id": "read", "node_type": @3, "max_retries": @4},
    {"id": "fork"},
    {"id": "left"}, {"id": "right"}, {"id": "meet"}, {"id": @5}@6
  ],
  @7: [
    {"source": "read", "target": "fork", "condition": "conditional", "condition_expr": @8},
    {"source": "fork", "target": "left"}, {"source": "fork", "target": "right"},
    {"source": "left", "target": "meet"}, {"source": "right", "target": @9},
    {"source": "meet", "target": @5}
  ]
}
"#;

const OF_SUPPORT: [Mistake; 10] = [
    mistake("bad-name", &[(r#""support""#, r#"«"7 support""#)]),
    slip("unknown-start", "read", &[(r#""read""#, r#"«"raed""#)]),
    slip("wrong-type", "isolated", &[(r#""isolated""#, r#"«"isolatd""#)]),
    slip("unsupported", "function", &[(r#""function""#, r#"«"functon""#)]),
    mistake("wrong-type", &[("2", "«-2")]),
    mistake("bad-name", &[(r#""done""#, r#"«"done!""#), (r#""done""#, r#""done!""#)]),
    mistake("unreachable-node", &[("", ", {\"id\": «\"lost\"}")]),
    slip("missing-key", "edges", &[(r#""edges""#, r#"«"edgse""#)]),
    mistake("bad-expression", &[(r#""ok""#, r#""ok «=""#)]),
    slip("unknown-node", "meet", &[(r#""meet""#, r#"«"mete""#)]),
];

// G3
#[test]
fn support_with_ten_mistakes() {
    every_combination(SUPPORT, &OF_SUPPORT, &Format::Hive(HiveOptions::new()));
}
