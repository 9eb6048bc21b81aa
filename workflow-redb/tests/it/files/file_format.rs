//! The bytes in a file: changing any of them changes the format.

use std::fmt::Write as _;

use expect_test::expect;
use redb::{Database, ReadableDatabase as _, TableDefinition, TableHandle as _};
use workflow_core::RunStatus;
use workflow_core::store::{ContextScope, ContextStore, ContextValue, EventStore};

use crate::fixtures::{Place, put, put_ended};

/// Every table with its content; bytes that are no text are escaped.
fn dump(place: &Place) -> String {
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_read().unwrap();
    let mut dump = String::new();
    let names: Vec<String> =
        transaction.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
    for name in names {
        writeln!(dump, "{name}").unwrap();
        let table: TableDefinition<&[u8], &[u8]> = TableDefinition::new(&name);
        for entry in transaction.open_table(table).unwrap().range::<&[u8]>(..).unwrap() {
            let (key, value) = entry.unwrap();
            let mut value = value.value().to_vec();
            if name == "workflow.runs" {
                // The time of the write differs each time, and the checksum with it.
                value[1..5].fill(0xff);
                value[13..21].fill(0xff);
            }
            if value.is_empty() {
                value.extend(b"(nothing)");
            }
            let value = value.escape_ascii().to_string().replace("\\\"", "\"");
            writeln!(dump, "  {}\n    {value}", key.value().escape_ascii()).unwrap();
        }
    }
    dump
}

#[tokio::test]
async fn a_file_has_the_tables_keys_and_values_of_the_format() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..1).await.unwrap();
    store.compact().await.unwrap();
    put(&store, "a", 1..2).await.unwrap();
    put_ended(&store, "order-17", RunStatus::Completed).await;
    put_ended(&store, "removed", RunStatus::Completed).await;
    store.remove(&"removed".into()).await.unwrap();
    let scopes = [ContextScope::Run("a".into()), ContextScope::Thread("a".into())];
    for scope in scopes {
        store.set(&scope, "rounds", Some(ContextValue::new([1, 2]))).await.unwrap();
    }
    drop(store);
    expect![[r#"
        workflow.contexts
          \x00\x00\x00\x00\x01arounds
            [1,2]
          \x01\x00\x00\x00\x01arounds
            [1,2]
        workflow.index
          \x00\x00\x00\x00\x04open\x00\x00\x00\x00eS\xf1\x00\x00\x00\x00\x00a
            (nothing)
          \x00\x00\x00\x00\tcompleted\x00\x00\x00\x00eS\xf1\x00\x00\x00\x00\x00order-17
            (nothing)
          \x01\x00\x00\x00\x06Orders\x00\x00\x00\x00eS\xf1\x00\x00\x00\x00\x00a
            (nothing)
          \x01\x00\x00\x00\x06Orders\x00\x00\x00\x00eS\xf1\x00\x00\x00\x00\x00order-17
            (nothing)
        workflow.meta
          format
            \x00\x00\x00\x02
          recovery
            one-phase
        workflow.open
          a
            (nothing)
        workflow.recent
          \x00\x00\x00\x00\x00\x00\x00\x00
            \x00\x00\x00\x07removed\x00\x00\x00\x00\x00\x00\x00\x00
        workflow.records
          \x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00
            \x84\x95\x98]\xbf{"run_started":{"format":1,"workflow":"Orders","table":{"fingerprint":"a5b651d855fe3ed0","shape":{"workflow":"Orders","events":[{"name":"Order","roles":["start"]},{"name":"Shipped","roles":["stop"]}],"steps":[{"name":"ship","inputs":[{"kind":"one","events":["Order"]}],"outputs":[{"event":"Shipped","least":1}]}]}},"thread":"user-4","metadata":{},"awaited":false,"private_thread":false,"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
          \x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x01
            \x84\xe8\xd9\xd7Q{"event_logged":{"seq":1,"scope":0,"cause":"outside","event":{"type":"Note","data":1},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
          \x00\x00\x00\x08order-17\x00\x00\x00\x00\x00\x00\x00\x00
            \x84\x1a\x81\xcax{"run_started":{"format":1,"workflow":"Orders","table":{"fingerprint":"a5b651d855fe3ed0","shape":{"workflow":"Orders","events":[{"name":"Order","roles":["start"]},{"name":"Shipped","roles":["stop"]}],"steps":[{"name":"ship","inputs":[{"kind":"one","events":["Order"]}],"outputs":[{"event":"Shipped","least":1}]}]}},"thread":"user-4","metadata":{},"awaited":false,"private_thread":false,"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
          \x00\x00\x00\x08order-17\x00\x00\x00\x00\x00\x00\x00\x01
            \x84z-\x87\xb9{"event_logged":{"seq":1,"scope":0,"cause":"outside","event":{"type":"Note","data":1},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
          \x00\x00\x00\x08order-17\x00\x00\x00\x00\x00\x00\x00\x02
            \x84\xf6\x01\x06\x15{"run_ended":{"status":"completed","at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}
        workflow.runs
          a
            \x84\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00{"workflow":"Orders","status":"running","started":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}
          order-17
            \x84\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00{"workflow":"Orders","status":"completed","started":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}
    "#]].assert_eq(&dump(&place));
}
