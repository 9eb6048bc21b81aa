//! The exchange that a run leaves in its session when it ends without an answer, after something that acts began: its calls,
//! their results as far as they are known, and a note on the end.

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::report::Ending;

use crate::agent::Agent;
use crate::entry::{Entry, Note, NoteKind, ToolCall, ToolDone};
use crate::flow::order::{self, Move, Planned};
use crate::flow::state::reply_behind;
use crate::flow::{Start, call};
use crate::mark;

/// The longest text of an end in bytes.
const END: usize = 1_000;

/// The calls of a run, as its log has them.
pub(super) struct Calls<'a> {
    pub(super) planned: Option<&'a Planned>,
    pub(super) moves: &'a List<Move>,
    pub(super) begun: &'a List<Start>,
    pub(super) all: &'a List<ToolCall>,
}

impl Calls<'_> {
    /// Whether a call began that may have changed something.
    pub(super) fn have_acted(&self) -> bool {
        self.begun.iter().any(|begun| !matches!(begun, Start::Read(_)))
    }

    /// The results of the last reply's calls, if its results are not among the entries: a call that began and has none may
    /// have happened.
    fn unfinished(&self, own: &[&Entry]) -> Option<Entry> {
        let last = own.iter().rposition(|entry| matches!(entry, Entry::Assistant(_)))?;
        if own[last..].iter().any(|entry| matches!(entry, Entry::Results { .. })) {
            return None;
        }
        let reply = reply_behind(own.iter().copied(), last)?;
        let is_planned = |planned: &&Planned| {
            planned.calls.first().is_some_and(|first| reply.calls().any(|call| call.id == first.call))
        };
        let planned = self.planned.filter(is_planned)?;
        let mut known = order::after(planned, self.moves).results;
        let has_begun = |id: &str| self.begun.iter().any(|begun| **begun.call() == *id);
        let mut results: Vec<ToolDone> = Vec::with_capacity(planned.calls.len());
        for planned in &planned.calls {
            if let Some(place) = known.iter().position(|done| done.call == planned.call) {
                results.push(known.swap_remove(place));
            } else if has_begun(&planned.call)
                && let Some(found) = self.all.iter().find(|found| found.call == planned.call)
            {
                results.push(call::interrupted(found));
            }
        }
        Some(Entry::Results { results })
    }
}

/// The entries of the exchange: those of the run, the results that no entry has, and the note.
pub(super) fn entries(agent: &Agent, own: &[&Entry], calls: &Calls<'_>, end: &str) -> Vec<Entry> {
    let end = agent.inner.caller.redactor.text(end);
    let end = mark::data("end", &crate::tool::cut(&end, END));
    let text = format!(
        "[This run ended without an answer. What its calls did has happened, as their results say.]\n{end}"
    );
    let note = Entry::Note(Note::new(NoteKind::Ended, text));
    own.iter().copied().cloned().chain(calls.unfinished(own)).chain([note]).collect()
}

/// The end of a run that has no outcome.
pub(super) fn of_ending(ending: Option<&Ending>) -> String {
    match ending {
        Some(Ending::Cancelled { reason }) => format!("it was cancelled: {reason}"),
        Some(Ending::TimedOut { after }) => format!("it was stopped after {after:?}"),
        Some(Ending::DeadlinePassed { .. }) => "its deadline passed".to_owned(),
        Some(Ending::Failed { error, .. }) => format!("a failure ended it: {error}"),
        _ => "it was ended".to_owned(),
    }
}

impl Start {
    fn call(&self) -> &Arc<str> {
        match self {
            Self::Read(begun) => &begun.call,
            Self::Act(begun) => &begun.call,
            Self::Spawn(begun) => &begun.call,
        }
    }
}
