//! The results of a reply's calls as one entry, and repetitions.

use workflow_core::prelude::*;

use crate::agent::{Agent, StopReason};
use crate::compact;
use crate::entry::{Entry, Note, NoteKind, ToolCall, ToolDone};
use crate::flow::order::{self, After, Move, Planned};
use crate::flow::{Collected, Continued, Stopping, Think, admit};
use crate::tool;

/// The calls that begin after an approval or a result. After the last result of the reply, the entry of all, a note if the
/// turns repeat, and the event that follows.
pub(super) fn next(
    agent: &Agent,
    planned: &Planned,
    moves: &List<Move>,
    calls: &List<ToolCall>,
    own: &List<Entry>,
) -> Result<Collected, StepError> {
    let After { is_over, begin, mut approved, results } = order::after(planned, moves);
    if is_over {
        let (entries, continued) = collected(agent, in_order(planned, results), own);
        return Ok((Vec::new(), entries, Some(continued)));
    }
    let mut start = Vec::with_capacity(begin.len());
    for begun in begin {
        let call = admit::call_of(calls, &begun.call)?;
        let approval = approved.iter_mut().find(|approved| approved.call == begun.call);
        start.push(admit::start_of(agent, call, approval.and_then(|approved| approved.edited.take())));
    }
    Ok((start, Vec::new(), None))
}

/// The results in the order of their calls.
fn in_order(planned: &Planned, mut results: Vec<ToolDone>) -> Vec<ToolDone> {
    results.sort_by_key(|done| planned.calls.iter().position(|planned| planned.call == done.call));
    results
}

/// The entry of results, a note if the turns repeat, and the event that follows.
fn collected(agent: &Agent, results: Vec<ToolDone>, own: &List<Entry>) -> (Vec<Entry>, Continued) {
    let stopping = results.iter().find_map(|result| {
        let class = result.ends_run?;
        Some(StopReason::Failed { class, error: format!("`{}`: {}", result.tool, result.text).into() })
    });
    let entry = Entry::Results { results: sharing(agent, results) };
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

/// The results within the part of the window that those of one reply share. The log has each as a whole beside them.
fn sharing(agent: &Agent, results: Vec<ToolDone>) -> Vec<ToolDone> {
    let shared = compact::shared(agent.inner.caller.model.limits().context);
    let longest = compact::share(results.iter().map(|done| done.text.len()).collect(), shared);
    let shortened = |done: ToolDone| {
        if done.text.len() <= longest {
            return done;
        }
        // Without the id of the call: results of equal turns have equal texts (A5).
        let note = "\n[The results of this turn were too long together. The log of the run has this one as a whole, under the id \
                    of its call. To read more of it, make the call again for less at a time, if repeating it does no harm.]";
        let text = format!("{}{note}", tool::cut(&done.text, longest)).into();
        ToolDone { text, ..done.clone() }
    };
    results.into_iter().map(shortened).collect()
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
