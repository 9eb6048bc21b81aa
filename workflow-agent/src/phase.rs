//! Phases of a conversation, and the conversation as a value.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{Entry, Marker, NoteKind, Reply};
use crate::secret::Redactor;

/// The characters of each answer in a hand-off.
const HANDED_OFF: usize = 500;

/// A phase of an agent's work: the phases of an agent run in order in one conversation.
///
/// ```
/// use workflow_agent::Phase;
///
/// let phases = [
///     Phase::new("research").focus("Collect sources.").tools(["search"]),
///     Phase::new("write").focus("Write the report.").isolated(),
/// ];
/// # let _ = phases;
/// ```
#[derive(Clone)]
pub struct Phase {
    pub(crate) name: Arc<str>,
    pub(crate) focus: Arc<str>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) output: Option<Arc<Value>>,
    pub(crate) isolated: bool,
}

impl Phase {
    /// A phase with all tools of its agent and no output schema.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), focus: "".into(), tools: None, output: None, isolated: false }
    }

    /// Sets the last part of the system prompt: the instructions of the phase.
    ///
    /// They follow identity, narrative and memory, which are the same in all phases.
    #[doc(alias = "instructions")]
    #[doc(alias = "system_prompt")]
    #[must_use]
    pub fn focus(self, focus: impl Into<Arc<str>>) -> Self {
        Self { focus: focus.into(), ..self }
    }

    /// Limits the phase to some of the agent's tools. A name that the agent lacks is a build error.
    #[must_use]
    pub fn tools<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        Self { tools: Some(tools.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the type of the phase's answer.
    #[must_use]
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(crate::tool::schema_of::<T>())
    }

    /// Sets the JSON schema of the phase's answer.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        Self { output: Some(Arc::new(schema)), ..self }
    }

    /// Lets the phase begin anew: of the phases before, the model sees the first and the last answer, 500 characters
    /// each, and their data.
    #[must_use]
    pub fn isolated(self) -> Self {
        Self { isolated: true, ..self }
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phase").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A conversation as a value: an answer returns it, and a prompt continues it.
///
/// ```
/// use workflow_agent::prelude::*;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([ScriptedReply::text("Bern."), ScriptedReply::text("On the Aare.")]);
/// let agent = Agent::builder("guide").model(model.clone()).build()?;
/// let first = agent.ask(Prompt::new("The capital of Switzerland?").return_conversation()).await?;
/// let conversation = first.conversation.ok_or("it was asked for")?;
/// agent.ask(Prompt::new("Where is it?").conversation(conversation)).await?;
/// assert_eq!(model.requests()[1].messages.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    entries: Arc<[Entry]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<Arc<str>>,
}

impl Conversation {
    pub(crate) fn new(entries: Vec<Entry>, phase: Option<Arc<str>>) -> Self {
        Self { entries: entries.into(), phase }
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries, not copied.
    pub(crate) fn shared_entries(&self) -> Arc<[Entry]> {
        Arc::clone(&self.entries)
    }

    /// Enters a phase: the next run that continues the conversation sees a marker with the names of both phases and the
    /// last answer.
    #[must_use]
    pub fn enter(self, phase: &Phase) -> Self {
        let hand_off = phase.isolated.then(|| self.hand_off().into());
        let answer = self.answers().pop();
        let marker = Marker {
            left: self.phase.clone(),
            entered: Arc::clone(&phase.name),
            accomplished: answer
                .as_ref()
                .map_or_else(Arc::default, |(text, data)| accomplished(text, data.as_ref())),
            data: answer.and_then(|(_, data)| data),
            next: Arc::clone(&phase.focus),
            hand_off,
            usage: crate::model::Usage::default(),
            cost: 0.0,
        };
        let entries = self.entries.iter().cloned().chain([Entry::Marker(marker)]).collect();
        Self { entries, phase: Some(Arc::clone(&phase.name)) }
    }

    /// The text with which an isolated phase begins: the first and the last answer, 500 characters each, and data.
    pub fn hand_off(&self) -> String {
        hand_off(&self.answers())
    }

    /// The name of the phase that it is in.
    pub(crate) fn phase(&self) -> Option<&str> {
        self.phase.as_deref()
    }

    fn answers(&self) -> Vec<(String, Option<Value>)> {
        answers(self.entries.iter())
    }

    pub(crate) fn bytes(&self) -> usize {
        let images = self.entries.iter().map(|entry| match entry {
            Entry::User { images, .. } => images.iter().map(crate::model::Image::bytes).sum(),
            _ => 0,
        });
        images.sum::<usize>() + self.entries.iter().map(Entry::characters).sum::<usize>()
    }

    /// The conversation without secrets.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        if redactor.is_empty() {
            return self;
        }
        let redacted = serde_json::to_value(&self).and_then(|mut value| {
            redactor.value(&mut value);
            serde_json::from_value(value)
        });
        // A conversation that is none any more without its secrets is left out as a whole.
        redacted.unwrap_or_default()
    }
}

/// The answers in a conversation, with their data. Answers that were refused do not count.
pub(crate) fn answers<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<(String, Option<Value>)> {
    let mut answers = Vec::new();
    for entry in entries {
        match entry {
            Entry::Assistant(Reply { parts, .. }) | Entry::Said { parts } => {
                let typed =
                    crate::entry::calls(parts).find(|call| &*call.name == crate::transcript::FINAL_ANSWER);
                let data = typed.map(|call| call.arguments.clone());
                if data.is_some() || crate::entry::calls(parts).next().is_none() {
                    answers.push((crate::entry::text(parts), data));
                }
            }
            Entry::Note(note) if matches!(note.about, NoteKind::Judge | NoteKind::Output) => {
                drop(answers.pop());
            }
            Entry::Marker(Marker { data: Some(data), .. }) => {
                if let Some(last) = answers.last_mut() {
                    last.1 = Some(data.clone());
                }
            }
            _ => {}
        }
    }
    answers
}

/// An answer as a marker has it: its text, or else its data.
pub(crate) fn accomplished(text: &str, data: Option<&Value>) -> Arc<str> {
    let text = match data {
        Some(data) if text.trim().is_empty() => data.to_string().into(),
        _ => std::borrow::Cow::Borrowed(text),
    };
    crate::tool::cut(&text, 4 * 1024).as_ref().into()
}

/// The text with which an isolated phase begins.
pub(crate) fn hand_off(answers: &[(String, Option<Value>)]) -> String {
    let short = |text: &str| match text.char_indices().nth(HANDED_OFF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let mut texts = Vec::new();
    if let Some((first, _)) = answers.first() {
        texts.push(format!("First answer before:\n{}", crate::mark::data("answer", &short(first))));
    }
    if let [_, .., (last, _)] = answers {
        texts.push(format!("Last answer before:\n{}", crate::mark::data("answer", &short(last))));
    }
    let data = answers.iter().filter_map(|(_, data)| data.as_ref()).map(Value::to_string);
    let data: Vec<String> = data.collect();
    if !data.is_empty() {
        let data = crate::tool::cut(&data.join("\n"), 32 * 1024).into_owned();
        texts.push(format!("Data so far:\n{}", crate::mark::data("data", &data)));
    }
    texts.join("\n")
}
