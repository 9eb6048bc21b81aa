//! The history of a run, the bound of sessions, and the operations that a message takes.

use workflow_agent::model::ModelError;

use super::*;
use crate::lives::{Disk, life};
use crate::pairing;

/// A42
#[test]
fn the_history_is_the_newest_whole_exchanges_within_half_the_window() {
    let model = echo().limits(window(2_000));
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        // An exchange of 1,004 characters each: three of them are within 4,000.
        for n in 0..8 {
            say(&session, &format!("{n}{}", "x".repeat(499))).await;
        }
        let request = model.requests().pop().unwrap();
        pairing::check(&request).unwrap();
        let begins: Vec<String> =
            request.messages.iter().map(|message| message.text()[..5].to_owned()).collect();
        assert_eq!(begins, ["4xxxx", "re: 4", "5xxxx", "re: 5", "6xxxx", "re: 6", "7xxxx"]);
    });
}

/// A42
#[test]
fn an_exchange_larger_than_half_the_window_is_no_history() {
    let model = echo().limits(window(2_000));
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&session, "small").await;
        say(&session, &"x".repeat(3_000)).await;
        say(&session, "last").await;
        assert_eq!(model.requests()[2].messages.len(), 1);
    });
}

/// A42, A53
#[test]
fn the_history_begins_with_the_latest_summary() {
    let model = ScriptedModel::respond(|request| {
        let is_summary = request.system.starts_with("You summarise");
        let has_summary = request.messages.iter().any(|message| message.text().starts_with("[Summary"));
        match asked(request).as_str() {
            _ if is_summary => ScriptedReply::text("they spoke of the sea"),
            "long" if !has_summary => ScriptedReply::fail(ModelError::context_limit("too long")),
            asked => ScriptedReply::text(format!("re: {asked}")),
        }
    });
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        for text in ["one", "two", "long", "after"] {
            assert!(matches!(say(&session, text).await, Outcome::Answered(_)));
        }
        assert_eq!(questions(&session).await, ["one", "two", "long", "after"]);
        let texts: Vec<String> = model
            .requests()
            .pop()
            .unwrap()
            .messages
            .iter()
            .map(|message| message.text().into_owned())
            .collect();
        let summary = "[Summary of the conversation so far]\nthey spoke of the sea";
        assert_eq!(texts, [summary, "long", "re: long", "after"]);
    });
}

/// A45
#[test]
fn the_oldest_exchanges_beyond_ten_thousand_are_removed() {
    let (disk, model) = (Disk::default(), echo());
    let agent = agent(&model);
    life(async {
        let engine = disk.healthy().engine(&agent);
        let session = session(&engine, &agent);
        for n in 0..4 {
            say(&session, &format!("q{n}")).await;
        }
        // As if there had been 9,997 others.
        let (context, head) = (engine.thread_context("ada"), "agent/session/a.s/head");
        let mut value: serde_json::Value = context.get(head).await.unwrap().unwrap();
        assert_eq!(value["count"], 4);
        value["count"] = json!(9_999);
        context.set(head, value).await.unwrap();
        for n in 4..8 {
            say(&session, &format!("q{n}")).await;
        }
        assert_eq!(questions(&session).await, ["q3", "q4", "q5", "q6", "q7"]);
        assert_eq!(
            model.requests()[7].messages.len(),
            11,
            "the run began with the exchanges that there were"
        );
        say(&session, "q8").await;
        assert_eq!(model.requests()[8].messages.len(), 11);
        let value: serde_json::Value = context.get(head).await.unwrap().unwrap();
        assert_eq!(value["count"], 10_000);
    });
}

/// A45
#[test]
fn a_message_takes_the_same_operations_however_long_its_session_is() {
    let (disk, model) = (Disk::default(), echo().limits(window(500)));
    let agent = agent(&model);
    life(async {
        let process = disk.healthy();
        let session = session(&process.engine(&agent), &agent);
        let mut counts = Vec::new();
        for n in 1_000..1_300 {
            say(&session, &format!("q{n}")).await;
            counts.push(process.taken_context_operations());
        }
        let late: Vec<usize> = [150, 200, 299].map(|n| counts[n].len()).into();
        assert!(late.iter().all(|count| *count <= 30), "{late:?}: {:?}", counts[299]);
        let most = counts[100..].iter().map(Vec::len).max().unwrap();
        let least = counts[100..].iter().map(Vec::len).min().unwrap();
        assert!(most - least <= 2, "{least} to {most}");
        let writes = |kinds: &[&str]| kinds.iter().filter(|kind| matches!(**kind, "set" | "update")).count();
        assert!(counts.iter().all(|kinds| writes(kinds) == writes(&counts[0])));
    });
}

/// A40, A42
#[test]
fn runs_without_an_answer_leave_gaps_that_later_runs_pass_over() {
    let model = ScriptedModel::respond(|request| match asked(request).as_str() {
        "fail" => ScriptedReply::fail(ModelError::permanent("no")),
        asked => ScriptedReply::text(format!("re: {asked}")),
    });
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&session, "one").await;
        for _ in 0..30 {
            say(&session, "fail").await;
        }
        say(&session, "two").await;
        say(&session, "fail").await;
        say(&session, "three").await;
        assert_eq!(questions(&session).await, ["one", "two", "three"]);
        let numbers: Vec<u64> = session.exchanges(0, 9).await.unwrap().iter().map(|one| one.number).collect();
        assert_eq!(numbers, [1, 32, 34]);
        assert_eq!(model.requests().pop().unwrap().messages.len(), 5);
    });
}

/// The ids of calls are unique in everything that a request may show.
///
/// A6
#[test]
fn calls_of_later_runs_have_other_ids() {
    let model = echo();
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        for n in 0..4 {
            say(&session, &format!("look {n}")).await;
        }
        for request in model.requests() {
            pairing::check(&request).unwrap();
        }
        assert_eq!(model.requests().len(), 8);
    });
}

/// Numbers of a damaged head are an error at once, and no search through all of them.
///
/// A40, A42
#[test]
fn a_head_whose_numbers_contradict_each_other_is_an_error_that_names_it() {
    let key = "agent/session/a.s/head";
    for (field, number) in [("last", u64::MAX), ("last", 1 << 40), ("started", u64::MAX), ("summary", 9)] {
        let (disk, agent) = (Disk::default(), agent(&echo()));
        life(async {
            let engine = disk.healthy().engine(&agent);
            let session = session(&engine, &agent);
            say(&session, "one").await;
            let context = engine.thread_context("ada");
            let mut head: serde_json::Value = context.get(key).await.unwrap().unwrap();
            head[field] = json!(number);
            context.set(key, head).await.unwrap();
        });
        life(async {
            let session = session(&disk.healthy().engine(&agent), &agent);
            let errors = [
                session.exchanges(0, 10).await.unwrap_err(),
                session.fork("copy").await.unwrap_err(),
                session.say("two").await.unwrap_err(),
            ];
            for error in errors {
                assert!(format!("{error:?}").contains(key), "{field}: {error:?}");
            }
        });
    }
}

/// A40, A42
#[test]
fn keys_that_are_no_numbers_are_left_out_and_a_long_gap_ends_the_history() {
    let (disk, model) = (Disk::default(), echo());
    let agent = agent(&model);
    life(async {
        let engine = disk.healthy().engine(&agent);
        let session = session(&engine, &agent);
        say(&session, "one").await;
        let context = engine.thread_context("ada");
        let mut first: serde_json::Value =
            context.get("agent/session/a.s/x/000000000001").await.unwrap().unwrap();
        for stray in ["1", "+5", "0000000000007", "end"] {
            context.set(&format!("agent/session/a.s/x/{stray}"), first.clone()).await.unwrap();
        }
        // As after a million of runs that nobody waited for.
        let key = "agent/session/a.s/head";
        let mut head: serde_json::Value = context.get(key).await.unwrap().unwrap();
        (head["started"], head["last"]) = (json!(1_000_000), json!(1_000_000));
        context.set(key, head).await.unwrap();
        first["before"] = json!(1);
        context.set("agent/session/a.s/x/000001000000", first).await.unwrap();
    });
    life(async {
        let session = session(&disk.healthy().engine(&agent), &agent);
        assert_eq!(questions(&session).await, ["one", "one"]);
        say(&session, "two").await;
        assert_eq!(questions(&session).await, ["one", "one", "two"]);
        // The exchange before the gap is not in the history.
        assert_eq!(model.requests().last().unwrap().messages.len(), 3);
    });
}
