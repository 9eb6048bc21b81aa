//! A reply as it is put together from pieces, for every kind. Which piece means what is the concern of each kind.

use std::sync::Arc;

use serde_json::{Map, Value, json};

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
    Thought(Thought),
    Call(Call),
    Opaque(Value),
}

#[derive(Debug, Default)]
struct Thought {
    text: String,
    signature: Option<Value>,
    /// Where its provider has thoughts that it does not sign.
    place: Option<Value>,
    /// Whether it goes back although it is empty.
    is_kept: bool,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    /// Arguments that came as text.
    text: String,
    balance: Balance,
    /// Arguments that came as a value. Text goes before it.
    value: Option<Value>,
    signature: Option<Value>,
}

/// The place of a call in its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallAt(usize);

/// The place of a thought in its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThoughtAt(usize);

/// Whether the text of a JSON object has come to its end. It is counted as the text comes, so that no text is read again.
#[derive(Debug, Default)]
struct Balance {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_closed: bool,
}

impl Balance {
    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

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

    /// Adds to the thought before, or begins one. `place` is where the provider has it.
    pub(crate) fn thought(&mut self, piece: &str, place: &str) {
        if piece.is_empty() {
            return;
        }
        self.shown.push(ModelEvent::Thought(piece.to_owned()));
        let is_same = |thought: &Thought| {
            thought.signature.is_none() && thought.place.as_ref().is_some_and(|before| before == place)
        };
        match self.pieces.last_mut() {
            Some(Piece::Thought(thought)) if is_same(thought) => thought.text.push_str(piece),
            _ => {
                let place = Some(place.into());
                self.pieces.push(Piece::Thought(Thought {
                    text: piece.to_owned(),
                    place,
                    ..Thought::default()
                }));
            }
        }
    }

    /// Begins a thought of its own.
    pub(crate) fn begin_thought(&mut self, place: &str) {
        self.pieces.push(Piece::Thought(Thought { place: Some(place.into()), ..Thought::default() }));
    }

    /// A thought whose provider wants it back although it is empty.
    pub(crate) fn empty_thought(&mut self, place: &str) {
        let thought = Thought { place: Some(place.into()), is_kept: true, ..Thought::default() };
        self.pieces.insert(0, Piece::Thought(thought));
    }

    /// Begins a thought with fields of its own.
    pub(crate) fn begin_detail(&mut self) -> ThoughtAt {
        self.pieces.push(Piece::Thought(Thought { place: Some(json!({})), ..Thought::default() }));
        ThoughtAt(self.pieces.len() - 1)
    }

    /// Adds text and fields to a thought. Later fields replace earlier ones.
    pub(crate) fn add_detail(&mut self, at: ThoughtAt, text: &str, fields: Map<String, Value>) {
        let Some(Piece::Thought(thought)) = self.pieces.get_mut(at.0) else { return };
        if !text.is_empty() {
            thought.text.push_str(text);
            self.shown.push(ModelEvent::Thought(text.to_owned()));
        }
        if let Some(Value::Object(place)) = &mut thought.place {
            place.extend(fields);
        }
    }

    /// Signs the thought before, or an empty one.
    pub(crate) fn sign_thought(&mut self, data: Value) {
        if let Some(Piece::Thought(Thought { signature: signature @ None, .. })) = self.pieces.last_mut() {
            *signature = Some(data);
        } else {
            let thought = Thought { signature: Some(data), ..Thought::default() };
            self.pieces.push(Piece::Thought(thought));
        }
    }

    /// Adds to the signature of the thought before.
    pub(crate) fn sign_on(&mut self, piece: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Thought(Thought { signature: Some(Value::String(text)), .. })) => {
                text.push_str(piece);
            }
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

    fn look(&self, at: CallAt) -> Option<&Call> {
        match self.pieces.get(at.0) {
            Some(Piece::Call(call)) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn has_id(&self, at: CallAt) -> bool {
        self.look(at).is_some_and(|call| !call.id.is_empty())
    }

    pub(crate) fn has_name(&self, at: CallAt) -> bool {
        self.look(at).is_some_and(|call| !call.name.is_empty())
    }

    /// Whether the call has a name, and this is a different one.
    pub(crate) fn has_other_name(&self, at: CallAt, name: &str) -> bool {
        self.has_name(at) && !name.is_empty() && self.look(at).is_some_and(|call| call.name != name)
    }

    /// Whether the call has begun its arguments.
    pub(crate) fn has_arguments(&self, at: CallAt) -> bool {
        self.look(at).is_some_and(|call| !call.text.is_empty() || call.value.is_some())
    }

    /// Whether the arguments of the call have come to their end.
    pub(crate) fn is_complete(&self, at: CallAt) -> bool {
        self.look(at).is_some_and(|call| call.balance.is_closed || call.value.is_some())
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
            call.balance.read(piece);
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

    pub(crate) fn has_thoughts(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Thought(_)))
    }

    pub(crate) fn has_text(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if !text.is_empty()))
    }

    /// `tool_use` for a complete reply with calls: some servers say `stop`.
    pub(crate) fn complete(&self) -> Finish {
        if self.has_calls() { Finish::ToolUse } else { Finish::Stop }
    }

    /// The reply. Opaque data belongs to `provider`. A call without a name makes it unusable: another fragment of the reply may
    /// have its arguments.
    pub(crate) fn reply(
        &mut self,
        provider: &Arc<str>,
        finish: Finish,
        usage: Option<Usage>,
    ) -> Result<ModelReply, Failure> {
        let own = |data: Value| Opaque::new(Arc::clone(provider), data);
        let mut number = 0;
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            parts.push(match piece {
                Piece::Text(text) if text.is_empty() => continue,
                Piece::Text(text) => Part::Text(text),
                Piece::Thought(thought) => match thought.finish(own) {
                    Some(part) => part,
                    None => continue,
                },
                Piece::Call(call) if call.name.is_empty() => {
                    return Err(Failure::unusable("a call of the reply names no tool"));
                }
                Piece::Call(call) => {
                    number += 1;
                    Part::Call(call.finish(number - 1, own))
                }
                Piece::Opaque(data) => Part::Opaque(own(data)),
            });
        }
        let reply = ModelReply::new(parts, finish);
        Ok(match usage {
            Some(usage) => reply.usage(usage),
            None => reply,
        })
    }
}

impl Thought {
    /// The part; none for a thought without text that nothing marks. A text that its own field signs counts as signed.
    fn finish(self, own: impl Fn(Value) -> Opaque) -> Option<Part> {
        let signed = |place: &Value| ["signature", "data"].iter().any(|key| place.get(key).is_some());
        let signature = match (self.signature, self.place) {
            (Some(data), _) => Some(own(data)),
            (None, Some(place)) if signed(&place) => Some(own(place)),
            (None, Some(_)) if self.text.is_empty() && !self.is_kept => None,
            (None, place) => place.map(|place| own(place).unsigned()),
        };
        let is_nothing = self.text.is_empty() && signature.is_none();
        (!is_nothing).then_some(Part::Thought { text: self.text, signature })
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
