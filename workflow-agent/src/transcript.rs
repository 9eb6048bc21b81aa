//! Entries to messages. A pure function: the same entries make the same messages, byte for byte, so a request begins with
//! the request before. Each call has exactly one result directly behind it, also where the entries lack one.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::entry::{self, Entry, Marker, NoteKind, Reply, Summary, ToolDone};
use crate::mark;
use crate::model::{Message, Part, ToolResult};

/// The name of the tool that takes a typed answer.
pub(crate) const FINAL_ANSWER: &str = "final_answer";

/// The message before a reply with which a conversation would begin.
const BEFORE: &str = "[The begin of the conversation is left out here]";

/// The message to the model behind results that were cut.
const CUT: &str = "[The results so far were too long for the context window, and are shortened. The whole results are in the \
log of the run. To read more of one, make its call again for less at a time, if repeating it does no harm.]";

/// The characters of a result that was shortened.
pub(crate) const SHORT_RESULT: usize = 200;

/// One entry in a line, with its index among the entries of the run, if the run has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) own: Option<usize>,
}

/// The entries before a run: the exchanges of its session, or the conversation that it was given.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before<'a> {
    pub(crate) history: &'a [Arc<[Entry]>],
    pub(crate) given: &'a [Entry],
}

/// The entries that the model sees, in order: of the run those behind its last summary or isolated phase, and else those
/// before the run as well.
pub(crate) fn line<'a>(before: Before<'a>, own: &[&'a Entry]) -> Vec<Item<'a>> {
    in_order(as_logged(before, own))
}

fn as_logged<'a>(before: Before<'a>, own: &[&'a Entry]) -> Vec<Item<'a>> {
    let item = |index: usize| Item { entry: own[index], own: Some(index) };
    let begin = begin(own);
    let summary = own.iter().enumerate().rev().find_map(|(index, entry)| match entry {
        Entry::Summary(summary) => Some((index, summary.keep.min(index))),
        _ => None,
    });
    match (summary.filter(|(cut, _)| *cut >= begin.unwrap_or(0)), begin) {
        (Some((cut, keep)), _) => {
            let unheard: Vec<usize> = unheard(&own[..cut]).collect();
            // The message and the markers stay beside a summary, and so does all that no call has seen.
            let stays = |index: &usize| match own[*index] {
                Entry::User { .. } | Entry::Marker(_) => *index >= begin.unwrap_or(0),
                _ => unheard.contains(index),
            };
            let mut line = vec![item(cut)];
            if begin.is_none() && !own.iter().any(|entry| matches!(entry, Entry::User { .. })) {
                // The message of a chat is the last of the conversation that the run was given.
                let asked = before.given.last().filter(|entry| matches!(entry, Entry::User { .. }));
                line.extend(asked.map(|entry| Item { entry, own: None }));
            }
            line.extend((0..keep).filter(stays).map(item));
            line.extend((keep..cut).filter(|index| !is_cut(own[*index])).map(item));
            line.extend((cut + 1..own.len()).map(item));
            line
        }
        (None, Some(begin)) => {
            let mut line = vec![item(begin)];
            // Messages that no call has seen belong to the next phase as well.
            line.extend(unheard(&own[..begin]).map(item));
            line.extend((begin + 1..own.len()).map(item));
            line
        }
        (None, None) => whole(before, own),
    }
}

/// The line with everything before the run.
fn whole<'a>(before: Before<'a>, own: &[&'a Entry]) -> Vec<Item<'a>> {
    let mut line = Vec::with_capacity(own.len());
    for (index, entry) in own.iter().enumerate() {
        match entry {
            Entry::History(_) => {
                let exchanges = before.history.iter().flat_map(|exchange| exchange.iter());
                line.extend(exchanges.map(|entry| Item { entry, own: None }));
            }
            Entry::Given => {
                let given: Vec<&Entry> = before.given.iter().collect();
                let given = &given[begin(&given).unwrap_or(0)..];
                line.extend(given.iter().map(|entry| Item { entry, own: None }));
            }
            _ => line.push(Item { entry, own: Some(index) }),
        }
    }
    line
}

/// The index of the marker of the last isolated phase, which sees nothing before it.
pub(crate) fn begin(entries: &[&Entry]) -> Option<usize> {
    entries.iter().rposition(|entry| matches!(entry, Entry::Marker(marker) if marker.hand_off.is_some()))
}

fn is_cut(entry: &Entry) -> bool {
    matches!(entry, Entry::Summary(_) | Entry::History(_) | Entry::Given)
}

/// The indices of the messages that no model call of the run has seen.
pub(crate) fn unheard(own: &[&Entry]) -> impl Iterator<Item = usize> {
    let seen = own.iter().rev().find_map(|entry| match entry {
        Entry::Assistant(reply) => Some(reply.seen),
        _ => None,
    });
    let from = seen.unwrap_or(0);
    let steers: Vec<usize> =
        (from..own.len()).filter(|index| matches!(own[*index], Entry::Steer { .. })).collect();
    steers.into_iter()
}

/// The messages of a line. Results among its first `short_before` items are shortened unless they are errors.
pub(crate) fn messages(line: &[Item<'_>], short_before: usize) -> Vec<Message> {
    let mut open = Messages { done: Vec::with_capacity(line.len()), pending: None, late: Vec::new() };
    let last_cut = line.iter().rposition(|item| matches!(item.entry, Entry::Cut { .. })).unwrap_or(0);
    for (place, item) in line.iter().enumerate() {
        let most = if place < last_cut { most_of_results(&line[place..]) } else { usize::MAX };
        open.take(item.entry, Longest { short: place < short_before, most });
    }
    open.settle();
    // Clients drop the oldest messages of a chat, and providers refuse a conversation that begins with a reply.
    if matches!(open.done.first(), Some(Message::Assistant { .. })) {
        open.done.insert(0, Message::user(BEFORE));
    }
    open.done
}

/// The most characters of a result, by the cuts behind it.
fn most_of_results(behind: &[Item<'_>]) -> usize {
    let cuts = behind.iter().filter_map(|item| match item.entry {
        Entry::Cut { most } => Some(*most),
        _ => None,
    });
    cuts.min().unwrap_or(usize::MAX)
}

/// The longest text of a result.
#[derive(Debug, Clone, Copy)]
struct Longest {
    /// Whether it is shortened unless it is an error.
    short: bool,
    /// The most characters, of errors too.
    most: usize,
}

/// The line with each reply before the messages that it did not see.
fn in_order(line: Vec<Item<'_>>) -> Vec<Item<'_>> {
    if !line.iter().any(|item| matches!(item.entry, Entry::Steer { .. })) {
        return line;
    }
    let mut ordered: Vec<Item<'_>> = Vec::with_capacity(line.len());
    for item in line {
        let mut place = ordered.len();
        if let (Entry::Assistant(reply), Some(_)) = (item.entry, item.own) {
            let unseen = |before: &Item<'_>| {
                matches!(before.entry, Entry::Steer { .. }) && before.own.is_some_and(|own| own >= reply.seen)
            };
            while place > 0 && unseen(&ordered[place - 1]) {
                place -= 1;
            }
        }
        ordered.insert(place, item);
    }
    ordered
}

/// Messages under construction.
struct Messages<'a> {
    done: Vec<Message>,
    /// The calls that have no results yet.
    pending: Option<&'a [Part]>,
    /// Entries that came between calls and their results: they follow the results.
    late: Vec<&'a Entry>,
}

impl<'a> Messages<'a> {
    fn take(&mut self, entry: &'a Entry, longest: Longest) {
        match entry {
            Entry::Assistant(Reply { parts, .. }) | Entry::Said { parts } => {
                self.settle();
                self.reply(parts);
            }
            Entry::Results { results } => self.results(results, longest),
            _ if self.pending.is_some() => self.late.push(entry),
            _ => self.done.extend(other(entry)),
        }
    }

    fn reply(&mut self, parts: &'a Arc<[Part]>) {
        // Providers refuse messages without a text or a call; thoughts alone are none.
        if parts.iter().any(has_content) {
            self.done.push(Message::Assistant { parts: Arc::clone(parts) });
        }
        self.pending = entry::calls(parts).next().is_some().then_some(parts);
    }

    fn results(&mut self, results: &[ToolDone], longest: Longest) {
        let Some(parts) = self.pending.take() else { return };
        let mut all = Vec::with_capacity(results.len());
        for call in entry::calls(parts) {
            // Results are in the order of their calls, and have the same ids, unless they were stored meanwhile.
            let same = results.get(all.len()).filter(|result| Arc::ptr_eq(&result.call, &call.id));
            let found = same.or_else(|| results.iter().find(|result| result.call == call.id));
            all.push(found.map_or_else(|| missing(call), |found| result_of(call, found, longest)));
        }
        self.done.push(Message::Results(all));
        self.late();
    }

    /// Gives calls without results the result that they did not run.
    fn settle(&mut self) {
        if let Some(parts) = self.pending.take() {
            self.done.push(Message::Results(entry::calls(parts).map(missing).collect()));
        }
        self.late();
    }

    fn late(&mut self) {
        self.done.extend(self.late.drain(..).filter_map(other));
    }
}

fn has_content(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.trim().is_empty(),
        Part::Thought { .. } => false,
        _ => true,
    }
}

fn missing(call: &crate::model::ToolUse) -> ToolResult {
    let text = if &*call.name == FINAL_ANSWER { "received" } else { "this call was not run" };
    ToolResult::new(Arc::clone(&call.id), Arc::clone(&call.name), text, &*call.name != FINAL_ANSWER)
}

fn result_of(call: &crate::model::ToolUse, done: &ToolDone, Longest { short, most }: Longest) -> ToolResult {
    let marked = |text: &str| Arc::from(mark::data(&format!("tool {}", call.name), text));
    let most = if short && !done.is_error { SHORT_RESULT.min(most) } else { most };
    let short = if most == usize::MAX { None } else { done.text.char_indices().nth(most) };
    let text = match short {
        Some((end, _)) => {
            let left_out = done.text.len() - end;
            marked(&format!("{}… [{left_out} more bytes, left out here]", &done.text[..end]))
        }
        None => done.marked.text(|| marked(&done.text)),
    };
    ToolResult::new(Arc::clone(&call.id), Arc::clone(&call.name), text, done.is_error)
}

/// The message of an entry that is neither a reply nor results.
fn other(entry: &Entry) -> Option<Message> {
    let text: Arc<str> = match entry {
        Entry::User { text, images } if text.trim().is_empty() && images.is_empty() => return None,
        Entry::User { text, images } => {
            return Some(Message::User { text: Arc::clone(text), images: Arc::clone(images) });
        }
        Entry::Note(note) => match note.about {
            NoteKind::Judge => format!("[Judge feedback]: {}", note.text).into(),
            _ => Arc::clone(&note.text),
        },
        Entry::Steer { text } => mark::data("message of the user", text).into(),
        Entry::Marker(marker) => marker_text(marker).into(),
        Entry::Summary(summary) => summary_text(summary).into(),
        Entry::Cut { .. } => CUT.into(),
        _ => return None,
    };
    Some(Message::user(text))
}

fn summary_text(summary: &Summary) -> String {
    let words =
        if summary.marked { mark::data("summary", &summary.text).into() } else { Arc::clone(&summary.text) };
    let mut text = format!("[Summary of the conversation so far]\n{words}");
    if !summary.stays.is_empty() {
        text.push_str("\nErrors and phases so far:\n");
        text.push_str(&summary.stays.join("\n"));
    }
    text
}

pub(crate) fn marker_text(marker: &Marker) -> String {
    let left = match &marker.left {
        Some(left) => format!("Phase `{left}` is complete, and phase `{}` begins.", marker.entered),
        None => format!("Phase `{}` begins.", marker.entered),
    };
    let mut text = format!("[Phase: {}]\n{left}", marker.entered);
    if let Some(hand_off) = &marker.hand_off {
        text.push('\n');
        text.push_str(hand_off);
    } else if !marker.accomplished.is_empty() {
        text.push_str("\nAccomplished:\n");
        text.push_str(&mark::data("phase", &marker.accomplished));
    }
    if !marker.next.is_empty() {
        text.push_str("\nNext: ");
        text.push_str(&marker.next);
    }
    text
}

/// Everything of a line as plain text, for summaries: one paragraph for each message.
pub(crate) fn plain(line: &[Item<'_>]) -> String {
    let mut text = String::new();
    for message in messages(line, 0) {
        let role = match message {
            Message::User { .. } => "User",
            Message::Assistant { .. } => "Assistant",
            Message::Results(_) => "Results",
        };
        text.push_str(role);
        text.push_str(": ");
        text.push_str(&message.text());
        if let Message::Assistant { parts } = &message {
            for call in entry::calls(parts) {
                let _ = write!(text, "\n[calls {} with {}]", call.name, call.arguments);
            }
        }
        text.push_str("\n\n");
    }
    text
}
