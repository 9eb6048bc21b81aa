//! The results of a reply's calls as one entry, and repetitions.

use workflow_core::prelude::*;

use crate::agent::{Agent, StopReason};
use crate::entry::{Entry, Note, NoteKind, ToolDone};
use crate::flow::{Continued, Stopping, Think};

/// The entry of results, a note if the turns repeat, and the event that follows.
pub(super) fn results(
    agent: &Agent,
    gather: &Gather<ToolDone>,
    own: &List<Entry>,
) -> (Vec<Entry>, Continued) {
    let results: Vec<ToolDone> = gather.branches().filter_map(|branch| branch.event().cloned()).collect();
    let stopping = results.iter().find_map(|result| {
        let class = result.ends_run?;
        Some(StopReason::Failed { class, error: format!("`{}`: {}", result.tool, result.text).into() })
    });
    let entry = Entry::Results { results };
    if let Some(reason) = stopping {
        return (vec![entry], Continued::Stopping(Stopping::from(reason)));
    }
    let Some(most) = agent.inner.rules.repeats else {
        return (vec![entry], Continued::Think(Think {}));
    };
    let earlier = (0..own.len()).rev().filter_map(|index| own.get(index));
    match equal_turns(std::iter::once(&entry).chain(earlier)) {
        turns if turns >= most => {
            let stopping = Stopping::from(StopReason::Looping { turns });
            (vec![entry], Continued::Stopping(stopping))
        }
        turns if turns >= 2 && turns == most.saturating_sub(2).max(2) => {
            let text = format!(
                "You made the same tool calls with the same results in {turns} turns running. Try something else, or \
                 answer with the facts that you have."
            );
            (vec![entry, Entry::Note(Note::new(NoteKind::Looping, text))], Continued::Think(Think {}))
        }
        _ => (vec![entry], Continued::Think(Think {})),
    }
}

/// The number of last turns with the same calls and the same results. The newest entry comes first.
fn equal_turns<'a>(entries: impl Iterator<Item = &'a Entry>) -> u32 {
    let mut turns = 0;
    let mut last: Option<(&crate::entry::Reply, &[ToolDone])> = None;
    let mut results: Option<&[ToolDone]> = None;
    for entry in entries {
        match entry {
            Entry::Results { results: found } => results = Some(found),
            Entry::Assistant(reply) => {
                let Some(found) = results.take() else { return turns };
                match last {
                    None => last = Some((reply, found)),
                    Some((calls, same)) if is_same(calls, reply) && is_equal(same, found) => {}
                    Some(_) => return turns,
                }
                turns += 1;
            }
            Entry::Note(note) if note.about == NoteKind::Looping => {}
            Entry::User { .. } | Entry::Marker(_) | Entry::Steer { .. } => return turns,
            _ => {}
        }
    }
    turns
}

fn is_same(one: &crate::entry::Reply, other: &crate::entry::Reply) -> bool {
    one.calls()
        .map(|call| (&call.name, &call.arguments))
        .eq(other.calls().map(|call| (&call.name, &call.arguments)))
}

fn is_equal(one: &[ToolDone], other: &[ToolDone]) -> bool {
    one.iter()
        .map(|done| (&done.text, done.is_error))
        .eq(other.iter().map(|done| (&done.text, done.is_error)))
}
