//! The history of a run, the bound of sessions, and the operations that a message takes.

use std::collections::BTreeSet;
use std::ops::Range;

use workflow_agent::model::ModelError;

use super::*;
use crate::lives::{Disk, Fails, Lost, life};
use crate::pairing;

/// The numbers of the messages `m01`, `m02` and so on that a text has.
fn numbered(text: &str) -> BTreeSet<usize> {
    let parts = text.split(|character: char| !character.is_ascii_alphanumeric());
    parts.filter_map(|part| part.strip_prefix('m')?.parse().ok()).collect()
}

/// Everything that a request tells the model.
fn told(request: &ModelRequest) -> String {
    request.messages.iter().map(|message| message.text().into_owned() + "\n").collect()
}

/// Repeats each message, and summarises by naming all numbers that it reads.
fn numbering(window: ModelLimits) -> ScriptedModel {
    let model = ScriptedModel::respond(|request| {
        if !request.system.starts_with("You summarise") {
            return ScriptedReply::text(asked(request));
        }
        let names: Vec<_> = numbered(&told(request)).iter().map(|number| format!("m{number:02}")).collect();
        ScriptedReply::text(names.join(" "))
    });
    model.limits(window)
}

fn message(number: usize) -> String {
    format!("m{number:02} {}", "word ".repeat(79))
}

/// Says the messages of these numbers, and returns the summaries that viewers were shown. Each run knows all messages before.
async fn chat(session: &Session, model: &ScriptedModel, numbers: Range<usize>) -> usize {
    let mut shown = 0;
    for number in numbers {
        let mut run = session.say(message(number)).await.unwrap();
        while let Some(item) = run.next().await {
            shown += usize::from(matches!(item, Shown::Summarised(_)));
        }
        let request = model.requests().pop().unwrap();
        pairing::check(&request).unwrap();
        assert_eq!(numbered(&told(&request)), (1..=number).collect(), "the model knows all messages");
    }
    shown
}

fn summaries(model: &ScriptedModel) -> usize {
    model.requests().iter().filter(|request| request.system.starts_with("You summarise")).count()
}

/// A42, A53
#[test]
fn a_long_chat_forgets_nothing_and_each_summary_is_made_once_and_shown() {
    let model = numbering(window(8_000));
    let (disk, agent) = (Disk::default(), agent(&model));
    let mut shown = 0;
    for begin in [1, 31] {
        // In two processes.
        let chat = async {
            let session = session(&disk.healthy().engine(&agent), &agent);
            chat(&session, &model, begin..begin + 30).await
        };
        shown += life(chat);
    }
    assert!((1..=3).contains(&shown), "{shown}");
    let requests: Vec<String> = model.requests().iter().map(told).collect();
    assert_eq!(requests.iter().collect::<BTreeSet<_>>().len(), requests.len(), "no call is made twice");
    assert!((shown..=2 * shown).contains(&summaries(&model)), "{}", summaries(&model));
}

/// A42, A53
#[test]
fn a_history_of_many_windows_is_summarised_part_by_part() {
    let disk = Disk::default();
    let large = numbering(window(128_000));
    let before = agent(&large);
    life(async {
        let session = session(&disk.healthy().engine(&before), &before);
        assert_eq!(chat(&session, &large, 1..31).await, 0);
    });
    let small = numbering(window(2_000));
    let agent = agent(&small);
    life(async {
        let session = session(&disk.healthy().engine(&agent), &agent);
        assert_eq!(chat(&session, &small, 31..32).await, 1, "viewers see one summary");
    });
    assert!(summaries(&small) > 5, "{} calls", summaries(&small));
    for request in small.requests() {
        assert!(told(&request).len() < 8_000, "{} bytes", told(&request).len());
    }
}

/// A40, A53
#[test]
fn a_summary_of_a_run_that_failed_then_is_not_made_again() {
    let model = ScriptedModel::respond(|request| {
        if request.system.starts_with("You summarise") {
            return ScriptedReply::text("all of it");
        }
        match asked(request) {
            asked if asked.starts_with("fail") => ScriptedReply::fail(ModelError::permanent("no such key")),
            asked => ScriptedReply::text(asked),
        }
    });
    let model = model.limits(window(2_000));
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        for number in 1..8 {
            say(&session, &message(number)).await;
        }
        assert_eq!(summaries(&model), 0);
        let outcome = say(&session, &format!("fail {}", "x".repeat(900))).await;
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        let made = summaries(&model);
        assert!(made > 0);
        say(&session, "next").await;
        assert_eq!(summaries(&model), made);
        let told = told(&model.requests().pop().unwrap());
        assert!(told.contains("all of it") && told.contains("no such key"), "{told}");
    });
}

/// A42, A53
#[test]
fn a_summary_in_parts_is_paid_once_wherever_its_process_ends() {
    for lost in [Lost::Operation, Lost::Answer] {
        for at in 0.. {
            let disk = Disk::default();
            let large = numbering(window(128_000));
            let before = agent(&large);
            life(async {
                chat(&session(&disk.healthy().engine(&before), &before), &large, 1..12).await;
            });
            let small = numbering(window(2_000));
            let agent = agent(&small);
            let process = disk.process(Fails::From(at, lost));
            life(async {
                if let Ok(run) = session(&process.engine(&agent), &agent).say(message(12)).await {
                    drop(run.outcome().await);
                }
            });
            life(async {
                let session = session(&disk.healthy().engine(&agent), &agent);
                if let Some(run) = session.open_run().await.unwrap() {
                    run.outcome().await.unwrap();
                }
                if questions(&session).await.len() == 11 {
                    say(&session, &message(12)).await;
                }
            });
            let mut requests: Vec<String> = small.requests().iter().map(told).collect();
            let all = requests.len();
            requests.sort();
            requests.dedup();
            assert!(all - requests.len() <= 1, "{lost:?} {at}: {all} calls");
            if !process.has_failed() {
                assert!(at > 8, "{at} operations");
                break;
            }
        }
    }
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
        // The exchanges since the last summary are read, as many as fit in the window.
        let most = |counts: &[Vec<&'static str>]| counts.iter().map(Vec::len).max().unwrap();
        assert!(most(&counts) <= 60, "{}: {:?}", most(&counts), counts[299]);
        assert!(
            most(&counts[200..]) <= most(&counts[..200]),
            "{} to {}",
            most(&counts[..200]),
            most(&counts)
        );
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
