//! Refusals of documents by a registry, and how their problems read.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};

use self::given::{Agents, Pricing, Tools, anything, refund};
use super::{check, documents};
use crate::{Document, Registry, ScriptedExecutor};

mod given;

fn document(text: &str) -> Document {
    Document::parse(text, "g.yaml").unwrap()
}

fn bound(document: &Document, registry: &Registry) -> Result<(), crate::CheckError> {
    check(&documents(Some(document), registry), registry)
}

/// Those of the file alone, if it has any, else those beside the registry.
fn problems(text: &str, registry: &Registry) -> String {
    let bound = Document::parse(text, "g.yaml").and_then(|document| bound(&document, registry));
    bound.err().map(|error| error.to_string() + "\n").unwrap_or_default()
}

/// The document without its node `child`, and without the graph that this runs.
fn without_child(text: &str) -> String {
    let (rest, _) = text.split_once("\n  child: ").unwrap();
    rest.replace(", next: child}", "}") + "\n"
}

fn refused(text: &str, registry: &Registry, expected: &Expect) {
    expected.assert_eq(&problems(text, registry));
}

fn script(text: &str) -> ScriptedExecutor {
    ScriptedExecutor::parse(text, "s.yaml").unwrap()
}

const NEEDY: &str = r"graph: g
nodes:
  find: {function: orders.fnd, next: pay}
  pay: {tool: bank.pay, with: {cents: 1}, next: write}
  write: {agent: Write a letter., ensure: [{name: kind, judge: Is it kind?}], next: run}
  run: {command: [ls], next: judge}
  judge: {value: 1, ensure: [{name: good, judge: Is it good?}], next: choose}
  choose: {value: 1, next: {decide: Which?, choices: [{to: child}], otherwise: child}}
  child: {graph: pricng, next: typed}
  typed: {workflow: {name: Pricng, start: PriceAsked}}
";

/// G9
#[test]
fn everything_that_a_registry_lacks_is_reported_at_once() {
    refused(
        NEEDY,
        &Registry::new(),
        &expect![[r#"
        g.yaml:3:20: error[unknown-function]: `find` calls `orders.fnd`, and the registry has no such function; register it with `Registry::function`
        g.yaml:4:15: error[no-executor]: `pay` calls the tool `bank.pay`, and the registry has no executor of tools; add one with `Registry::tools`
        g.yaml:5:3: error[no-executor]: `write` is work for an agent, and the registry has no executor of agents; add one with `Registry::agents`
        g.yaml:6:3: error[commands-not-allowed]: `run` runs a program, and the registry allows none; call `Registry::allow_commands` if you trust the document, or use a function
        g.yaml:7:30: error[no-executor]: `judge` asks a model to judge, and the registry has no executor of agents; add one with `Registry::agents`
        g.yaml:8:3: error[no-executor]: `choose` lets a model choose its route, and the registry has no executor of agents; add one with `Registry::agents`
        g.yaml:9:18: error[unknown-graph]: `child` runs `pricng`, and neither its file nor the registry has such a graph; add it behind a line `---`, or register its document with `Registry::document`
        g.yaml:10:28: error[unknown-workflow]: `typed` runs `Pricng`, and the registry has no such workflow; register it with `Registry::workflow`
    "#]],
    );
}

/// G9
#[test]
fn similar_names_of_the_registry_are_named() {
    let pricing = Document::parse("graph: pricing\nnodes: {a: {value: 1}}\n", "pricing.yaml").unwrap();
    let registry = Registry::new()
        .function("orders.find", anything)
        .agents(Agents)
        .tools(Tools(Some(vec!["bank.pai".to_owned()])))
        .document(&pricing)
        .workflow::<Pricing>()
        .allow_commands();
    refused(
        NEEDY,
        &registry,
        &expect![[r#"
        g.yaml:3:20: error[unknown-function]: `find` calls `orders.fnd`, and the registry has no such function; did you mean `orders.find`?
        g.yaml:4:15: error[unknown-tool]: `pay` calls the tool `bank.pay`, and the executor of tools has no such tool; did you mean `bank.pai`?
        g.yaml:9:18: error[unknown-graph]: `child` runs `pricng`, and neither its file nor the registry has such a graph; did you mean `pricing`?
        g.yaml:10:28: error[unknown-workflow]: `typed` runs `Pricng`, and the registry has no such workflow; did you mean `Pricing`?
    "#]],
    );
}

/// G9
#[test]
fn a_registry_that_has_everything_binds() {
    let text = NEEDY.replace("fnd", "find").replace("ricng", "ricing");
    let pricing = document("graph: pricing\nnodes: {a: {value: 1}}\n");
    let registry = Registry::new()
        .function("orders.find", anything)
        .agents(Agents)
        .document(&pricing)
        .workflow::<Pricing>()
        .allow_commands();
    let known = registry.tools(Tools(Some(vec!["bank.pay".to_owned()])));
    assert_eq!(problems(&text, &known), "");
    assert_eq!(problems(&text, &known.tools(Tools(None))), "", "tools are not checked if they are not known");
}

/// G9
#[test]
fn a_workflow_starts_with_one_of_its_start_events() {
    let text = "graph: g\nnodes: {a: {workflow: {name: Pricing, start: PriceAskd}}}\n";
    refused(
        text,
        &Registry::new().workflow::<Pricing>(),
        &expect![[r#"
        g.yaml:2:46: error[unknown-workflow]: `PriceAskd` is no event with which `Pricing` starts; did you mean `PriceAsked`?
    "#]],
    );
    let text = "graph: g\nnodes: {a: {workflow: {name: Pricing, start: Begin}}}\n";
    refused(
        text,
        &Registry::new().workflow::<Pricing>(),
        &expect![[r#"
        g.yaml:2:46: error[unknown-workflow]: `Begin` is no event with which `Pricing` starts; write `PriceAsked`
    "#]],
    );
}

/// G9
#[test]
fn fields_that_an_input_requires_are_in_with() {
    let text = r"graph: g
nodes:
  none: {function: refund, next: some}
  some: {function: refund, with: {order: A1, to: {bank: x}}, next: computed}
  computed: {function: refund, with: {order: '${ input.order }', cents: 1, to: '${ input.to }'}, next: nested}
  nested: {function: refund, with: {order: '${ input.order }', cents: 1, to: {bank: '${ input.to }'}}, next: whole}
  whole: {function: refund, with: '${ input }', next: child}
  child: {graph: child, with: {extra: 1}}
---
graph: child
input:
  type: object
  properties: {order: {type: string}, count: {type: integer, default: 1}, at: {$ref: '#/$defs/at'}}
  required: [order, count, at]
  $defs: {at: {type: object, required: [line]}}
nodes: {again: {graph: child, with: {order: A1, at: {}}}}
";
    refused(
        &without_child(text),
        &Registry::new().described("refund", refund),
        &expect![[r#"
            g.yaml:3:20: error[missing-input]: `none` gives no `order`, which the function `refund` requires; add `order` to `with`
            g.yaml:3:20: error[missing-input]: `none` gives no `cents`, which the function `refund` requires; add `cents` to `with`
            g.yaml:3:20: error[missing-input]: `none` gives no `to`, which the function `refund` requires; add `to` to `with`
            g.yaml:4:20: error[missing-input]: `some` gives no `cents`, which the function `refund` requires; add `cents` to `with`
            g.yaml:4:20: error[missing-input]: `some` gives no `to.iban`, which the function `refund` requires; add `to.iban` to `with`
            g.yaml:6:22: error[missing-input]: `nested` gives no `to.iban`, which the function `refund` requires; add `to.iban` to `with`
        "#]],
    );
    // The file knows its own graphs.
    refused(
        text,
        &Registry::new(),
        &expect![[r#"
            g.yaml:8:18: error[missing-input]: `child` gives no `order`, which the graph `child` requires; add `order` to `with`
            g.yaml:8:18: error[missing-input]: `child` gives no `at`, which the graph `child` requires; add `at` to `with`
            g.yaml:8:32: error[unknown-field]: `child` gives `extra`, and the graph `child` has no such field; remove it; the fields are `at`, `count`, `order`
            g.yaml:16:24: error[missing-input]: `again` gives no `at.line`, which the graph `child` requires; add `at.line` to `with`
        "#]],
    );
}

/// G7, G9
#[test]
fn inputs_that_can_never_fit_and_fields_that_nobody_takes_are_refused() {
    let text = r"graph: g
input: {type: object, properties: {order: {type: string}, cents: {type: integer}}, required: [order, cents]}
nodes:
  names: {function: refund, with: {order: A1, cent: 1, cents: 1, to: {iban: x, bnak: y}}, next: types}
  types:
    function: refund
    with:
      order: '${ input.cents }'
      cents: 'about ${ input.cents }'
      to: '${ input.order }'
    next: values
  values: {function: refund, with: {order: 7, cents: -1, note: null, to: [x]}, next: whole}
  whole: {function: refund, with: '${ input.order }', next: returned}
  returned: {function: refund, with: {order: '${ names.cents }', cents: '${ names.cents }', to: '${ input.to }'}, next: child}
  child: {graph: child, with: {mode: slow, sizes: [1, x], extra: 1, free: {a: 1}}}
---
graph: child
input:
  type: object
  properties:
    mode: {enum: [fast, cheap]}
    sizes: {type: array, items: {$ref: '#/$defs/size'}}
    free: {type: object}
  $defs: {size: {type: integer}}
nodes: {a: {value: 1}}
".replace("'${ input.to }'", "{iban: '${ input.order }', bank: null}");
    refused(
        &without_child(&text),
        &Registry::new().described("refund", refund),
        &expect![[r#"
        g.yaml:4:47: error[unknown-field]: `names` gives `cent`, and the function `refund` has no such field; did you mean `cents`?
        g.yaml:4:66: error[unknown-field]: `names` gives `to.bnak`, and the function `refund` has no such field; did you mean `bank`?
        g.yaml:8:18: error[type-mismatch]: `types` gives a number as `order`, and the function `refund` takes a text there; convert it, or correct the schema
        g.yaml:9:7: error[type-mismatch]: `types` gives a text as `cents`, and the function `refund` takes a number there; convert it, or correct the schema
        g.yaml:10:15: error[type-mismatch]: `types` gives a text as `to`, and the function `refund` takes a map there; convert it, or correct the schema
        g.yaml:12:37: error[type-mismatch]: `values` gives 7 as `order`, which the function `refund` does not take: 7 is not of type "string"; correct the value, or the schema
        g.yaml:12:47: error[type-mismatch]: `values` gives -1 as `cents`, which the function `refund` does not take: -1 is less than the minimum of 0; correct the value, or the schema
        g.yaml:12:58: error[type-mismatch]: `values` gives null as `note`, which the function `refund` does not take: null is not of type "string"; correct the value, or the schema
        g.yaml:12:70: error[type-mismatch]: `values` gives a list as `to`, and the function `refund` takes a map there; convert it, or correct the schema
        g.yaml:13:39: error[type-mismatch]: `whole` gives a text as its input, and the function `refund` takes a map there; convert it, or correct the schema
        g.yaml:14:50: error[type-mismatch]: `returned` gives a number as `order`, and the function `refund` takes a text there; convert it, or correct the schema
    "#]],
    );
    refused(
        &text,
        &Registry::new(),
        &expect![[r#"
        g.yaml:15:32: error[type-mismatch]: `child` gives "slow" as `mode`, which the graph `child` does not take: "slow" is not one of "fast" or "cheap"; correct the value, or the schema
        g.yaml:15:44: error[type-mismatch]: `child` gives "x" as `sizes[1]`, which the graph `child` does not take: "x" is not of type "integer"; correct the value, or the schema
        g.yaml:15:59: error[unknown-field]: `child` gives `extra`, and the graph `child` has no such field; remove it; the fields are `free`, `mode`, `sizes`
    "#]],
    );
}

/// G7
#[test]
fn reads_are_checked_by_what_described_functions_return() {
    let text = r"graph: g
nodes:
  pay: {function: refund, with: '${ input }', next: [{when: pay.cnts > 1, to: other}, {when: pay.cents > 'x', to: other}, {to: other}]}
  other: {function: refund, with: '${ input }', output: {type: object, properties: {cnts: {type: number}}, required: [cnts]}, next: last}
  last: {value: '${ other.cnts + default(pay.cents, 0) }'}
output: ${ pay.euros }
";
    refused(
        text,
        &Registry::new().described("refund", refund),
        &expect![[r#"
        g.yaml:3:61: error[unknown-field]: the result of `pay` has no field `cnts`; did you mean `cents`?
        g.yaml:3:94: error[type-mismatch]: `pay.cents` is a number and `'x'` is a text; they have no order; convert one of them, or correct the schema
        g.yaml:6:12: error[unknown-field]: the result of `pay` has no field `euros`; the fields are `cents`; describe others in its schema
    "#]],
    );
    assert_eq!(problems(text, &Registry::new().function("refund", refund)), "");
}

/// G9
#[test]
fn a_name_of_two_functions_is_refused_where_it_is_called() {
    let registry = Registry::new().function("find", anything).function("find", anything);
    refused(
        "graph: g\nnodes: {a: {function: find}}\n",
        &registry,
        &expect![[r#"
        g.yaml:2:23: error[duplicate-key]: `a` calls `find`, and the registry has two such functions; register it once
    "#]],
    );
    assert_eq!(problems("graph: g\nnodes: {a: {value: 1}}\n", &registry), "");
}

/// G9
#[test]
fn graphs_and_workflows_have_names_of_their_own() {
    let other = Document::parse("graph: pricing\nnodes: {a: {value: 2}}\n", "other.yaml").unwrap();
    let text = "graph: pricing\nnodes: {a: {value: 1}}\n---\ngraph: Pricing\nnodes: {a: {value: 1}}\n";
    let registry = Registry::new().document(&other).workflow::<Pricing>();
    refused(
        text,
        &registry,
        &expect![[r#"
        g.yaml:4:8: error[duplicate-key]: the registry has a workflow `Pricing`, too; rename the graph
        other.yaml:1:8: error[duplicate-key]: `g.yaml` has a graph `pricing`, too; rename one of them
    "#]],
    );
}

/// G9
#[test]
fn a_document_may_be_in_the_registry_itself() {
    let text = "graph: g\nnodes: {a: {graph: g}}\n";
    let own = document(text);
    let registry = Registry::new().document(&own).document(&own).document(&document(text));
    assert!(bound(&own, &registry).is_ok());
    assert_eq!(documents(Some(&own), &registry).len(), 1);
}

/// G9
#[test]
fn graphs_may_name_each_other_in_a_circle() {
    let other = Document::parse("graph: h\nnodes: {a: {graph: g}}\n", "h.yaml").unwrap();
    let registry = Registry::new().document(&other);
    assert_eq!(problems("graph: g\nnodes: {a: {graph: h}}\n", &registry), "");
}

/// G9
#[test]
fn documents_of_the_registry_are_checked_under_their_names() {
    let other = Document::parse("graph: h\nnodes: {a: {function: x}}\n", "h.yaml").unwrap();
    refused(
        "graph: g\nnodes: {a: {function: y}}\n",
        &Registry::new().document(&other),
        &expect![[r#"
        g.yaml:2:23: error[unknown-function]: `a` calls `y`, and the registry has no such function; register it with `Registry::function`
        h.yaml:2:23: error[unknown-function]: `a` calls `x`, and the registry has no such function; register it with `Registry::function`
    "#]],
    );
}

/// G9
#[test]
fn a_script_stands_in_for_functions_models_and_commands_and_not_for_children() {
    refused(
        NEEDY,
        &Registry::new().script(script("")),
        &expect![[r#"
        g.yaml:9:18: error[unknown-graph]: `child` runs `pricng`, and neither its file nor the registry has such a graph; add it behind a line `---`, or register its document with `Registry::document`
        g.yaml:10:28: error[unknown-workflow]: `typed` runs `Pricng`, and the registry has no such workflow; register it with `Registry::workflow`
    "#]],
    );
    let described = Registry::new().described("refund", refund).script(script(""));
    refused(
        "graph: g\nnodes: {a: {function: refund, with: {order: A, cents: 1}}}\n",
        &described,
        &expect![[r#"
            g.yaml:2:23: error[missing-input]: `a` gives no `to`, which the function `refund` requires; add `to` to `with`
        "#]],
    );
}

/// G9
#[test]
fn a_script_names_nodes_that_there_are() {
    let text = "graph: g\nnodes: {review: {value: 1}, b: {graph: h}}\nstart: review\n---\ngraph: h\nnodes: {c: {value: 1}}\n"
        .replace("{value: 1}, b", "{value: 1, next: b}, b");
    let script = script(
        "nodes: {reveiw: [{data: 1}], c: [{data: 1}]}\ndecide: {b: [x], d: [y]}\njudge: {e: [x]}\nreplies: {f: [1]}\n",
    );
    refused(
        &text,
        &Registry::new().script(script),
        &expect![[r#"
        s.yaml:1:9: error[unknown-node]: the script names `reveiw`, and no graph has such a node; did you mean `review`?
        s.yaml:2:18: error[unknown-node]: the script names `d`, and no graph has such a node; remove it, or name another node
        s.yaml:3:9: error[unknown-node]: the script names `e`, and no graph has such a node; remove it, or name another node
        s.yaml:4:11: error[unknown-node]: the script names `f`, and no graph has such a node; remove it, or name another node
    "#]],
    );
}
