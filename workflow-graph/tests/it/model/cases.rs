//! Tests of the model itself: documents whose result follows from a rule, and those of `expected.yaml` that it can say.
//!
//! The reader has to accept each of them.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::support::number;
use super::document::{Conflicts, Doc, Entry, Failures, Next, Node, OnFailure, Parallel, Route, Work};
use super::expression::{Cond, Expr};
use super::random;
use super::walk::{Expected, Status, expected};
use workflow_graph::Document;

use Entry::Data;

const AWAY: Entry = Entry::Fail { is_permanent: false };

fn node(work: Work) -> Node {
    let next = Next::Routes(vec![to("end")]);
    let on_failure = OnFailure::Fail;
    Node { work, requires: None, max_visits: None, set: None, on_failure, next, is_end_without_match: false }
}

fn value(number: i64) -> Node {
    node(Work::Value(Expr::Int(number)))
}

fn function<const N: usize>(script: [Entry; N]) -> Node {
    node(Work::Function { with: None, attempts: 1, script: script.into() })
}

fn to(id: &str) -> Route {
    Route { to: (id != "end").then(|| id.to_owned()), when: None, max: None }
}

impl Route {
    fn when(self, when: Cond) -> Self {
        Self { when: Some(when), ..self }
    }

    fn max(self, max: u32) -> Self {
        Self { max: Some(max), ..self }
    }
}

impl Node {
    fn next<const N: usize>(self, routes: [Route; N]) -> Self {
        Self { next: Next::Routes(routes.into()), ..self }
    }

    fn fails_to<const N: usize>(self, routes: [Route; N]) -> Self {
        Self { on_failure: OnFailure::Routes(routes.into()), ..self }
    }

    fn continues(self) -> Self {
        Self { on_failure: OnFailure::Continue, ..self }
    }

    fn sets(self, name: &str, expr: Expr) -> Self {
        Self { set: Some((name.to_owned(), expr)), ..self }
    }

    fn requires(self, check: Cond, is_skipping: bool) -> Self {
        Self { requires: Some((check, is_skipping)), ..self }
    }

    fn max_visits(self, most: u32) -> Self {
        Self { max_visits: Some(most), ..self }
    }

    fn fans<const N: usize>(self, targets: [&str; N], join: &str, failures: Failures) -> Self {
        self.opens(targets.map(|to| (to, None)), Some(join), failures)
    }

    fn opens<const N: usize>(
        self,
        branches: [(&str, Option<Cond>); N],
        join: Option<&str>,
        failures: Failures,
    ) -> Self {
        let parallel = Parallel {
            branches: branches.into_iter().map(|(to, when)| (to.to_owned(), when)).collect(),
            join: join.map(str::to_owned),
            is_join_written: join.is_some(),
            failures,
            conflicts: Conflicts::Error,
            concurrency: None,
        };
        Self { next: Next::Parallel(parallel), ..self }
    }

    fn conflicts(mut self, conflicts: Conflicts) -> Self {
        if let Next::Parallel(parallel) = &mut self.next {
            parallel.conflicts = conflicts;
        }
        self
    }
}

fn var() -> Expr {
    Expr::Var("a".to_owned())
}

fn data(node: &str) -> Expr {
    Expr::Data(node.to_owned())
}

fn plus(a: Expr, b: i64) -> Expr {
    Expr::Add(Box::new(a), Box::new(Expr::Int(b)))
}

fn never() -> Cond {
    Cond::Less(Expr::Input, Expr::Int(0))
}

/// The first node is the start, and `vars.a` is the output beside `output`.
fn doc<const N: usize>(nodes: [(&str, Node); N]) -> Doc {
    let start = nodes[0].0.to_owned();
    let nodes = nodes.into_iter().map(|(id, node)| (id.to_owned(), node)).collect();
    let vars = BTreeMap::from([("a".to_owned(), 0)]);
    Doc { start, nodes, vars, steps: None, input: 0, output: None }
}

fn all(doc: &Doc) -> Vec<Expected> {
    if let Err(error) = Document::parse(&doc.text(), "g.json") {
        panic!("{error}\n{}", doc.text());
    }
    expected(doc).unwrap()
}

/// The only end of a document without races.
fn one(doc: &Doc) -> Expected {
    let mut found = all(doc);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// Status, quality and path.
fn told(end: &Expected) -> String {
    format!("{} {}: {}", end.status, end.quality, end.path.join(" "))
}

fn visits(end: &Expected) -> String {
    let seen = end.visits.iter().map(|(id, status, visit)| format!("{id}{visit}:{}", status.word()));
    seen.collect::<Vec<_>>().join(" ")
}

/// The end of a branch in which a function fails, beside one that succeeds.
fn beside_a_failure(failures: Failures, change: impl FnOnce(Node) -> Node) -> Doc {
    let failed = Cond::StatusIs("y".to_owned(), Status::Failed);
    let branches = Expr::Mul(Box::new(Expr::JoinedBranches), Box::new(Expr::Int(10)));
    let counted = Expr::Add(Box::new(branches), Box::new(Expr::JoinedFailed));
    doc([
        ("p", change(value(1).fans(["x", "y"], "j", failures))),
        ("x", value(2).next([to("j")])),
        ("y", function([AWAY]).next([to("j")])),
        ("j", node(Work::Value(counted)).next([to("seen").when(failed), to("end")])),
        ("seen", value(7)),
        ("h", value(8)),
    ])
}

/// G12
#[test]
fn the_first_route_that_holds_is_taken() {
    let with = |input| Doc {
        input,
        ..doc([
            ("s", value(3).next([to("b").when(Cond::Less(Expr::Input, data("s"))), to("c")])),
            ("b", value(1)),
            ("c", value(2)),
        ])
    };
    assert_eq!(told(&one(&with(0))), "completed clean: s b");
    assert_eq!(told(&one(&with(3))), "completed clean: s c");
}

/// G12
#[test]
fn a_route_is_eligible_below_its_max() {
    let looped =
        doc([("s", value(1).next([to("s").max(2), to("e")])), ("e", node(Work::Value(Expr::Visits)))]);
    let end = one(&looped);
    assert_eq!(told(&end), "completed clean: s s s e");
    assert_eq!((end.steps, end.output), (4, Some(json!({"v": 1}))));
}

/// G12, G19
#[test]
fn a_condition_that_errs_fails_the_visit() {
    let maybe = Cond::Less(data("x"), Expr::Int(5));
    let of = |last: Node| {
        doc([
            ("s", value(1).next([to("x").when(never()), to("e")])),
            ("x", value(1).next([to("e")])),
            ("e", last.next([to("end").when(maybe.clone()), to("h")])),
            ("h", value(2)),
        ])
    };
    assert_eq!(told(&one(&of(value(1)))), "failed failed: s e");
    let caught = one(&of(value(1).sets("a", Expr::Int(5)).fails_to([to("h")])));
    assert_eq!(told(&caught), "completed degraded: s e h");
    // One batch, or nothing (G10): the variable is not set.
    assert_eq!(caught.vars["a"], 0);
    assert_eq!(caught.results.unwrap()["e"], (Status::Failed, json!(null)));
}

/// G12, G25, G26
#[test]
fn without_a_route_that_holds_the_walk_fails_or_ends() {
    let of = |is_end_without_match, change: fn(Node) -> Node| {
        let first = Node { is_end_without_match, ..value(1).next([to("b").when(never())]) };
        doc([("s", change(first)), ("b", value(1))])
    };
    assert_eq!(told(&one(&of(false, |node| node))), "failed failed: s");
    assert_eq!(told(&one(&of(true, |node| node))), "no_match degraded: s");
    assert_eq!(told(&one(&of(false, |node| node.fails_to([to("b")])))), "completed degraded: s b");
    assert_eq!(told(&one(&of(false, Node::continues))), "failed failed: s");
}

/// G11
#[test]
fn iterations_count_from_one_per_node() {
    let end = one(&doc([
        ("s", node(Work::Value(Expr::Visits)).next([to("m").max(1), to("end")])),
        ("m", node(Work::Value(Expr::VisitsOf("s".to_owned()))).next([to("s")])),
    ]));
    assert_eq!(visits(&end), "m1:success s1:success s2:success");
    let results = end.results.unwrap();
    assert_eq!((&results["s"].1, &results["m"].1), (&json!({"v": 2}), &json!({"v": 1})));
}

/// G10
#[test]
fn a_variable_is_set_before_the_route_and_sees_the_result() {
    let end = one(&doc([
        (
            "s",
            value(4)
                .sets("a", plus(data("s"), 1))
                .next([to("b").when(Cond::Equal(var(), Expr::Int(5))), to("end")]),
        ),
        ("b", node(Work::Value(var()))),
    ]));
    assert_eq!((told(&end), end.output), ("completed clean: s b".to_owned(), Some(json!({"v": 5}))));
}

/// G17, G26
#[test]
fn an_attempt_that_succeeds_after_others_is_clean() {
    let of = |attempts, script: Vec<Entry>| {
        doc([("s", node(Work::Function { with: None, attempts, script }).next([to("s").max(1), to("end")]))])
    };
    let end = one(&of(2, vec![AWAY, Data(1), Data(2)]));
    assert_eq!((told(&end), end.output), ("completed clean: s s".to_owned(), Some(json!({"v": 2}))));
    assert_eq!(told(&one(&of(2, vec![AWAY]))), "failed failed: s");
    assert_eq!(told(&one(&of(2, vec![Entry::Fail { is_permanent: true }, Data(1)]))), "failed failed: s");
}

/// G19
#[test]
fn a_failure_leads_where_on_failure_says_with_its_error() {
    let has_error = |id: &str| value(1).next([to(id).when(Cond::HasError), to("end")]);
    let end = one(&doc([
        ("s", function([AWAY]).fails_to([to("h")]).next([to("end")])),
        ("h", has_error("g")),
        ("g", value(1)),
    ]));
    assert_eq!(told(&end), "completed degraded: s h g");
}

/// G19: `continue` goes to `next`, with status `failed`.
#[test]
fn a_failure_that_continues_leaves_a_failed_result() {
    let failed = Cond::StatusIs("s".to_owned(), Status::Failed);
    let end = one(&doc([
        ("s", function([AWAY]).continues().sets("a", Expr::Int(1)).next([to("b").when(failed), to("end")])),
        ("b", node(Work::Value(Expr::DataOr("s".to_owned(), 3)))),
    ]));
    assert_eq!((told(&end), end.output), ("completed degraded: s b".to_owned(), Some(json!({"v": 3}))));
    assert_eq!(end.vars["a"], 0);
}

/// G19, G12: routes of `on_failure` have conditions and bounds, too.
#[test]
fn failure_routes_that_do_not_hold_catch_nothing() {
    let again = || doc([("s", function([AWAY]).fails_to([to("s").max(2)]))]);
    let end = one(&again());
    assert_eq!((told(&end), end.at), ("failed failed: s s s".to_owned(), "s".to_owned()));
    let mended = doc([("s", function([AWAY, Data(1)]).fails_to([to("s").max(2)]))]);
    assert_eq!(told(&one(&mended)), "completed degraded: s s");
}

/// G20
#[test]
fn an_unmet_requirement_fails_or_skips() {
    let of = |is_skipping| {
        doc([
            ("s", value(1).requires(never(), is_skipping).sets("a", Expr::Int(1)).next([to("b")])),
            ("b", value(2)),
        ])
    };
    assert_eq!(told(&one(&of(false))), "failed failed: s");
    let end = one(&of(true));
    assert_eq!(
        (told(&end), visits(&end)),
        ("completed clean: s b".to_owned(), "b1:success s1:skipped".to_owned())
    );
    assert_eq!((end.vars["a"], &end.results.unwrap()["s"].1), (0, &json!(null)));
}

/// G21
#[test]
fn a_visit_beyond_max_visits_keeps_the_result_and_routes_on() {
    let end = one(&doc([
        ("s", node(Work::Value(Expr::Visits)).max_visits(1).next([to("m").max(1), to("end")])),
        ("m", value(1).next([to("s")])),
    ]));
    assert_eq!(
        (told(&end), end.output.clone()),
        ("completed clean: s m s".to_owned(), Some(json!({"v": 1})))
    );
    assert_eq!(visits(&end), "m1:success s1:success s2:skipped");
    assert_eq!((end.steps, end.results.unwrap()["s"].0), (3, Status::Success));
}

/// G23
#[test]
fn the_visit_beyond_the_limit_does_not_run() {
    let looped =
        doc([("s", value(1).max_visits(1).next([to("s").when(Cond::Not(Box::new(never()))), to("end")]))]);
    let end = one(&Doc { steps: Some(3), ..looped.clone() });
    assert_eq!((told(&end), end.at, end.steps), ("step_limit failed: s s s".to_owned(), "s".to_owned(), 3));
    let enough = doc([("s", value(1).next([to("s").max(2), to("end")]))]);
    assert_eq!(told(&one(&Doc { steps: Some(3), ..enough })), "completed clean: s s s");
    assert_eq!(one(&looped).steps, 200);
}

/// G23: a join adds its branches.
#[test]
fn a_join_counts_the_visits_of_its_branches() {
    let of = |steps| {
        let nodes = [
            ("p", value(1).fans(["x", "y"], "j", Failures::FailAll)),
            ("x", value(1).next([to("x2")])),
            ("x2", value(1).next([to("j")])),
            ("y", value(1).next([to("j")])),
            ("j", value(1)),
        ];
        one(&Doc { steps: Some(steps), ..doc(nodes) })
    };
    assert_eq!((told(&of(5)), of(5).steps), ("completed clean: p j".to_owned(), 5));
    // The branches see two visits and three.
    let short = of(4);
    assert_eq!((told(&short), short.at.as_str()), ("step_limit failed: p".to_owned(), "j"));
    assert_eq!(of(3).visits.len(), 4);
    assert!(of(3).results.is_some());
    let within = of(2);
    assert_eq!(
        (within.at.as_str(), within.results, visits_of(&within.optional)),
        ("x2", None, "y1".to_owned())
    );
}

fn visits_of(seen: &[(String, Status, u32)]) -> String {
    seen.iter().map(|(id, _, visit)| format!("{id}{visit}")).collect::<Vec<_>>().join(" ")
}

/// G14
#[test]
fn a_join_does_not_wait_for_branches_that_did_not_begin_or_that_ended() {
    let end = one(&doc([
        ("p", value(1).opens([("x", None), ("y", Some(never())), ("z", None)], Some("j"), Failures::FailAll)),
        ("x", value(1).next([to("j")])),
        ("y", value(1).next([to("j")])),
        ("z", value(1)),
        ("j", node(Work::Value(Expr::JoinedBranches))),
    ]));
    assert_eq!((told(&end), end.output.clone()), ("completed clean: p j".to_owned(), Some(json!({"v": 2}))));
    assert_eq!(visits(&end), "j1:success p1:success x1:success z1:success");
}

/// G14
#[test]
fn without_an_arrival_the_walk_ends_as_no_match() {
    let of = |when: Option<Cond>, back: Cond| {
        doc([
            ("p", value(1).opens([("x", when)], Some("j"), Failures::FailAll)),
            ("x", value(1).next([to("j").when(back), to("end")])),
            ("j", value(1)),
        ])
    };
    assert_eq!(told(&one(&of(None, never()))), "no_match degraded: p");
    assert_eq!(told(&one(&of(Some(never()), never()))), "no_match degraded: p");
    assert_eq!(told(&one(&of(None, Cond::Not(Box::new(never()))))), "completed clean: p j");
}

/// G8
#[test]
fn without_a_join_the_walk_ends_when_all_branches_have_ended() {
    let of = |when: Option<Cond>| {
        doc([
            ("p", value(1).opens([("x", when.clone()), ("y", when)], None, Failures::FailAll)),
            ("x", value(1).sets("a", Expr::Int(4))),
            ("y", value(1)),
        ])
    };
    let end = one(&of(None));
    assert_eq!((told(&end), end.steps, end.vars["a"]), ("completed clean: p".to_owned(), 3, 4));
    assert_eq!(told(&one(&of(Some(never())))), "completed clean: p");
}

/// G15
#[test]
fn fail_all_fails_the_parallel_node() {
    let end = one(&beside_a_failure(Failures::FailAll, |node| node.fails_to([to("h")])));
    // The visit that failed counts.
    assert_eq!((told(&end), end.steps), ("completed degraded: p h".to_owned(), 3));
    assert_eq!(visits(&end), "h1:success p1:failed y1:failed");
    assert_eq!(visits_of(&end.optional), "p1 x1");
    assert_eq!(end.results.unwrap().len(), 2);
}

/// G15, G25
#[test]
fn an_uncaught_failure_of_a_branch_names_the_node_within() {
    let nodes = [
        ("p", value(1).fans(["x", "y"], "j", Failures::FailAll)),
        ("x", value(2).next([to("j")])),
        ("y", function([AWAY]).next([to("j")])),
        ("j", value(1)),
    ];
    let end = one(&doc(nodes));
    assert_eq!((told(&end), end.at.as_str()), ("failed failed: p".to_owned(), "y"));
}

/// G15: either may be the first.
#[test]
fn two_failures_race() {
    let ends = all(&doc([
        ("p", value(1).fans(["x", "y"], "j", Failures::FailAll)),
        ("x", function([AWAY]).next([to("j")])),
        ("y", function([AWAY]).next([to("j")])),
        ("j", value(1)),
    ]));
    assert_eq!(ends.iter().map(|end| end.at.as_str()).collect::<Vec<_>>(), ["x", "y"]);
}

/// G15
#[test]
fn the_other_policies_go_on_and_count_failures() {
    for (failures, path) in [(Failures::WaitAll, "p j seen"), (Failures::ContinueOthers, "p j")] {
        let nodes = |node: Node| node.fails_to([to("h")]);
        let end = one(&beside_a_failure(failures, nodes));
        assert_eq!(told(&end), format!("completed degraded: {path}"));
        let results = end.results.unwrap();
        assert_eq!(
            (&results["j"].1, results.contains_key("y")),
            (&json!({"v": 21}), failures == Failures::WaitAll)
        );
        assert!(end.visits.contains(&("y".to_owned(), Status::Failed, 1)));
    }
}

/// G15, G19
#[test]
fn a_parallel_node_that_continues_goes_on_at_the_join() {
    let of = |join: &str| {
        doc([
            ("p", value(1).continues().fans(["x", "y"], "j", Failures::FailAll)),
            ("x", value(2).next([to(join)])),
            ("y", function([AWAY]).next([to("j")])),
            ("j", value(3)),
        ])
    };
    assert_eq!(told(&one(&of("j"))), "completed degraded: p j");
    assert_eq!(one(&of("end")).output, Some(json!({"v": 3})));
}

/// G16
#[test]
fn two_branches_that_set_one_variable_conflict() {
    let of = |conflicts, change: fn(Node) -> Node| {
        doc([
            ("p", change(value(1).fans(["x", "y"], "j", Failures::WaitAll)).conflicts(conflicts)),
            ("x", value(1).sets("a", Expr::Int(1)).next([to("j")])),
            ("y", value(1).sets("a", plus(var(), 2)).next([to("j")])),
            ("j", node(Work::Value(var()))),
        ])
    };
    let end = one(&of(Conflicts::Error, |node| node));
    assert_eq!((told(&end), end.at.as_str()), ("failed failed: p".to_owned(), "p"));
    let caught = one(&of(Conflicts::Error, Node::continues));
    assert_eq!((told(&caught), caught.output), ("completed degraded: p j".to_owned(), Some(json!({"v": 0}))));
    for conflicts in [Conflicts::LastWins, Conflicts::FirstWins] {
        let mut values: Vec<i64> = all(&of(conflicts, |node| node)).iter().map(|end| end.vars["a"]).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 2]);
    }
}

/// G11: never a sibling's.
#[test]
fn a_branch_sees_what_was_before_it_opened() {
    let end = one(&doc([
        ("s", value(1).sets("a", Expr::Int(3)).next([to("p")])),
        ("p", value(1).fans(["x", "y"], "j", Failures::FailAll)),
        ("x", value(1).sets("a", Expr::Int(9)).next([to("j")])),
        ("y", node(Work::Value(var())).next([to("j")])),
        ("j", node(Work::Value(Expr::Add(Box::new(var()), Box::new(data("y")))))),
    ]));
    assert_eq!(end.output, Some(json!({"v": 12})));
}

/// G8, G11, G12: the counts of a branch are there when its node opens branches again.
#[test]
fn a_cycle_around_branches_keeps_their_counts() {
    let end = one(&doc([
        ("p", value(1).fans(["x", "y"], "j", Failures::FailAll)),
        ("x", value(1).next([to("x").max(1), to("j")])),
        ("y", value(1).next([to("j")])),
        ("j", node(Work::Value(Expr::VisitsOf("x".to_owned()))).next([to("p").max(1), to("end")])),
    ]));
    assert_eq!((told(&end), end.output), ("completed clean: p j p j".to_owned(), Some(json!({"v": 3}))));
    assert_eq!(end.steps, 9);
}

/// G8, G14
#[test]
fn inner_and_outer_branches_may_meet_at_one_node() {
    let end = one(&doc([
        ("p", value(1).fans(["q", "z"], "j", Failures::FailAll)),
        ("q", value(1).fans(["x", "y"], "j", Failures::WaitAll)),
        ("x", value(1).next([to("j")])),
        ("y", function([AWAY]).next([to("j")])),
        ("z", value(1).next([to("j")])),
        ("j", node(Work::Value(Expr::JoinedFailed))),
    ]));
    // The failure is the inner one's: the branch of `q` arrives.
    assert_eq!((told(&end), end.output), ("completed degraded: p j".to_owned(), Some(json!({"v": 0}))));
    assert_eq!((end.steps, end.visits.len()), (6, 6));
}

/// `refund.yaml`, with a function in the place of the person.
#[test]
fn refunds_end_as_expected() {
    let desk = |cents, paid, granted, found| {
        let above = |a, b| Cond::Less(b, a);
        let nodes = [
            (
                "look_up",
                node(Work::Function { with: Some(Expr::Input), attempts: 4, script: vec![found, paid] })
                    .fails_to([to("refuse")])
                    .next([
                        to("refuse").when(above(Expr::Input, data("look_up"))),
                        to("approve").when(above(Expr::Input, Expr::Int(9_999))),
                        to("pay"),
                    ]),
            ),
            (
                "approve",
                function([granted])
                    .fails_to([to("refuse")])
                    .next([to("pay").when(Cond::Equal(data("approve"), Expr::Int(1))), to("refuse")]),
            ),
            ("pay", function([Data(cents)])),
            ("refuse", value(0)),
        ];
        let output = BTreeMap::from([("refunded".to_owned(), Expr::DataOr("pay".to_owned(), 0))]);
        one(&Doc { steps: Some(20), input: cents, output: Some(output), ..doc(nodes) })
    };
    let rejected = Entry::Fail { is_permanent: true };
    for (end, path, refunded) in [
        (desk(500, Data(900), Data(0), Data(900)), "completed clean: look_up pay", 500),
        (desk(20_000, Data(30_000), Data(1), AWAY), "completed clean: look_up approve pay", 20_000),
        (desk(20_000, Data(30_000), Data(0), AWAY), "completed clean: look_up approve refuse", 0),
        (desk(20_000, Data(30_000), rejected, AWAY), "completed degraded: look_up approve refuse", 0),
        (desk(500, AWAY, Data(0), AWAY), "completed degraded: look_up refuse", 0),
    ] {
        assert_eq!((told(&end).as_str(), end.output), (path, Some(json!({"refunded": refunded}))));
    }
}

/// `draft-loop.yaml`, with functions in the place of agents.
#[test]
fn drafts_end_as_expected() {
    let drafts = |draft, score| {
        let notes = plus(var(), 1);
        let good = Cond::Less(Expr::Int(7), data("review"));
        one(&doc([
            ("draft", function([draft]).next([to("review")])),
            (
                "review",
                function([score]).sets("a", notes).next([
                    to("publish").when(good),
                    to("draft").max(2),
                    to("shelve"),
                ]),
            ),
            ("publish", node(Work::Value(Expr::VisitsOf("review".to_owned())))),
            ("shelve", node(Work::Value(var()))),
        ]))
    };
    let good = drafts(Data(1), Data(9));
    assert_eq!(
        (told(&good), good.output),
        ("completed clean: draft review publish".to_owned(), Some(json!({"v": 1})))
    );
    let dull = drafts(Data(1), Data(2));
    assert_eq!(told(&dull), "completed clean: draft review draft review draft review shelve");
    assert_eq!(dull.output, Some(json!({"v": 3})));
    assert_eq!(told(&drafts(AWAY, Data(2))), "failed failed: draft");
}

/// `release-checks.yaml`, with a function in the place of the person.
#[test]
fn release_checks_end_as_expected() {
    let checks = |touched, integration| {
        let secure = Cond::Equal(data("collect"), Expr::Int(1));
        let count = Expr::Mul(Box::new(Expr::JoinedBranches), Box::new(Expr::Int(10)));
        let branches = [("licences", None), ("tests", None), ("security", Some(secure))];
        let end = one(&doc([
            ("collect", function([Data(touched)]).opens(branches, Some("decide"), Failures::WaitAll)),
            ("licences", function([Data(0)]).next([to("decide")])),
            ("tests", function([Data(0)]).next([to("integration")])),
            ("integration", function([integration]).next([to("decide")])),
            ("security", function([Data(0)]).next([to("decide")])),
            ("decide", node(Work::Value(Expr::Add(Box::new(count), Box::new(Expr::JoinedFailed))))),
        ]));
        assert!(end.status == "completed" && end.visits.iter().all(|(_, _, visit)| *visit == 1));
        (end.visits.len(), end.quality, end.output.unwrap()["v"].clone())
    };
    assert_eq!(checks(0, Data(0)), (5, "clean", json!(20)));
    assert_eq!(checks(1, Data(0)), (6, "clean", json!(30)));
    assert_eq!(checks(0, AWAY), (5, "degraded", json!(21)));
}

/// G6, G8: enough of the random documents are accepted, and they end in every way.
#[test]
fn most_random_documents_are_accepted_and_they_end_in_every_way() {
    let count = number("DOCUMENTS", 300);
    let (mut accepted, mut raced, mut refused) = (0, 0, BTreeMap::<String, usize>::new());
    let mut ends = BTreeMap::<&str, usize>::new();
    for seed in 0..count as u64 {
        let doc = random::document(seed);
        if let Err(error) = Document::parse(&doc.text(), "g.json") {
            *refused.entry(format!("{:?}", error.problems[0].code)).or_default() += 1;
            continue;
        }
        accepted += 1;
        let Some(found) = expected(&doc) else { continue };
        raced += usize::from(found.len() > 1);
        *ends.entry(found[0].status).or_default() += 1;
        *ends.entry(found[0].quality).or_default() += 1;
    }
    let found = format!("{accepted} of {count}, {raced} race, {ends:?}, refused: {refused:?}");
    assert!(accepted * 10 >= count * 6 && raced * 20 >= accepted, "{found}");
    for way in ["completed", "no_match", "step_limit", "failed", "clean", "degraded"] {
        assert!(ends.contains_key(way), "{way}: {found}");
    }
}
