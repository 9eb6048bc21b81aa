//! Missing values, and the functions that take them.

use serde_json::json;

use super::{error, have};

/// G36
#[test]
fn a_missing_value_equals_null_and_errs_elsewhere() {
    have(&[
        ("m.zz == null", json!(true)),
        ("null != m.zz", json!(false)),
        ("zz is None", json!(true)),
        ("zz.a.b == zz", json!(true)),
        ("none.a == null", json!(true)),
        ("list[7] == null", json!(true)),
        ("m.zz == 1", json!(false)),
        ("(m.zz if yes else 1) == null", json!(true)),
    ]);
    for source in [
        "m.zz",
        "m.zz + 1",
        "m.zz < 1",
        "m.zz in list",
        "1 in m.zz",
        "not m.zz",
        "[m.zz]",
        "len(m.zz)",
        "-zz",
        "zz and true",
        "1 if zz else 2",
    ] {
        assert!(error(source).contains("missing"), "{source}: {}", error(source));
    }
}

/// G36
#[test]
fn has_default_and_get_take_missing_values() {
    have(&[
        ("has(m.b)", json!(true)),
        ("has(m.b.zz)", json!(false)),
        ("has(zz.a)", json!(false)),
        ("has(a.b)", json!(false)),
        ("has(none)", json!(true)),
        ("has(m, 'zz')", json!(false)),
        ("m.has('b')", json!(true)),
        ("default(m.zz, 1)", json!(1)),
        ("default(none, 1)", json!(1)),
        ("default(m.zz, m.zz) == null", json!(true)),
        ("default(default(m.zz, m.n), 3)", json!(3)),
        ("m.zz.default(2)", json!(2)),
        ("m.get('zz')", json!(null)),
        ("m.get('zz', 4)", json!(4)),
        ("m.get('n', 4)", json!(null)),
        ("get(zz, 'a', 5)", json!(5)),
        ("get(list, 9, 6)", json!(6)),
    ]);
    assert!(error("default(m.zz + 1, 0)").contains("missing"));
    assert!(error("a.b").contains("a number has no keys"));
    assert!(error("default(m.zz, a.b)").contains("a number has no keys"));
}
