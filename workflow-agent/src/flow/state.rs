//! The state of a run as a function of its entries: turns, usage, repetitions, the phase.

use crate::agent::Agent;
use crate::budget::Spent;
use crate::entry::{Entry, NoteKind, Reply};
use crate::model::{Finish, Usage};

/// The state of a run.
#[derive(Debug, Default)]
pub(crate) struct State<'a> {
    /// Replies of the model, closing calls not counted.
    pub(crate) turns: u32,
    pub(crate) spent: Spent,
    /// The last reply.
    pub(crate) last: Option<&'a Reply>,
    /// The phase that the last marker entered.
    pub(crate) entered: Option<&'a str>,
    /// Summaries since the last reply.
    pub(crate) summaries: u32,
    /// Those of them to which an error of the provider led.
    pub(crate) overflows: u32,
    /// Remarks of the judge in this phase.
    pub(crate) judge_retries: u32,
    /// Remarks about unfit data in this phase.
    pub(crate) output_retries: u32,
    /// Replies in a row that were cut off with calls in them.
    pub(crate) cut_off: u32,
    /// Whether the next call must be the last one.
    pub(crate) closing: bool,
    /// Whether the closing call has been made.
    pub(crate) closed: bool,
}

impl<'a> State<'a> {
    pub(crate) fn of(own: &[&'a Entry], agent: &Agent) -> Self {
        let price = agent.inner.caller.model.limits().price;
        let mut state = Self::default();
        for entry in own {
            match entry {
                Entry::Assistant(reply) => {
                    state.turns += u32::from(!reply.closing);
                    state.closed |= reply.closing;
                    state.spent.add(reply.usage, price);
                    state.last = Some(reply);
                    if reply.finish != Finish::ContextLimit {
                        (state.summaries, state.overflows) = (0, 0);
                    }
                    if reply.finish != Finish::Length {
                        state.cut_off = 0;
                    }
                }
                Entry::Results { results } => {
                    for result in results {
                        state.spent.tool_calls += u64::from(result.ran) + result.tool_calls;
                        state.spent.add_at(result.usage.unwrap_or_default(), result.cost);
                    }
                }
                Entry::Note(note) => {
                    state.spent.add_at(note.usage, note.cost);
                    match note.about {
                        NoteKind::Judge => state.judge_retries += 1,
                        NoteKind::Output => state.output_retries += 1,
                        NoteKind::Length => state.cut_off += 1,
                        NoteKind::Closing => state.closing = true,
                        NoteKind::Looping | NoteKind::Ended | NoteKind::Window => {}
                    }
                }
                Entry::Marker(marker) => {
                    state.spent.add_at(marker.usage, marker.cost);
                    state.entered = Some(&marker.entered);
                    (state.judge_retries, state.output_retries) = (0, 0);
                }
                Entry::Summary(summary) => {
                    state.spent.add(summary.usage, price);
                    state.summaries += 1;
                    state.overflows += u32::from(summary.overflow);
                }
                _ => {}
            }
        }
        state
    }

    /// The same with the usage of a judge whose remark is in no entry.
    pub(crate) fn and_spent(mut self, usage: Usage, cost: f64) -> Self {
        self.spent.add_at(usage, cost);
        self
    }

    /// The text of the last reply.
    pub(crate) fn last_text(&self) -> String {
        self.last.map(Reply::text).unwrap_or_default()
    }

    /// The text of the last reply that has one.
    pub(crate) fn latest_text(own: &[&Entry]) -> String {
        let texts = own.iter().rev().filter_map(|entry| match entry {
            Entry::Assistant(reply) => Some(reply.text()),
            _ => None,
        });
        texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
    }
}

/// The first reply behind the `seen` entries that its call saw. Messages that arrived during the call stand before it.
pub(super) fn reply_behind<'a>(own: impl Iterator<Item = &'a Entry>, seen: usize) -> Option<&'a Reply> {
    own.skip(seen).find_map(|entry| match entry {
        Entry::Assistant(reply) => Some(reply),
        _ => None,
    })
}
