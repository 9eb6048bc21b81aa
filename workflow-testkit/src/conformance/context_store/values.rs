//! Values: a read returns what was written, whether the store keeps Rust values or JSON.

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextStore, ContextValue};

use super::place::Place;
use crate::conformance::stage::run;

pub fn values_are_read_back_as_they_were_written<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        for json in forms() {
            place.put_value(Some(ContextValue::from_json(json.clone()))).await;
            let read = place.value().await.map(|value| value.get::<Value>());
            let read = read.and_then(Result::ok);
            assert_eq!(read, Some(json), "a value that was set is read back as it was");
        }
    });
}

/// Every form that JSON has, at its limits.
fn forms() -> Vec<Value> {
    vec![
        json!(true),
        json!(0),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(-0.5),
        json!(""),
        json!("quotes \" and ' and \\, a\0b, ä, 日本, 🦀"),
        json!("long ".repeat(20_000)),
        json!([]),
        json!([null, [1, [2, [3]]]]),
        json!({}),
        json!({"": null, "a.b": {"c": [1.5, "d"]}, "$ref": "e"}),
    ]
}

pub fn a_value_that_is_null_is_a_value<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put_value(Some(ContextValue::new(()))).await;
        let value = place.value().await.map(|value| value.get::<Value>().ok());
        assert_eq!(
            value,
            Some(Some(Value::Null)),
            "a value whose JSON is `null` is not the same as no value"
        );
    });
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    id: u64,
    name: Option<String>,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Idle,
    Busy { since: i64 },
}

pub fn a_value_can_be_read_as_the_type_that_was_written<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let record = Record { id: u64::MAX, name: None, state: State::Busy { since: -1 } };
        let written = vec![record.clone(), Record { state: State::Idle, ..record }];
        place.put_value(Some(ContextValue::new(written.clone()))).await;
        let read = place.value().await.expect("a value that was set is there").get::<Vec<Record>>();
        let demand = "a type that survives its own serialisation survives the store";
        assert_eq!(read.unwrap_or_else(|error| panic!("{demand}, but: {error}")), written, "{demand}");
    });
}

pub fn a_value_can_change_its_type<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        place.put_value(Some(ContextValue::new("text"))).await;
        let read = place.value().await.and_then(|value| value.get::<String>().ok());
        assert_eq!(read.as_deref(), Some("text"), "a store does not know what a value means, nor its type");
    });
}

/// Has no form as JSON.
struct Formless;

impl Serialize for Formless {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("this value has no form as JSON, on purpose"))
    }
}

pub fn a_value_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing<S: ContextStore>(
    open: impl FnOnce() -> S,
) {
    run(open, |store| async move {
        let formless = || Some(ContextValue::new(Formless));
        let place = Place::new(&store);
        place.put(1).await;
        let set = place.store.set(&place.scope, &place.key, formless()).await;
        assert_refused_or_kept(&place, "set", set.map(drop)).await;
        let place = Place::new(&store);
        place.put(1).await;
        let mut change = |_| Ok(formless());
        let update = place.store.update(&place.scope, &place.key, &mut change).await;
        assert_refused_or_kept(&place, "update", update.map(drop)).await;
    });
}

async fn assert_refused_or_kept(place: &Place, call: &str, returned: Result<(), ContextError>) {
    match returned {
        // A store in memory keeps the value itself.
        Ok(()) => {
            let kept = place.value().await.is_some_and(|value| value.to_json().is_err());
            assert!(kept, "`{call}` that returns `Ok` has stored the value");
        }
        Err(ContextError::Unserialisable { .. }) => {
            let says_so = place.store.serialises();
            assert!(says_so, "a store that cannot keep a value without a form as JSON `serialises`");
            let demand = "an error other than `Unavailable` means that nothing was changed";
            assert_eq!(place.read().await, Some(1), "{demand}: `{call}` of a value without a form as JSON");
        }
        Err(error) => {
            panic!("`{call}` reports a value without a form as JSON as `Unserialisable`, not: {error}")
        }
    }
}
