//! Changed streams and chunks of every kind. A plain run tries a few hundred inputs of each; `BOLERO_RANDOM_ITERATIONS` and
//! `BOLERO_RANDOM_TEST_TIME_MS` set more.

use std::time::Duration;

use workflow_agent::Provider;
use workflow_agent::model::ModelEvent;

use super::recorded::streamed;

/// A change of a stream: the place, how many bytes go, and the bytes that come.
type Edit = (u16, u8, Vec<u8>);

/// Reads a changed stream: there is no panic, and an end comes last and once.
fn survives(kind: &str) {
    let recorded = streamed(kind);
    let check = bolero::check!().with_iterations(300).with_test_time(Duration::from_mins(1));
    check.with_type::<(Vec<Edit>, u8)>().for_each(|(edits, size)| {
        let mut stream = recorded.as_bytes().to_vec();
        for (at, gone, new) in edits.iter().take(4) {
            let from = usize::from(*at) % (stream.len() + 1);
            let to = (from + usize::from(*gone % 8)).min(stream.len());
            stream.splice(from..to, new.iter().copied());
        }
        let chunks = stream.chunks(usize::from(*size).max(1));
        let events = Provider::replay(kind, chunks).unwrap();
        let is_end = |event: &Result<ModelEvent, _>| matches!(event, Err(_) | Ok(ModelEvent::Finished(_)));
        assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1);
        assert!(events.last().is_some_and(is_end));
        let whole = Provider::replay(kind, [&stream]).unwrap();
        assert_eq!(format!("{whole:?}"), format!("{events:?}"));
    });
}

/// A80
#[test]
fn changed_streams_of_chat_completions_are_read_or_refused() {
    survives("openai");
}

/// A80
#[test]
fn changed_streams_of_responses_are_read_or_refused() {
    survives("openai_resp");
}

/// A80
#[test]
fn changed_streams_of_messages_are_read_or_refused() {
    survives("anthropic");
}

/// A80
#[test]
fn changed_streams_of_gemini_are_read_or_refused() {
    survives("gemini");
}

/// A80
#[test]
fn changed_streams_of_ollama_are_read_or_refused() {
    survives("ollama");
}
