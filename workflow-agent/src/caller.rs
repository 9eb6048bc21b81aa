//! One call of a model: its span, its panics, its bound, and its secrets. Every call of the crate goes through here.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tracing::Instrument as _;

use crate::failures;
use crate::model::{Model, ModelError, ModelEvent, ModelReply, ModelRequest, Opaque, Part, Usage};
use crate::secret::{Redactor, StreamRedactor};

/// The longest reply in bytes. The limits that a model claims do not raise it.
const LONGEST: usize = 16 * 1024 * 1024;

/// A piece of a reply for viewers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Thought(String),
}

/// Calls a model.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) redactor: Redactor,
    /// Whether spans contain prompts and replies.
    pub(crate) contents: bool,
}

impl Caller {
    /// Calls the model, and hands each piece of the reply to `show`. The usage is the reported one, or an estimate.
    pub(crate) async fn call(
        &self,
        request: ModelRequest,
        show: impl FnMut(Piece),
    ) -> Result<(ModelReply, Usage), ModelError> {
        let characters = request.characters();
        self.call_counted(request, || characters, show).await
    }

    /// The same. `characters` counts those of the request, and is called only if the usage is to be estimated.
    pub(crate) async fn call_counted(
        &self,
        request: ModelRequest,
        characters: impl Fn() -> usize,
        show: impl FnMut(Piece),
    ) -> Result<(ModelReply, Usage), ModelError> {
        let span = tracing::info_span!(
            "chat",
            otel.name = format!("chat {}", self.model.name()),
            otel.kind = "client",
            otel.status_code = tracing::field::Empty,
            error.r#type = tracing::field::Empty,
            gen_ai.operation.name = "chat",
            gen_ai.request.model = self.model.name(),
            gen_ai.request.max_tokens = request.max_output,
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            gen_ai.response.finish_reasons = tracing::field::Empty,
            gen_ai.input.messages = tracing::field::Empty,
            gen_ai.output.messages = tracing::field::Empty,
        );
        if self.contents {
            span.record("gen_ai.input.messages", self.redactor.text(&texts(&request)).as_ref());
        }
        let called = failures::guarded(self.streamed(request, show)).instrument(span.clone()).await;
        let called =
            called.unwrap_or_else(|panic| Err(ModelError::permanent(format!("the model failed: {panic}"))));
        match called {
            Ok(reply) => {
                let usage = reply.usage.unwrap_or_else(|| estimate(characters(), reply.characters()));
                span.record("gen_ai.usage.input_tokens", usage.input);
                span.record("gen_ai.usage.output_tokens", usage.output);
                span.record("gen_ai.response.finish_reasons", tracing::field::debug(&reply.finish));
                if self.contents {
                    span.record("gen_ai.output.messages", crate::entry::text(&reply.parts).as_str());
                }
                Ok((reply, usage))
            }
            Err(error) => {
                span.record("otel.status_code", "ERROR");
                span.record("error.type", error.class.to_string().as_str());
                Err(error)
            }
        }
    }

    async fn streamed(
        &self,
        request: ModelRequest,
        mut show: impl FnMut(Piece),
    ) -> Result<ModelReply, ModelError> {
        let mut stream = self.model.call(request).await?;
        let (mut text, mut thought) = (self.redactor.stream(), self.redactor.stream());
        let mut bytes = 0_usize;
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::Text(piece) => {
                    bytes += piece.len();
                    push(&mut text, &piece, |piece| show(Piece::Text(piece)));
                }
                ModelEvent::Thought(piece) => {
                    bytes += piece.len();
                    push(&mut thought, &piece, |piece| show(Piece::Thought(piece)));
                }
                ModelEvent::CallBegun { .. } => {}
                ModelEvent::Finished(reply) => {
                    if reply.characters() > LONGEST {
                        return Err(too_long());
                    }
                    rest(thought, |piece| show(Piece::Thought(piece)));
                    rest(text, |piece| show(Piece::Text(piece)));
                    return Ok(self.redacted(reply));
                }
            }
            if bytes > LONGEST {
                return Err(too_long());
            }
        }
        Err(ModelError::transient("the reply broke off: its stream ended without the end of the reply"))
    }

    /// The reply without secrets. Signatures and opaque data stay as they are: their provider would refuse any other.
    fn redacted(&self, mut reply: ModelReply) -> ModelReply {
        merge(&mut reply.parts);
        self.redact_texts(&mut reply.parts);
        self.redact_unsigned(&mut reply.parts);
        for part in &mut reply.parts {
            match part {
                Part::Thought { text, signature } => {
                    let redacted = match self.redactor.text(text) {
                        Cow::Owned(redacted) => redacted,
                        Cow::Borrowed(_) => continue,
                    };
                    *text = redacted;
                    // Its provider would refuse a signed thought with another text.
                    *signature = signature.take().filter(Opaque::is_mark);
                }
                Part::Call(call) => {
                    call.id = self.redactor.shared(&call.id);
                    call.name = self.redactor.shared(&call.name);
                    self.redactor.value(&mut call.arguments);
                    // As the journal has them, so that a request has the same bytes before and after a restart.
                    call.arguments.sort_all_objects();
                }
                Part::Text(_) | Part::Opaque(_) => {}
            }
        }
        reply
    }

    /// Thoughts that nobody signed are one text, and a secret may lie across them, or in what a mark says beside the text.
    fn redact_unsigned(&self, parts: &mut [Part]) {
        let is_unsigned = |part: &Part| match part {
            Part::Thought { signature, .. } => signature.as_ref().is_none_or(Opaque::is_mark),
            _ => false,
        };
        let last = parts.iter().rposition(is_unsigned);
        let mut stream = self.redactor.stream();
        for (place, part) in parts.iter_mut().enumerate() {
            if !is_unsigned(part) {
                continue;
            }
            let Part::Thought { text, signature } = part else { continue };
            *text = stream.push(text);
            if Some(place) == last {
                text.push_str(&std::mem::replace(&mut stream, self.redactor.stream()).finish());
            }
            if let Some(mark) = signature {
                self.redactor.value(&mut mark.data);
            }
        }
    }

    /// The texts of a reply are one text with other parts in between, and a secret may lie across them. A signature behind a
    /// text that changed goes.
    fn redact_texts(&self, parts: &mut Vec<Part>) {
        let mut stream = self.redactor.stream();
        let last = parts.iter().rposition(|part| matches!(part, Part::Text(_)));
        let mut changed = Vec::new();
        for (place, part) in parts.iter_mut().enumerate() {
            if let Part::Text(text) = part {
                let mut redacted = stream.push(text);
                if Some(place) == last {
                    redacted.push_str(&std::mem::replace(&mut stream, self.redactor.stream()).finish());
                }
                if redacted != *text {
                    changed.push(place);
                    *text = redacted;
                }
            }
        }
        let mut place = 0;
        parts.retain(|part| {
            let is_behind = place > 0 && changed.contains(&(place - 1)) && matches!(part, Part::Opaque(_));
            place += 1;
            !is_behind && !matches!(part, Part::Text(text) if text.is_empty())
        });
    }
}

fn push(stream: &mut StreamRedactor, piece: &str, show: impl FnOnce(String)) {
    let safe = stream.push(piece);
    if !safe.is_empty() {
        show(safe);
    }
}

fn rest(stream: StreamRedactor, show: impl FnOnce(String)) {
    let rest = stream.finish();
    if !rest.is_empty() {
        show(rest);
    }
}

fn too_long() -> ModelError {
    ModelError::unusable(format!("the reply is longer than {LONGEST} bytes"))
}

/// Joins neighbouring texts, and neighbouring thoughts that nobody signed, so that no secret hides between two of them, and
/// drops blank texts, which providers refuse. A text before an opaque part stays alone: its provider may have signed it.
fn merge(parts: &mut Vec<Part>) {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    let mut rest = parts.drain(..).peekable();
    while let Some(part) = rest.next() {
        let is_alone = matches!((&part, rest.peek()), (Part::Text(_), Some(Part::Opaque(_))));
        match (merged.last_mut(), part) {
            (_, Part::Text(text)) if text.is_empty() => {}
            (_, part) if is_alone => merged.push(part),
            (Some(Part::Text(before)), Part::Text(text))
            | (
                Some(Part::Thought { text: before, signature: None }),
                Part::Thought { text, signature: None },
            ) => before.push_str(&text),
            (_, part) => merged.push(part),
        }
    }
    drop(rest);
    merged.retain(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()));
    *parts = merged;
}

fn estimate(input: usize, output: usize) -> Usage {
    let tokens = |characters: usize| characters.div_ceil(4) as u64;
    Usage { input: tokens(input), output: tokens(output), cached_input: 0, estimated: true }
}

fn texts(request: &ModelRequest) -> String {
    let texts: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
    format!("{}\n\n{}", request.system, texts.join("\n\n"))
}
