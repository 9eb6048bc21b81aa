//! Paths of checks: their values, wildcards, and `any:`.

use serde_json::json;

use super::support::unmet;

// SW5
#[test]
fn null_and_missing_count_as_missing() {
    let check = "{name: c, required: [n.a.b]}";
    assert_eq!(unmet(check, json!({"a": {"b": false}})), None);
    for data in
        [json!({"a": {"b": null}}), json!({"a": {}}), json!({"a": 1}), json!({"a": null}), json!(null)]
    {
        assert_eq!(unmet(check, data).unwrap(), "`n.a.b` is missing");
    }
}

#[test]
fn indices_and_quoted_keys_lead_into_lists_and_maps() {
    let data = json!({"list": [{"a b": 1}, 2]});
    assert_eq!(unmet("{name: c, required: ['n.list[0][\"a b\"]', 'n.list[1]']}", data.clone()), None);
    let reason = unmet("{name: c, required: ['n.list[1][\"a b\"]', 'n.list[2]', 'n.list.x']}", data).unwrap();
    assert_eq!(reason, "`n.list[1][\"a b\"]` is missing; `n.list[2]` is missing; `n.list.x` is missing");
}

#[test]
fn equality_is_that_of_expressions() {
    let check = "{name: c, path: n.a, equals: 4}";
    assert_eq!(unmet(check, json!({"a": 4.0})), None);
    assert_eq!(unmet(check, json!({"a": "4"})).unwrap(), "`n.a` is \"4\"; it has to be 4");
    assert_eq!(unmet(check, json!({})).unwrap(), "`n.a` is missing; it has to be 4");
    assert_eq!(unmet("{name: c, path: n.a, equals: null}", json!({})), None);
    assert_eq!(unmet("{name: c, path: n.a, equals: {x: [1]}}", json!({"a": {"x": [1]}})), None);
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    assert!(unmet("{name: c, path: n.a, equals: [1]}", json!({ "a": deep })).is_some());
}

#[test]
fn one_of_several_values_is_enough_for_in() {
    let check = "{name: c, path: n.a, in: [1, x, null]}";
    assert_eq!(unmet(check, json!({"a": "x"})), None);
    assert_eq!(unmet(check, json!({})), None);
    assert_eq!(
        unmet(check, json!({"a": [1]})).unwrap(),
        "`n.a` is [1]; it has to be one of [1, \"x\", null]"
    );
}

#[test]
fn patterns_fit_texts_alone() {
    let check = "{name: c, path: n.a, matches: '^v[0-9]+$'}";
    assert_eq!(unmet(check, json!({"a": "v12"})), None);
    assert_eq!(unmet(check, json!({"a": "12"})).unwrap(), "`n.a` is \"12\"; it has to match `^v[0-9]+$`");
    assert_eq!(
        unmet(check, json!({"a": 12})).unwrap(),
        "`n.a` is 12, which is no text; it has to match `^v[0-9]+$`"
    );
    assert_eq!(unmet(check, json!({"a": null})).unwrap(), "`n.a` is missing; it has to match `^v[0-9]+$`");
}

#[test]
fn a_wildcard_means_every_element() {
    let check = "{name: c, path: 'n.list[*].ok', equals: true}";
    assert_eq!(unmet(check, json!({"list": [{"ok": true}, {"ok": true}]})), None);
    assert_eq!(
        unmet(check, json!({"list": [{"ok": true}, {"ok": 1}, {}, 5, {"ok": 2}, {"ok": true}]})).unwrap(),
        "`n.list[1].ok` is 1, `n.list[2].ok` is missing, `n.list[3].ok` is missing and 1 more; each has to be true"
    );
    let check = "{name: c, required: ['n.list[*].ok']}";
    assert_eq!(unmet(check, json!({"list": [{"ok": false}]})), None);
    assert_eq!(
        unmet(check, json!({"list": [{"ok": false}, {}, {"ok": null}]})).unwrap(),
        "`n.list[1].ok` is missing, `n.list[2].ok` is missing"
    );
}

#[test]
fn any_means_at_least_one_element() {
    let check = "{name: c, path: 'any:n.list[*].ok', equals: true}";
    assert_eq!(unmet(check, json!({"list": [{"ok": 1}, {"ok": true}]})), None);
    assert_eq!(
        unmet(check, json!({"list": [{"ok": 1}, {}]})).unwrap(),
        "`n.list[0].ok` is 1, `n.list[1].ok` is missing; one has to be true"
    );
    let check = "{name: c, required: ['any:n.list[*].ok']}";
    assert_eq!(unmet(check, json!({"list": [{}, {"ok": 1}]})), None);
    assert_eq!(
        unmet(check, json!({"list": [{}]})).unwrap(),
        "`n.list[0].ok` is missing; one has to be there"
    );
    assert_eq!(unmet("{name: c, required: ['any:n.a']}", json!({})).unwrap(), "`n.a` is missing");
}

// SW5
#[test]
fn a_wildcard_over_nothing_fails_required_and_passes_tests_without_any() {
    for data in [json!({"list": []}), json!({"list": null}), json!({})] {
        let nothing = "`n.list[*].a` has no element";
        assert_eq!(unmet("{name: c, required: ['n.list[*].a']}", data.clone()).unwrap(), nothing);
        assert_eq!(unmet("{name: c, required: ['any:n.list[*].a']}", data.clone()).unwrap(), nothing);
        assert_eq!(unmet("{name: c, path: 'n.list[*].a', equals: 1}", data.clone()), None);
        let any = unmet("{name: c, path: 'any:n.list[*].a', matches: x}", data).unwrap();
        assert_eq!(any, "`n.list[*].a` has no element; one has to match `x`");
    }
}

#[test]
fn a_wildcard_over_something_else_than_a_list_is_not_met() {
    let data = json!({"rows": [{"cells": [1]}, {"cells": {"x": 1}}]});
    assert_eq!(
        unmet("{name: c, path: 'n.rows[*].cells[*]', equals: 1}", data.clone()).unwrap(),
        "`n.rows[1].cells` is {\"x\": 1}, which is no list; each has to be 1"
    );
    assert_eq!(
        unmet("{name: c, required: ['n.rows[*].cells[*]']}", data).unwrap(),
        "`n.rows[1].cells` is {\"x\": 1}, which is no list"
    );
}
