//! Parallel nodes: the nodes of their branches, and their joins.

use std::fmt::Write as _;

use expect_test::expect;

use super::support::problems;

/// G8
#[test]
fn branches_meet_at_the_nearest_common_node() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, next: [{to: d, when: input.x}, {to: e}]}
  c: {value: 1, next: e}
  d: {value: 1, next: e}
  e: {value: 1, next: f}
  f: {value: 1}
";
    expect![[""]].assert_eq(&problems(text));
}

/// G8
#[test]
fn branches_that_end_need_no_join() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, next: d}
  c: {value: 1}
  d: {value: 1}
";
    expect![[""]].assert_eq(&problems(text));
}

/// G8
#[test]
fn branches_that_share_a_node_need_a_join() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, on_no_match: end, next: [{to: d, when: input.x}]}
  c: {value: 1, next: d}
  d: {value: 1, next: e}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:3:34: error[no-common-join]: the branches of `a` that begin with `b` and `c` both lead to `d`, which would run in each; let them meet there: add `join: d` beside `parallel`
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_given_join_lets_branches_end_on_their_own() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c], join: d}}
  b: {value: 1, on_no_match: end, next: [{to: d, when: input.x}]}
  c: {value: 1, next: d}
  d: {value: 1}
";
    expect![[""]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_branch_is_not_entered_from_outside() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: [{to: b, when: input.x}, {to: d}]}
  b: {value: 1, next: {parallel: [c, d], join: e}}
  c: {value: 1, next: e}
  d: {value: 1, next: e}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:3:53: error[entered-from-outside]: `a` leads to `d` from outside, into the branch of `b` that begins with `d`; lead it to `b`, or to `e`, where the branches meet
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_branch_does_not_lead_into_another() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c], join: e}}
  b: {value: 1, next: [{to: d, when: input.x}, {to: e}]}
  c: {value: 1, next: d}
  d: {value: 1, next: e}
  e: {value: 1}
";
    expect![[r#"
        g.yaml:5:23: error[entered-from-outside]: `c` leads to `d` from outside, into the branch of `a` that begins with `b`; lead it to `e`, where the branches meet, or let them meet at `d`: `join: d`
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_branch_does_not_lead_back_to_where_it_began() {
    let text = r"graph: g
nodes:
  s: {value: 1, next: a}
  a: {value: 1, max_visits: 3, next: {parallel: [b, c], join: d}}
  b: {value: 1, next: [{to: a, when: input.x}, {to: d}]}
  c: {value: 1, next: d}
  d: {value: 1}
";
    expect![[r#"
        g.yaml:5:29: error[entered-from-outside]: `b`, in the branch of `a` that begins with `b`, leads back to `a` outside of it; let the cycle begin where the branches meet, or stay inside of the branch
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_cycle_encloses_all_branches_or_stays_inside_one() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, next: [{to: b, when: input.x, max: 2}, {to: d}]}
  c: {value: 1, next: d}
  d: {value: 1, next: [{to: a, max: 2}, {to: end}]}
";
    expect![[""]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_join_is_reached() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c], join: d}, on_failure: d}
  b: {value: 1}
  c: {value: 1}
  d: {value: 1}
";
    expect![[r#"
        g.yaml:3:48: error[join-not-reached]: no branch of `a` leads to `d`, where they meet; lead a branch to it, or name another join
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn branches_nest() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, next: {parallel: [d, e]}}
  d: {value: 1, next: f}
  e: {value: 1, next: f}
  f: {value: 1, next: g}
  c: {value: 1, next: {parallel: [h, i]}}
  h: {value: 1, next: g}
  i: {value: 1, next: g}
  g: {value: 1}
";
    expect![[""]].assert_eq(&problems(text));
}

/// G8
#[test]
fn one_node_is_not_the_begin_of_two_branches() {
    let text = r"graph: g
nodes:
  a: {value: 1, next: {parallel: [b, {to: b, when: input.x}, c]}}
  b: {value: 1}
  c: {value: 1}
";
    expect![[r#"
        g.yaml:3:43: error[ambiguous-routes]: two branches of `a` begin with `b`, and a node runs in one branch; remove one of them, write another node for it, or work through a list with `for_each`
    "#]].assert_eq(&problems(text));
}

/// G16
#[test]
fn two_branches_that_set_one_variable_are_a_warning() {
    let text = r"graph: g
vars: {v: 0, w: 0}
nodes:
  a: {value: 1, next: {parallel: [b, c]}}
  b: {value: 1, set: {v: 1}, next: b2}
  b2: {value: 1, set: {v: 1, w: 2}, next: d}
  c: {value: 1, set: {v: 2}, next: d}
  d: {value: 1, set: {w: 1}, next: {parallel: [e, f], conflicts: last_wins}}
  e: {value: 1, set: {v: 1}}
  f: {value: 1, set: {v: 1}}
";
    expect![[r#"
        g.yaml:7:23: warning[branch-conflict]: two branches of `a` can set `v`, the other one in line 5, and the join fails where both do; add `conflicts: last_wins`, `first_wins` or `error` beside `parallel`
    "#]].assert_eq(&problems(text));
}

/// G8
#[test]
fn a_branch_that_leads_past_the_join_is_told_where_to_end() {
    expect![[r#"
        g.yaml:5:27: error[entered-from-outside]: `audit`, in the branch of `fan` that begins with `audit`, leads to `drop`, which lies behind `verdict`, where the branches meet; lead it to `verdict`, end the branch there, or name another `join`
    "#]]
    .assert_eq(&problems(
        "graph: g
nodes:
  fan: {value: 1, next: {parallel: [lint, audit], join: verdict}}
  lint: {value: 1, next: verdict}
  audit: {value: 2, next: drop}
  verdict: {value: 3, next: drop}
  drop: {value: 4}
",
    ));
}

/// G8
#[test]
fn a_wrong_route_of_a_branch_is_the_first_message() {
    let text = |out: &str| {
        format!(
            "graph: g
input: {{type: object}}
nodes:
  s: {{value: 1, next: [{{to: x, when: input == 1}}, {{to: a}}]}}
  a: {{value: 1, next: {{parallel: [b, c, d]JOIN}}}}
  b: {{value: 1, next: j}}
  c: {{value: 1, next: {out}}}
  d: {{value: 1, next: j}}
  x: {{value: 1}}
  j: {{value: 1}}
"
        )
    };
    let mut found = String::new();
    for out in ["x", "s", "end", "d", "jj"] {
        for join in ["", ", join: j"] {
            write!(found, "{out}{join}\n{}", problems(&text(out).replace("JOIN", join))).unwrap();
        }
    }
    expect![[r#"
        x
        g.yaml:5:34: error[no-common-join]: the branches of `a` that begin with `b` and `d` lead to `j`, and the one that begins with `c` does not, so they do not meet; lead `c` there, too, or let the others meet there: add `join: j` beside `parallel`
        x, join: j
        g.yaml:7:23: error[entered-from-outside]: `c`, in the branch of `a` that begins with `c`, leads to `x`, to which `s` leads from outside; lead it to `j`, where the branches meet, or end the branch there
        s
        g.yaml:5:34: error[no-common-join]: the branches of `a` that begin with `b` and `d` lead to `j`, and the one that begins with `c` does not, so they do not meet; lead `c` there, too, or let the others meet there: add `join: j` beside `parallel`
        s, join: j
        g.yaml:7:23: error[entered-from-outside]: `c`, in the branch of `a` that begins with `c`, leads back to `s` outside of it; let the cycle begin where the branches meet, or stay inside of the branch
        end
        g.yaml:5:34: error[no-common-join]: the branches of `a` that begin with `b` and `d` lead to `j`, and the one that begins with `c` does not, so they do not meet; lead `c` there, too, or let the others meet there: add `join: j` beside `parallel`
        end, join: j
        d
        g.yaml:7:23: error[entered-from-outside]: `c` leads to `d` from outside, into the branch of `a` that begins with `d`; lead it to `j`, where the branches meet, or let them meet at `d`: `join: d`
        d, join: j
        g.yaml:7:23: error[entered-from-outside]: `c` leads to `d` from outside, into the branch of `a` that begins with `d`; lead it to `j`, where the branches meet, or let them meet at `d`: `join: d`
        jj
        g.yaml:7:23: error[unknown-node]: `c` leads to `jj`, and the graph has no such node; did you mean `j`?
        jj, join: j
        g.yaml:7:23: error[unknown-node]: `c` leads to `jj`, and the graph has no such node; did you mean `j`?
    "#]].assert_eq(&found);
}
