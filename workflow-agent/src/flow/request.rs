//! The request of a turn: instructions, conversation and tools.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_chat::ChatTurn;
use workflow_core::prelude::*;

use crate::agent::Terms;
use crate::chain;
use crate::compact;
use crate::entry::Entry;
use crate::flow::State;
use crate::model::{ModelRequest, ToolChoice};
use crate::phase::Phase;
use crate::session;
use crate::tool::ToolSpec;
use crate::transcript::{self, Before, FINAL_ANSWER, Item};

/// The places where entries before a run are stored.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) thread: &'a ThreadContext,
    pub(crate) engine: &'a Engine,
}

/// The entries before a run, held while a request is made.
pub(crate) struct Earlier {
    history: Vec<Arc<[Entry]>>,
    given: Arc<[Entry]>,
}

impl Earlier {
    /// Reads the exchanges that the run's range names, and the conversation that it was given.
    pub(crate) async fn of(
        terms: &Terms<'_>,
        own: &[&Entry],
        chat: Option<&ChatTurn>,
        sources: Sources<'_>,
    ) -> Result<Self, StepError> {
        let range = own.iter().find_map(|entry| match entry {
            Entry::History(range) => Some(range),
            _ => None,
        });
        let history = match range {
            Some(range) => session::exchanges(sources.thread, range).await?,
            None => Vec::new(),
        };
        let continues = terms.prompt.and_then(|prompt| prompt.continues.as_ref());
        let given = match (terms.prompt.and_then(|prompt| prompt.conversation.as_ref()), chat) {
            (Some(conversation), _) => conversation.shared_entries(),
            (None, None) if let Some(continues) = continues => {
                let window = terms.agent.inner.caller.model.limits().context;
                chain::entries(sources.engine, continues, window).await?.into()
            }
            (None, Some(chat)) => crate::chat::given(chat, &terms.agent.inner.caller.redactor)?.into(),
            (None, None) => Arc::default(),
        };
        Ok(Self { history, given })
    }

    pub(crate) fn before(&self) -> Before<'_> {
        Before { history: &self.history, given: &self.given }
    }

    /// All entries before the run, also those that the model no longer sees.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.history.iter().flat_map(|exchange| exchange.iter()).chain(self.given.iter())
    }
}

/// A request, and whether the conversation should be summarised before it.
pub(crate) struct Turn<'a> {
    pub(crate) request: ModelRequest,
    /// The same, to count its characters once it is sent.
    pub(crate) sent: Sent<'a>,
    /// The tokens of the request, before any correction by reported ones.
    pub(crate) estimate: u64,
    /// The rounds that a summary keeps, if one is due and something is left to summarise.
    pub(crate) due: Option<usize>,
}

/// A request that was sent, without a copy of its messages: most providers report the tokens, and nobody counts.
pub(crate) struct Sent<'a> {
    /// The request without messages.
    rest: ModelRequest,
    line: Vec<Item<'a>>,
    short_before: usize,
}

impl Sent<'_> {
    /// The number of characters of everything that the model reads.
    pub(crate) fn characters(&self) -> usize {
        let messages = transcript::messages(&self.line, self.short_before);
        ModelRequest { messages, ..self.rest.clone() }.characters()
    }
}

/// Makes the request of the next turn.
pub(crate) fn turn<'a>(
    terms: &Terms<'_>,
    before: &'a Earlier,
    own: &[&'a Entry],
    chat: Option<&ChatTurn>,
    state: &State<'_>,
) -> Turn<'a> {
    let agent = &terms.agent.inner;
    let phase = terms.phase(state.entered).map(|(_, phase)| phase);
    let limits = agent.caller.model.limits();
    let output = terms.output(phase);
    let mut request = ModelRequest::new(
        system(terms, own, phase, chat),
        Vec::new(),
        agent.rules.max_output.map_or(limits.output, |most| most.min(limits.output)),
    );
    request.tools = offered(terms, phase, output.as_ref());
    if agent.caller.model.has_native_output() {
        request.output =
            output.map(|schema| if is_object(&schema) { schema } else { Arc::new(wrapped(&schema)) });
    }
    if state.closing {
        request.tool_choice = ToolChoice::None;
    }
    let line = transcript::line(before.before(), own);
    let plan = compact::plan(&line, request.characters(), limits.context);
    let rest = request.clone();
    request.messages = transcript::messages(&line, plan.short_before);
    let due = plan.due.filter(|rounds| compact::keep_from(own, *rounds).is_some());
    let sent = Sent { rest, line, short_before: plan.short_before };
    Turn { request, sent, estimate: plan.estimate, due }
}

/// Identity and narrative, the text of the prompt that follows them, recalled memory, the focus of the phase, in this order.
fn system(terms: &Terms<'_>, own: &[&Entry], phase: Option<&Phase>, chat: Option<&ChatTurn>) -> Arc<str> {
    let agent = &terms.agent.inner;
    let of_chat =
        chat.map(|chat| crate::chat::instructions(chat, &agent.caller.redactor)).unwrap_or_default();
    let recalled: Vec<&str> = own
        .iter()
        .filter_map(|entry| match entry {
            Entry::Recalled { items } => Some(items),
            _ => None,
        })
        .flatten()
        .map(String::as_str)
        .collect();
    let focus = phase.map_or("", |phase| &*phase.focus);
    let setting = terms.prompt.and_then(|prompt| prompt.setting.as_deref()).unwrap_or_default();
    if [setting, &of_chat, focus].iter().all(|part| part.is_empty()) && recalled.is_empty() {
        return Arc::clone(&agent.instructions);
    }
    let recalled = if recalled.is_empty() {
        String::new()
    } else {
        format!("Memory of earlier conversations, as data:\n{}", recalled.join("\n"))
    };
    let parts = [&*agent.instructions, setting, &of_chat, &recalled, focus];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n").into()
}

/// The tools that the run and the phase allow, sorted by name.
fn offered(terms: &Terms<'_>, phase: Option<&Phase>, output: Option<&Arc<Value>>) -> Arc<[ToolSpec]> {
    let agent = &terms.agent.inner;
    let answer = output.filter(|_| !agent.caller.model.has_native_output());
    if answer.is_none() && terms.allows_all(phase) {
        return Arc::clone(&agent.specs);
    }
    let tools = agent.tools.0.iter().filter(|(name, _)| terms.allows(name, phase));
    let mut specs: Vec<ToolSpec> = tools.map(|(_, offered)| offered.spec.clone()).collect();
    if let Some(schema) = answer {
        specs.push(final_answer(schema));
        specs.sort_by(|one, other| one.name().cmp(other.name()));
    }
    specs.into()
}

/// Whether the model gives its answer by calling `final_answer` in the phase that the run is in.
pub(crate) fn offers_final_answer(terms: &Terms<'_>, state: &State<'_>) -> bool {
    let phase = terms.phase(state.entered).map(|(_, phase)| phase);
    terms.output(phase).is_some() && !terms.agent.inner.caller.model.has_native_output()
}

/// The tool with which a model without native output gives its answer.
fn final_answer(schema: &Value) -> ToolSpec {
    let about = "Gives the final answer. Call it once, alone, when the work is complete.";
    ToolSpec::new(FINAL_ANSWER, about, wrapped(schema))
}

/// The schema that a model is given: an object. A schema of another type becomes its field `answer`.
fn wrapped(schema: &Value) -> Value {
    if is_object(schema) {
        return schema.clone();
    }
    let mut answer = schema.clone();
    let mut wrapped = json!({"type": "object", "required": ["answer"], "additionalProperties": false});
    // References to definitions are from the root.
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = answer.as_object_mut().and_then(|fields| fields.remove(key)) {
            wrapped[key] = definitions;
        }
    }
    wrapped["properties"] = json!({ "answer": answer });
    lead_to_answer(&mut wrapped);
    wrapped
}

/// Lets references to the root lead to the field `answer`.
fn lead_to_answer(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(lead_to_answer),
        Value::Object(fields) => {
            if let Some(root) = fields.get_mut("$ref").filter(|reference| *reference == "#") {
                *root = "#/properties/answer".into();
            }
            fields.values_mut().for_each(lead_to_answer);
        }
        _ => {}
    }
}

pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}
