//! The kinds of providers: their names, variables, addresses, limits, and which format is theirs.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::failure::Failure;
use super::frames::Framing;
use super::wire::{Decoder, Target};
use super::{anthropic, gemini, ollama, openai, responses};
use crate::model::{ModelLimits, ModelReply, ModelRequest};

/// A provider with a client of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai_resp",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The variable of the key.
    pub(crate) const fn variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::Responses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// The header of the key, and what stands before it.
    pub(crate) const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
            Self::OpenAi | Self::Responses | Self::Ollama => ("authorization", "Bearer "),
        }
    }

    pub(crate) const fn endpoint(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// The address of calls below an endpoint. The endpoint's query stays.
    pub(crate) fn address(self, endpoint: &Url, model: &str, streaming: bool) -> Url {
        let mut url = endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            match self {
                Self::OpenAi => drop(path.extend(["chat", "completions"])),
                Self::Responses => drop(path.push("responses")),
                Self::Anthropic => drop(path.push("messages")),
                Self::Ollama => drop(path.extend(["api", "chat"])),
                Self::Gemini => {
                    let action = if streaming { "streamGenerateContent" } else { "generateContent" };
                    if !model.contains('/') {
                        path.push("models");
                    }
                    path.extend(format!("{model}:{action}").split('/'));
                }
            }
        }
        if self == Self::Gemini && streaming {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url
    }

    /// The limits unless others are set: careful values, since no provider reports those of its models.
    pub(crate) const fn limits(self) -> ModelLimits {
        match self {
            Self::OpenAi => ModelLimits::new(128_000, 16_384),
            Self::Responses | Self::Anthropic => ModelLimits::new(200_000, 32_000),
            Self::Gemini => ModelLimits::new(1_000_000, 32_768),
            Self::Ollama => ModelLimits::new(16_384, 4_096),
        }
    }

    /// Fields of the body that the client sets from each request.
    pub(crate) const fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi | Self::Ollama => &["model", "messages", "stream", "tools", "tool_choice", "format"],
            Self::Responses => &["model", "input", "instructions", "stream", "store", "tools", "tool_choice"],
            Self::Anthropic => &["model", "messages", "system", "stream", "tools", "tool_choice"],
            Self::Gemini => &["contents", "systemInstruction", "tools", "toolConfig"],
        }
    }

    pub(crate) const fn framing(self) -> Framing {
        match self {
            Self::Ollama => Framing::Lines,
            _ => Framing::Events,
        }
    }

    /// The body of a request, before options.
    pub(crate) fn body(self, target: &Target, request: &ModelRequest) -> Result<Value, Failure> {
        match self {
            Self::OpenAi => Ok(openai::body(target, request)),
            Self::Responses => Ok(responses::body(target, request)),
            Self::Anthropic => Ok(anthropic::body(target, request)),
            Self::Gemini => Ok(gemini::body(target, request)),
            Self::Ollama => ollama::body(target, request),
        }
    }

    /// A reader of a streamed reply.
    pub(crate) fn decoder(self, provider: Arc<str>) -> Box<dyn Decoder> {
        match self {
            Self::OpenAi => Box::new(openai::Chat::new(provider)),
            Self::Responses => Box::new(responses::Responses::new(provider)),
            Self::Anthropic => Box::new(anthropic::Messages::new(provider)),
            Self::Gemini => Box::new(gemini::Gemini::new(provider)),
            Self::Ollama => Box::new(ollama::Ollama::new(provider)),
        }
    }

    /// A reply in one piece.
    pub(crate) fn whole(self, provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
        match self {
            Self::OpenAi => openai::whole(provider, value),
            Self::Responses => responses::whole(provider, value),
            Self::Anthropic => anthropic::whole(provider, value),
            Self::Gemini => gemini::whole(provider, value),
            Self::Ollama => ollama::whole(provider, value),
        }
    }
}
