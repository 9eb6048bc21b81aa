//! Entries: the events of which a conversation consists. Each is logged once, when it happens; `transcript` makes
//! requests of them.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use workflow_core::Event;

use crate::model::{Finish, Image, Part, ToolUse, Usage};

/// An entry of a conversation.
///
/// The log of an agent's run has each entry once. [`Conversation`](crate::Conversation) and sessions consist of entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "agent.entry")]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// The message that the run answers.
    User {
        /// The text.
        text: Arc<str>,
        /// Its images.
        #[serde(default, skip_serializing_if = "<[Image]>::is_empty")]
        images: Arc<[Image]>,
    },
    /// A reply of the model.
    Assistant(Reply),
    /// The results of the calls of the reply before, in their order.
    Results {
        /// One for each call.
        results: Vec<ToolDone>,
    },
    /// A remark of the agent to the model, such as the feedback of a judge.
    Note(Note),
    /// A message that arrived while the run worked.
    Steer {
        /// The text.
        text: Arc<str>,
    },
    /// Texts of earlier runs that belong to the message.
    Recalled {
        /// One text for each.
        items: Vec<String>,
    },
    /// The exchanges of a session before this run.
    History(HistoryRange),
    /// Marks where the entries of [`Prompt::conversation`](crate::Prompt::conversation), or of the chat, belong.
    Given,
    /// The end of a phase and the begin of the next one.
    Marker(Marker),
    /// A summary of everything before its first kept entry.
    Summary(Summary),
    /// The provider refused the conversation as too long, and nothing was left to summarise: requests have at most so many
    /// characters of each result before it.
    Cut {
        /// The characters of a result.
        most: usize,
    },
    /// A reply of an earlier run, or of the client's conversation: without usage and finish.
    Said {
        /// Its parts.
        parts: Arc<[Part]>,
    },
}

/// A reply of the model, with its usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// Text, thoughts and calls.
    pub parts: Arc<[Part]>,
    /// Why the reply ended.
    pub finish: Finish,
    /// The tokens of the call.
    pub usage: Usage,
    /// The tokens of the request, as the agent estimated them; 0 if it did not.
    #[serde(default)]
    pub estimate: u64,
    /// The number of entries that the run had when the call began. Entries between these and the reply arrived during the
    /// call, so the model had not read them.
    pub seen: usize,
    /// Whether the model was forbidden to call tools, as in a closing call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
    #[serde(skip)]
    pub(crate) size: Counted,
}

impl Reply {
    /// The calls, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        calls(&self.parts)
    }

    /// The text without thoughts.
    pub(crate) fn text(&self) -> String {
        text(&self.parts)
    }
}

/// The calls among parts.
pub(crate) fn calls(parts: &[Part]) -> impl Iterator<Item = &ToolUse> {
    parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    })
}

/// The texts among parts.
pub(crate) fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The result of a tool call. Viewers receive it too.
#[derive(Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(control, display, name = "agent.tool_result")]
#[non_exhaustive]
pub struct ToolDone {
    /// The id of the call.
    pub call: Arc<str>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The output, or the reason of the failure; at most 32 KiB.
    pub text: Arc<str>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether the tool was called at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
    /// The tokens of sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of sub-agents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: f64,
    /// The tool calls of sub-agents that ran.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tool_calls: u64,
    /// The class of a failure that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_run: Option<FailureClass>,
    /// The text as requests have it, once one has had it: each turn's request has all results.
    #[serde(skip)]
    pub(crate) marked: Marked,
    #[serde(skip)]
    pub(crate) size: Counted,
}

/// A text between marks, made once.
#[derive(Debug, Default)]
pub(crate) struct Marked(OnceLock<Arc<str>>);

impl Marked {
    pub(crate) fn text(&self, make: impl FnOnce() -> Arc<str>) -> Arc<str> {
        Arc::clone(self.0.get_or_init(make))
    }
}

/// A number of characters, counted once: each turn's plan has those of all entries. It is one more; zero is none yet.
#[derive(Debug, Default)]
pub(crate) struct Counted(AtomicU32);

impl Counted {
    pub(crate) fn get(&self, count: impl FnOnce() -> usize) -> usize {
        if let Some(counted) = self.0.load(Ordering::Relaxed).checked_sub(1) {
            return counted as usize;
        }
        let counted = count();
        // A number that does not fit is counted each time.
        self.0.store(u32::try_from(counted.saturating_add(1)).unwrap_or(0), Ordering::Relaxed);
        counted
    }
}

/// Makes copies begin anew, since the fields from which the value derives can change.
macro_rules! derived {
    ($type:ty) => {
        impl Clone for $type {
            fn clone(&self) -> Self {
                Self::default()
            }
        }

        /// Derived from other fields, so no difference of its own.
        impl PartialEq for $type {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }
    };
}

derived!(Marked);
derived!(Counted);

/// Without the text as requests have it, which is the other one between marks.
impl fmt::Debug for ToolDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, tool, text, is_error, ran, usage, cost, tool_calls, ends_run, marked: _, size: _ } =
            self;
        f.debug_struct("ToolDone")
            .field("call", call)
            .field("tool", tool)
            .field("text", text)
            .field("is_error", is_error)
            .field("ran", ran)
            .field("usage", usage)
            .field("cost", cost)
            .field("tool_calls", tool_calls)
            .field("ends_run", ends_run)
            .finish()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(cost: &f64) -> bool {
    *cost == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Reads a value that is there: JSON `null` is one as well.
pub(crate) fn some<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

fn is_unused(usage: &Usage) -> bool {
    *usage == Usage::default()
}

impl ToolDone {
    pub(crate) fn new(call: &ToolCall, text: impl Into<Arc<str>>, is_error: bool) -> Self {
        Self {
            call: Arc::clone(&call.call),
            tool: Arc::clone(&call.tool),
            text: text.into(),
            is_error,
            ran: false,
            usage: None,
            cost: 0.0,
            tool_calls: 0,
            ends_run: None,
            marked: Marked::default(),
            size: Counted::default(),
        }
    }

    /// The characters of the text.
    pub(crate) fn characters(&self) -> usize {
        self.size.get(|| self.text.chars().count())
    }

    pub(crate) fn error(call: &ToolCall, text: impl Into<Arc<str>>) -> Self {
        Self::new(call, text, true)
    }

    pub(crate) fn ending_run(self, class: FailureClass) -> Self {
        Self { ends_run: Some(class), ..self }
    }
}

/// A tool call that the agent handles. Viewers receive it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(control, display, name = "agent.tool_use")]
#[non_exhaustive]
pub struct ToolCall {
    /// The id of the call, unique in its run.
    pub call: Arc<str>,
    /// The name of the tool, as the model wrote it.
    pub tool: Arc<str>,
    /// The arguments, as the model wrote them.
    pub arguments: Value,
}

impl From<&ToolUse> for ToolCall {
    fn from(call: &ToolUse) -> Self {
        let arguments = call.arguments.clone();
        Self { call: Arc::clone(&call.id), tool: Arc::clone(&call.name), arguments }
    }
}

/// The class of a failure that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureClass {
    /// The provider stayed unavailable.
    Transient,
    /// A tool failed for good.
    Tool,
    /// The replies of the model could not be used.
    Model,
    /// The conversation exceeds the context window, and nothing is left to shorten.
    ContextLimit,
    /// A failure that stays, such as a wrong key.
    Permanent,
    /// A person rejected a call.
    Rejected,
    /// Processes ended under a step too often.
    Interrupted,
}

impl FailureClass {
    /// The name, as the engine's classes have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::ContextLimit => "context_limit",
            Self::Permanent => "permanent",
            Self::Rejected => "rejected",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<workflow_core::ErrorClass> for FailureClass {
    fn from(class: workflow_core::ErrorClass) -> Self {
        use workflow_core::ErrorClass as Class;
        match class {
            Class::Transient => Self::Transient,
            Class::Tool => Self::Tool,
            Class::Model => Self::Model,
            Class::ContextLimit => Self::ContextLimit,
            Class::Rejected => Self::Rejected,
            Class::Interrupted | Class::InDoubt => Self::Interrupted,
            _ => Self::Permanent,
        }
    }
}

/// A remark of the agent to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Note {
    /// The reason.
    pub about: NoteKind,
    /// The text for the model.
    pub text: Arc<str>,
    /// The tokens of the judge.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub usage: Usage,
    /// Their cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: f64,
}

impl Note {
    pub(crate) fn new(about: NoteKind, text: impl Into<Arc<str>>) -> Self {
        Self { about, text: text.into(), usage: Usage::default(), cost: 0.0 }
    }
}

/// Why the agent remarks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteKind {
    /// The judge wants another answer.
    Judge,
    /// The answer does not fit its schema.
    Output,
    /// The reply was cut off with calls in it.
    Length,
    /// The reply reached the end of the context window.
    Window,
    /// The last turns made the same calls with the same results, and some more of them end the run: see
    /// [`AgentBuilder::repeats`](crate::AgentBuilder::repeats).
    Looping,
    /// The last model call must be an answer.
    Closing,
    /// The run ended without an answer, after something that acts had begun: its exchange is in the session all the same.
    Ended,
}

/// A range of exchanges of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryRange {
    /// The session.
    pub session: Arc<str>,
    /// The number of the first exchange.
    pub from: u64,
    /// The number behind the last exchange.
    pub to: u64,
    /// The numbers in between that have no exchange: runs without an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u64>,
}

/// The end of a phase and the begin of the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Marker {
    /// The phase that ended; `None` at the begin of a conversation.
    pub left: Option<Arc<str>>,
    /// The phase that begins.
    pub entered: Arc<str>,
    /// The answer of the phase that ended.
    pub accomplished: Arc<str>,
    /// The data of that answer, if the phase has an output schema.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The focus of the phase that begins.
    pub next: Arc<str>,
    /// Set if the phase that begins sees nothing before it: the hand-off that it sees instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_off: Option<Arc<str>>,
    /// The tokens of the judge that accepted the phase before.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub usage: Usage,
    /// Their cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: f64,
}

/// A summary of the conversation before its first kept entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The text.
    pub text: Arc<str>,
    /// Errors of tools and markers of earlier runs before it, which no summary loses; the latest 30.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<Arc<str>>,
    /// The index, among the entries of the run, of the first one that the summary does not replace. Of those before it, the
    /// model still reads the message, the markers, and steers that no earlier call had read.
    pub keep: usize,
    /// Whether the provider had refused the conversation as too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
    /// Whether it was made from text that is marked as data, such as results, and is marked so itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// The tokens of the call that made it.
    pub usage: Usage,
}

/// The older part of a conversation was replaced by a summary: the model does not read it any more. Viewers receive it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(control, display, name = "agent.summarised")]
#[non_exhaustive]
pub struct Summarised {
    /// The summary.
    pub text: Arc<str>,
}

impl Entry {
    /// The phase that a marker enters.
    pub(crate) fn entered(&self) -> Option<&str> {
        match self {
            Self::Marker(marker) => Some(&marker.entered),
            _ => None,
        }
    }

    /// The characters that the model reads of it, without marks.
    pub(crate) fn characters(&self) -> usize {
        let count = |text: &str| text.chars().count();
        match self {
            Self::User { text, images } => count(text) + 6_000 * images.len(),
            Self::Assistant(Reply { parts, size, .. }) => {
                size.get(|| parts.iter().map(Part::characters).sum())
            }
            Self::Said { parts } => parts.iter().map(Part::characters).sum(),
            Self::Results { results } => results.iter().map(|result| result.characters() + 40).sum(),
            Self::Note(Note { text, .. }) | Self::Steer { text } => count(text) + 40,
            // Recalled texts are in the system text, which is counted by itself.
            Self::Recalled { .. } | Self::History(_) | Self::Given => 0,
            Self::Cut { .. } => 160,
            Self::Marker(marker) => {
                let hand_off = marker.hand_off.as_deref().map_or(0, count);
                count(&marker.accomplished) + count(&marker.next) + hand_off + 100
            }
            Self::Summary(summary) => {
                count(&summary.text) + summary.stays.iter().map(|stays| count(stays) + 1).sum::<usize>() + 80
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, ToolCall, ToolDone};

    /// A53
    #[test]
    fn a_copy_with_another_text_has_another_size_and_another_marked_text() {
        let call = ToolCall { call: "c".into(), tool: "t".into(), arguments: serde_json::json!({}) };
        let done = ToolDone::new(&call, "größer", false);
        assert_eq!((done.characters(), done.characters()), (6, 6));
        assert_eq!(&*done.marked.text(|| "marked".into()), "marked");
        let other = ToolDone { text: "".into(), ..done.clone() };
        assert_eq!((other.characters(), other.characters()), (0, 0));
        assert_eq!(&*other.marked.text(|| "other".into()), "other");
        assert_eq!(Entry::Results { results: vec![done, other] }.characters(), 86);
    }
}
