//! Bounds of documents, and documents as large as they may be.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::json;
use workflow_graph::{Code, Document};

use super::support::problems;

/// A chain of nodes, each with four further routes to nodes ahead.
fn large(nodes: usize, routes: usize) -> String {
    let mut text = String::from("graph: g\nnodes:\n");
    for node in 0..nodes {
        write!(text, "  n{node}:\n    value: {node}\n    next:\n").unwrap();
        for route in (1..routes).rev() {
            let to = (node + 1 + route * 7).min(nodes);
            if to < nodes {
                writeln!(text, "      - {{to: n{to}, when: input.x == {route}}}").unwrap();
            }
        }
        let next = if node + 1 < nodes { format!("n{}", node + 1) } else { "end".to_owned() };
        writeln!(text, "      - {next}").unwrap();
    }
    text
}

/// G3
#[test]
fn ten_thousand_nodes_and_fifty_thousand_routes_load() {
    assert_eq!(problems(&large(10_000, 5)), "");
}

/// G3
#[test]
fn more_nodes_are_too_large() {
    let text = large(10_001, 1);
    expect![[r#"
        g.yaml:3:3: error[too-large]: the graph has 10001 nodes, and at most 10000 are allowed; move parts to graphs of their own
    "#]].assert_eq(&problems(&text));
}

/// G3
#[test]
fn more_routes_are_too_large() {
    let text = large(10_000, 6);
    expect![[r#"
        g.yaml:2:1: error[too-large]: the graph has 59890 routes, and at most 50000 are allowed; move parts to graphs of their own
    "#]].assert_eq(&problems(&text));
}

/// G3
#[test]
fn ten_thousand_branches_within_each_other_are_too_deep() {
    let mut text = String::from("graph: g\nnodes:\n");
    for node in 0..5_000 {
        writeln!(text, "  n{node}: {{value: 1, next: {{parallel: [n{}, m{node}]}}}}", node + 1).unwrap();
        writeln!(text, "  m{node}: {{value: 1}}").unwrap();
    }
    text.push_str("  n5000: {value: 1}\n");
    // One node too many besides.
    let text = text.replace("  m0: {value: 1}\n", "").replace(", m0]", ", m1]");
    let found = Document::parse(&text, "g.yaml").unwrap_err();
    assert!(found.problems.iter().any(|problem| problem.code == Code::TooLarge), "{found}");
}

/// G8
#[test]
fn sixty_four_branches_are_allowed_and_no_more() {
    let nodes = |count: usize| {
        let ids: Vec<String> = (0..count).map(|node| format!("n{node}")).collect();
        let mut text =
            format!("graph: g\nnodes:\n  s: {{value: 1, next: {{parallel: [{}]}}}}\n", ids.join(", "));
        for id in &ids {
            writeln!(text, "  {id}: {{value: 1, next: j}}").unwrap();
        }
        text + "  j: {value: 1}\n"
    };
    assert_eq!(problems(&nodes(64)), "");
    expect![[r#"
        g.yaml:3:34: error[too-large]: the node has 65 branches, and at most 64 are allowed; use `for_each`, or nest branches
    "#]].assert_eq(&problems(&nodes(65)));
}

/// G3
#[test]
fn values_are_at_most_sixty_four_deep() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("graph: g\nnodes: {{a: {{value: {open}{close}}}}}\n")
    };
    assert_eq!(problems(&nested(61)), "");
    expect![[r#"
        g.yaml:2:81: error[too-large]: lists and maps are nested more than 64 deep; nest them less deeply
    "#]]
    .assert_eq(&problems(&nested(62)));
    // Deeper than the parser itself would go, and as a block.
    assert!(problems(&nested(100_000)).contains("error["));
    assert!(problems(&"- ".repeat(100_000)).contains("error["));
}

/// G3
#[test]
fn a_file_has_at_most_eight_mebibytes() {
    let comment = |length: usize| format!("graph: g\nnodes: {{a: {{value: 1}}}}\n#{}", "x".repeat(length));
    let head = comment(0).len();
    assert_eq!(problems(&comment((8 << 20) - head)), "");
    expect![[r#"
        g.yaml:1:1: error[too-large]: the file has more than the 8388608 bytes that are read; split it into several documents
    "#]].assert_eq(&problems(&comment((8 << 20) - head + 1)));
}

/// G4
#[test]
fn aliases_that_multiply_stop_at_a_budget() {
    let mut text =
        String::from("graph: g\nnodes: {a: {value: 1}}\nvars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        let items = vec![alias; 10].join(", ");
        writeln!(text, "  a{level}: &a{level} [{items}]").unwrap();
    }
    expect![[r#"
        g.yaml:9:11: error[too-large]: the file has more than 2000000 values; split it, or use fewer aliases
    "#]]
    .assert_eq(&problems(&text));
}

/// G4
#[test]
fn a_long_text_is_not_copied_without_end() {
    let long = "x".repeat(1 << 20);
    let aliases = vec!["*long"; 100].join(", ");
    let text =
        format!("graph: g\nnodes: {{a: {{value: 1}}}}\nvars: {{long: &long {long}, all: [{aliases}]}}\n");
    let found = problems(&text);
    assert!(found.contains("error[too-large]: aliases copy more than"), "{found}");
}

/// G3
#[test]
fn problems_beyond_a_thousand_are_counted() {
    let mut text = String::from("graph: g\nnodes:\n");
    for node in 0..3_000 {
        writeln!(text, "  n{node}: {{value: 1, next: m{node}}}").unwrap();
    }
    let found = Document::parse(&text, "g.yaml").unwrap_err();
    assert_eq!(found.problems.len(), 1_001);
    assert_eq!(found.problems[1_000].message, "4999 further problems are not listed");
}

/// G3
#[test]
fn ten_thousand_reads_of_all_nodes_load() {
    let mut text = String::from("graph: g\nvars: {v: 0}\nnodes:\n");
    for node in 0..10_000 {
        let (next, before) = (node + 1, node / 2);
        writeln!(
            text,
            "  n{node}:\n    value: ${{ n{before} + vars.v + nodes.n{before}.visits + input.x }}\n    set: {{v: {node}}}"
        )
        .unwrap();
        writeln!(text, "    max_visits: 2\n    on_failure: n{}\n    next: n{}", node / 3, next % 10_000)
            .unwrap();
    }
    let document = Document::parse(&text, "g.yaml").unwrap();
    assert!(document.warnings().iter().all(|problem| problem.code == Code::MaybeMissing));
}

/// G3
#[test]
fn fifty_thousand_wrong_names_are_refused() {
    let mut text = String::from("graph: g\nnodes:\n");
    for node in 0..10_000 {
        let wrong = ["x", "y", "z"].map(|name| format!("{name}{node}"));
        writeln!(
            text,
            "  n{node}: {{value: ['${{ {} }}', '${{ {} }}', '${{ {} }}'], next: w{node}}}",
            wrong[0], wrong[1], wrong[2]
        )
        .unwrap();
    }
    let error = Document::parse(&text, "g.yaml").unwrap_err();
    assert_eq!(error.problems.last().unwrap().message, "48999 further problems are not listed");
}

/// G3
#[test]
fn a_text_of_many_expressions_is_read_or_refused() {
    let many = |expression: &str| {
        let text = format!("${{{expression}}} ").repeat(200_000);
        format!("graph: g\nnodes: {{a: {{value: \"{text}\"}}}}\n")
    };
    assert_eq!(problems(&many("1")), "");
    assert!(problems(&many("x")).contains("199000 further problems"));
    assert!(problems(&many("")).contains("199000 further problems"));
}

/// G3
#[test]
fn a_schema_whose_references_multiply_is_read() {
    let mut text = String::from("graph: g\ninput:\n  $ref: '#/$defs/d0'\n  $defs:\n");
    for level in 0..40 {
        let next = format!("{{$ref: '#/$defs/d{}'}}", level + 1);
        writeln!(text, "    d{level}: {{allOf: [{next}, {next}], properties: {{a: {next}}}}}").unwrap();
    }
    text.push_str("    d40: {type: object}\nnodes: {a: {value: '${ default(input.a.b, 0) }'}}\n");
    assert_eq!(problems(&text), "");
}

/// G8
#[test]
fn thousands_of_parallel_nodes_in_a_row_load() {
    let mut text = String::from("graph: g\nnodes:\n");
    for group in 0..2_500 {
        writeln!(text, "  p{group}: {{value: 1, next: {{parallel: [a{group}, b{group}]}}}}").unwrap();
        writeln!(text, "  a{group}: {{value: 1, next: j{group}}}\n  b{group}: {{value: 1, next: j{group}}}")
            .unwrap();
        let next = if group < 2_499 { format!("p{}", group + 1) } else { "end".to_owned() };
        writeln!(text, "  j{group}: {{value: '${{ a{group} + b{group} + a0 }}', next: {next}}}").unwrap();
    }
    assert_eq!(problems(&text), "");
}

/// The limit of time of a document holds for a run that the engine alone starts, and a shorter one goes before it.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_document_holds_for_runs_of_the_engine() {
    let text = "graph: g\nlimits: {time: 10s}\nnodes: {a: {function: f}}\n";
    let script = json!({"nodes": {"a": [{"data": 1, "after": "1h"}]}});
    for (of_caller, expected) in [(None, 10), (Some(3), 3), (Some(30), 10)] {
        let engine =
            workflow_core::Engine::builder().workflows(super::playing::workflows(text, script.clone()));
        let engine = engine.clock(workflow_testkit::VirtualClock::new()).build().unwrap();
        let mut options = workflow_core::RunOptions::new();
        if let Some(seconds) = of_caller {
            options = options.timeout(std::time::Duration::from_secs(seconds));
        }
        let run = engine.start_json("g", "graph.input", json!({"input": {}}), options).await.unwrap();
        match run.outcome_any().await {
            Err(workflow_core::RunError::TimedOut { after, .. }) => assert_eq!(after.as_secs(), expected),
            other => panic!("{other:?}"),
        }
    }
}
