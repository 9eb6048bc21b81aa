//! A document of SWEny.

use workflow_graph::{Format, SwenyOptions};

use super::{Mistake, every_combination, mistake, slip};

const TRIAGE: &str = r#"id: triage
name: Triage
entry: gather
@0: []
inputs: {repo: {type: @1}, days: {type: number, default: @2}}
nodes:
  gather:
    name: Gather
    instruction: Gather.
    @3: 5
    eval:
      - {name: found, kind: value, rule: {output_required: [issues]}}
      - {name: @4, kind: judge, rubric: Good?}
  @5rank: {name: Rank, instruction: Rank., requires: {output_required: [@6.issues]}}
  create: {name: Create, instruction: Create., eval_policy: @7}
  skip: {name: Skip, instruction: Skip.}
edges:
  - {from: gather, to: rank}
  - {from: rank, to: @8, when: it is new}
  - {from: rank, to: skip}
  - {from: create, to: rank, when: again@5}
  - {from: gather, to: create, when: 'it is new'}
  - @9}
"#;

const OF_TRIAGE: [Mistake; 10] = [
    mistake("legacy-key", &[("rules", "«verify")]),
    slip("wrong-type", "string", &[("string", "«sting")]),
    mistake("bad-schema", &[("7", "«seven")]),
    slip("unknown-key", "max_turns", &[("max_turns", "«max_turn")]),
    mistake("duplicate-key", &[("good", "«found")]),
    mistake("unbounded-cycle", &[("", "«"), (", max_iterations: 2", "")]),
    slip("unknown-node", "gather", &[("gather", "«gathr")]),
    mistake("unsupported", &[("all_pass", "«any_pass")]),
    slip("unknown-node", "create", &[("create", "«creat")]),
    mistake(
        "ambiguous-routes",
        &[("{from: skip, to: create, when: ok, max_iterations: 1", "«{from: rank, to: create")],
    ),
];

/// Parts that would hide most if they cannot be read.
const NOTES: &str = r#"id: notes
@0: Notes
entry: @1
nodes:
  gather: {name: Gather, instruction: Gather.@2}
  write: {name: Write, @3: Write., @4}
  count: {name: Count, instruction: Count., requires: {on_fail: @5, output_required: [input.x]}}
@6edges:
  - {from: gather, to: write, @7: some}
  - {from: @8, to: count, when: none}
  - {from: write, to: count}
  - {from: count, to: write, max_iterations: @9}
"#;

const OF_NOTES: [Mistake; 10] = [
    slip("missing-key", "name", &[("name", "«nmae")]),
    slip("unknown-start", "gather", &[("gather", "«gatherr")]),
    mistake("duplicate-key", &[("", ", «name: Again")]),
    slip("unknown-key", "instruction", &[("instruction", "«instructon")]),
    mistake("missing-key", &[("retry: {max: 1}", "retry: «{}")]),
    slip("wrong-type", "skip", &[("skip", "«skp")]),
    mistake("unreachable-node", &[("", "  «lost: {name: Lost, instruction: Wait.}\n")]),
    slip("unknown-key", "when", &[("when", "«wen")]),
    mistake("wrong-type", &[("gather", "«7")]),
    mistake("wrong-type", &[("2", "«0")]),
];

// G3
#[test]
fn a_triage_with_ten_mistakes() {
    every_combination(TRIAGE, &OF_TRIAGE, &Format::Sweny(SwenyOptions::new()));
}

// G3
#[test]
fn notes_with_ten_parts_that_cannot_be_read() {
    every_combination(NOTES, &OF_NOTES, &Format::Sweny(SwenyOptions::new()));
}
