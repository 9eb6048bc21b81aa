//! A reply as it is put together from pieces, for every kind. Which piece means what is the concern of each kind.

use std::sync::Arc;

use serde_json::Value;

use super::failure::Failure;
use crate::model::{Finish, ModelEvent, ModelReply, Opaque, Part, ToolUse, Usage};

/// The most calls of a reply that are read. An agent runs far fewer.
const CALLS: usize = 1_024;

/// The parts of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pieces: Vec<Piece>,
    calls: usize,
    /// The pieces that viewers have not seen yet.
    pub(crate) shown: Vec<ModelEvent>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Thought { text: String, signature: Option<Value> },
    Call(Call),
    Opaque(Value),
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    /// Arguments that came as text.
    text: String,
    /// Arguments that came as a value. Text goes before it.
    value: Option<Value>,
    signature: Option<Value>,
}

/// The place of a call in its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallAt(usize);

impl Assembly {
    /// Adds to the text before, or begins one.
    pub(crate) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.shown.push(ModelEvent::Text(piece.to_owned()));
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(piece),
            _ => self.pieces.push(Piece::Text(piece.to_owned())),
        }
    }

    /// Begins a text of its own.
    pub(crate) fn begin_text(&mut self) {
        self.pieces.push(Piece::Text(String::new()));
    }

    /// Adds to the thought before, or begins one.
    pub(crate) fn thought(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.shown.push(ModelEvent::Thought(piece.to_owned()));
        match self.pieces.last_mut() {
            Some(Piece::Thought { text, signature: None }) => text.push_str(piece),
            _ => self.pieces.push(Piece::Thought { text: piece.to_owned(), signature: None }),
        }
    }

    /// Begins a thought of its own.
    pub(crate) fn begin_thought(&mut self) {
        self.pieces.push(Piece::Thought { text: String::new(), signature: None });
    }

    /// Signs the thought before, or an empty one.
    pub(crate) fn sign_thought(&mut self, data: Value) {
        match self.pieces.last_mut() {
            Some(Piece::Thought { signature: signature @ None, .. }) => *signature = Some(data),
            _ => self.pieces.push(Piece::Thought { text: String::new(), signature: Some(data) }),
        }
    }

    /// Adds to the signature of the thought before.
    pub(crate) fn sign_on(&mut self, piece: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Thought { signature: Some(Value::String(text)), .. }) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.sign_thought(piece.into()),
        }
    }

    pub(crate) fn opaque(&mut self, data: Value) {
        self.pieces.push(Piece::Opaque(data));
    }

    /// Begins a call. Id and name may follow.
    pub(crate) fn call(&mut self, id: &str, name: &str) -> Result<CallAt, Failure> {
        self.calls += 1;
        if self.calls > CALLS {
            return Err(Failure::unusable(format!("the reply has more than {CALLS} calls")));
        }
        self.pieces.push(Piece::Call(Call { id: id.to_owned(), ..Call::default() }));
        let at = CallAt(self.pieces.len() - 1);
        self.name(at, name);
        Ok(at)
    }

    fn at(&mut self, at: CallAt) -> Option<&mut Call> {
        match self.pieces.get_mut(at.0) {
            Some(Piece::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Whether a fragment with this id belongs to the call.
    pub(crate) fn has_id(&mut self, at: CallAt, id: &str) -> bool {
        self.at(at).is_some_and(|call| call.id.is_empty() || call.id == id)
    }

    /// Whether the call has begun its arguments.
    pub(crate) fn has_arguments(&mut self, at: CallAt) -> bool {
        self.at(at).is_some_and(|call| !call.text.is_empty() || call.value.is_some())
    }

    /// Sets the id of a call that has none.
    pub(crate) fn id(&mut self, at: CallAt, id: &str) {
        if let Some(call) = self.at(at).filter(|call| call.id.is_empty()) {
            id.clone_into(&mut call.id);
        }
    }

    /// Sets the name of a call that has none, and shows the call.
    pub(crate) fn name(&mut self, at: CallAt, name: &str) {
        let Some(call) = self.at(at).filter(|call| call.name.is_empty() && !name.is_empty()) else { return };
        name.clone_into(&mut call.name);
        self.shown.push(ModelEvent::CallBegun { name: name.to_owned() });
    }

    /// Adds to the text of a call's arguments.
    pub(crate) fn arguments(&mut self, at: CallAt, piece: &str) {
        if let Some(call) = self.at(at) {
            call.text.push_str(piece);
        }
    }

    /// Sets the arguments of a call that come as a value, or as their whole text.
    pub(crate) fn whole_arguments(&mut self, at: CallAt, value: Option<&Value>) {
        if let Some(call) = self.at(at) {
            call.value = match value {
                Some(Value::String(text)) => Some(ToolUse::parse_arguments(text)),
                None | Some(Value::Null) => None,
                Some(value) => Some(value.clone()),
            };
        }
    }

    pub(crate) fn sign_call(&mut self, at: CallAt, data: Value) {
        if let Some(call) = self.at(at) {
            call.signature = Some(data);
        }
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    pub(crate) fn has_text(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if !text.is_empty()))
    }

    /// `tool_use` for a complete reply with calls: some servers say `stop`.
    pub(crate) fn complete(&self) -> Finish {
        if self.has_calls() { Finish::ToolUse } else { Finish::Stop }
    }

    /// The reply. Opaque data belongs to `provider`.
    pub(crate) fn reply(&mut self, provider: &Arc<str>, finish: Finish, usage: Option<Usage>) -> ModelReply {
        let own = |data: Value| Opaque::new(Arc::clone(provider), data);
        let mut number = 0;
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            parts.push(match piece {
                Piece::Text(text) if text.is_empty() => continue,
                Piece::Text(text) => Part::Text(text),
                Piece::Thought { text, signature: None } if text.is_empty() => continue,
                Piece::Thought { text, signature } => Part::Thought { text, signature: signature.map(own) },
                Piece::Call(call) => {
                    number += 1;
                    Part::Call(call.finish(number - 1, own))
                }
                Piece::Opaque(data) => Part::Opaque(own(data)),
            });
        }
        let reply = ModelReply::new(parts, finish);
        match usage {
            Some(usage) => reply.usage(usage),
            None => reply,
        }
    }
}

impl Call {
    fn finish(self, number: usize, own: impl Fn(Value) -> Opaque) -> ToolUse {
        let id = if self.id.is_empty() { format!("call_{number}") } else { self.id };
        let arguments = match self.value {
            Some(value) if self.text.is_empty() => value,
            _ => ToolUse::parse_arguments(&self.text),
        };
        // Valid JSON that is no object is unreadable as arguments too.
        let arguments = match arguments {
            Value::Object(_) | Value::String(_) => arguments,
            other => Value::String(other.to_string()),
        };
        ToolUse { signature: self.signature.map(own), ..ToolUse::new(id, self.name, arguments) }
    }
}

/// The pieces that a reply in one piece shows.
pub(crate) fn shown_of(reply: &ModelReply) -> Vec<ModelEvent> {
    let shown = reply.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(ModelEvent::Text(text.clone())),
        Part::Thought { text, .. } if !text.is_empty() => Some(ModelEvent::Thought(text.clone())),
        Part::Call(call) => Some(ModelEvent::CallBegun { name: call.name.to_string() }),
        _ => None,
    });
    shown.collect()
}

/// A count of tokens.
pub(crate) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}
