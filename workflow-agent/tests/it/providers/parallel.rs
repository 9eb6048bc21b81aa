//! Fragments of parallel calls, in every style in which servers number them, at random places: each call has its own
//! arguments.

#![expect(clippy::format_collect, reason = "bodies are short")]

use serde_json::{Value, json};
use workflow_agent::Provider;

use super::last;

/// The ids of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    Always,
    First,
    Never,
}

/// The indices of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    Own,
    Zero,
    None,
}

fn fragment(call: usize, piece: usize, name: &str, arguments: &str, style: (Ids, Index, bool)) -> Value {
    let (ids, index, repeats_name) = style;
    let mut value = json!({"function": {"arguments": arguments}});
    if piece == 0 || repeats_name {
        value["function"]["name"] = name.into();
    }
    if ids == Ids::Always || ids == Ids::First && piece == 0 {
        value["id"] = format!("id_{call}").into();
    }
    match index {
        Index::Own => value["index"] = call.into(),
        Index::Zero => value["index"] = 0.into(),
        Index::None => {}
    }
    value
}

/// A call: its tool, and where its arguments are cut.
type Written = (u8, Vec<u8>);

/// The calls, their style, and the order of their fragments.
type Case = (Vec<Written>, (u8, u8, bool), Vec<u8>, bool);

fn fragments(calls: &[Written], style: (Ids, Index, bool)) -> Vec<Vec<Value>> {
    let names = ["read", "delete", "list"];
    let written = calls.iter().enumerate().map(|(number, (tool, cuts))| {
        let name = names[usize::from(*tool) % names.len()];
        // An object in an object, and a brace in a string.
        let arguments = json!({"for": {"name": name, "number": number}, "brace": "}\"{"}).to_string();
        let place = |cut: &u8| 1 + usize::from(*cut) % (arguments.len() - 1);
        let mut cuts: Vec<usize> = cuts.iter().take(4).map(place).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let ends = cuts.iter().copied().chain([arguments.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let pieces = begins.zip(ends).enumerate();
        pieces.map(|(piece, (from, to))| fragment(number, piece, name, &arguments[from..to], style)).collect()
    });
    written.collect()
}

/// A6, A80
#[test]
fn no_call_gets_the_arguments_of_another() {
    bolero::check!().with_iterations(2_000).with_type::<Case>().for_each(|(calls, style, order, lists)| {
        let calls = &calls[..calls.len().min(6)];
        let ids = [Ids::Always, Ids::First, Ids::Never][usize::from(style.0 % 3)];
        let index = [Index::Own, Index::Zero, Index::None][usize::from(style.1 % 3)];
        let mut queues = fragments(calls, (ids, index, style.2));
        let mut sent = Vec::new();
        let tells = ids == Ids::Always || index == Index::Own;
        // Fragments that say to which call they belong may come in any order that keeps those of a call.
        for next in order.iter().filter(|_| tells) {
            let open: Vec<usize> = (0..queues.len()).filter(|at| !queues[*at].is_empty()).collect();
            let Some(at) = open.get(usize::from(*next) % open.len().max(1)) else { break };
            sent.push(queues[*at].remove(0));
        }
        sent.extend(queues.into_iter().flatten());
        let together = if *lists && tells { 3 } else { 1 };
        let events = sent.chunks(together).map(|list| json!({"choices": [{"delta": {"tool_calls": list}}]}));
        let body: String = events.map(|event| format!("data: {event}\n\n")).collect::<String>()
            + &format!(
                "data: {}\n\ndata: [DONE]\n\n",
                json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
            );
        let reply = last(Provider::replay("openai", [&body]).unwrap()).unwrap();
        let mut numbers: Vec<u64> = Vec::new();
        for call in reply.calls() {
            assert_eq!(call.arguments["for"]["name"], *call.name, "{body}");
            numbers.extend(call.arguments["for"]["number"].as_u64());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..calls.len() as u64).collect::<Vec<_>>(), "{body}");
    });
}
