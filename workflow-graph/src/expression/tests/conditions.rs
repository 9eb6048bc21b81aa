//! Conditions, in native and in Hive documents.

use super::data;
use crate::expression::Expression;

/// G36
#[test]
fn conditions_are_true_or_false() {
    let holds = |source: &str| Expression::parse(source).unwrap().evaluate_condition(&data());
    assert_eq!(holds("a > 1"), Ok(true));
    assert_eq!(holds("false"), Ok(false));
    for source in ["a", "none", "s", "a and true", "not a", "1 if a else 2", "any(list)"] {
        let error = holds(source).unwrap_err().to_string();
        assert!(error.contains("true or false") || error.contains("no boolean"), "{source}: {error}");
    }
}

/// HV11
#[test]
fn in_hive_documents_empty_values_are_false_and_missing_ones_err() {
    let holds = |source: &str| Expression::parse(source).unwrap().evaluate_hive_condition(&data());
    for (source, expected) in [
        ("a", true),
        ("none", false),
        ("empty", false),
        ("''", false),
        ("0", false),
        ("a and s", true),
        ("not empty", true),
        ("empty or s", true),
        ("str(s).lower() == 'grüße'", true),
        ("str(none).strip() not in ('', 'None', 'null')", false),
        ("m.get('zz', 0)", false),
        ("m.get('in') == 1", true),
        ("any(list)", true),
        ("1 if s else 0", true),
    ] {
        assert_eq!(holds(source), Ok(expected), "{source}");
    }
    for source in ["zz", "zz == None", "m.zz is None", "zz.get('a')", "zz or true"] {
        assert!(holds(source).unwrap_err().message.contains("missing"), "{source}");
    }
}
