//! The other providers of the crate `genai`, mapped to the types of this crate. The five own kinds never come here.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, ContentPart, MessageContent,
    StopReason, StreamEnd, Tool, ToolCall, ToolChoice as GenaiChoice, ToolResponse,
};
use genai::resolver::{AuthData, AuthResolver, Endpoint, ServiceTargetResolver};
use genai::{ModelIden, ServiceTarget};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::assembly::Assembly;
use super::ending::Ending;
use super::failure::{Failure, Subject};
use super::frames::REPLY;
use super::kind::Kind;
use super::reading::{PATIENCE, silent};
use super::wire::{Target, arguments_object, id_of, name_of, parameters};
use super::{Backend, Provider, ProviderError, ProviderModel};
use crate::model::{
    Finish, Image, Message, ModelError, ModelEvent, ModelLimits, ModelReply, ModelRequest, ModelStream, Part,
    ToolChoice, Usage, place_of,
};

/// The limits of a model unless others are set.
const LIMITS: ModelLimits = ModelLimits::new(32_000, 4_096);

/// The longest id of a call.
const ID: usize = 40;

/// Marks thoughts: `genai` knows the field of each provider.
const PLACE: &str = "reasoning";

/// An adapter of `genai` that no own kind replaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adapter(AdapterKind);

impl Adapter {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::all().find(|adapter| adapter.name() == name)
    }

    fn all() -> impl Iterator<Item = Self> {
        let others = AdapterKind::all().iter().filter(|kind| Kind::of_name(kind.as_lower_str()).is_none());
        others.map(|kind| Self(*kind))
    }

    pub(super) fn names() -> Vec<&'static str> {
        Self::all().map(Self::name).collect()
    }

    pub(super) fn name(self) -> &'static str {
        self.0.as_lower_str()
    }

    pub(super) fn variable(self) -> Option<&'static str> {
        self.0.default_key_env_name()
    }
}

impl Provider {
    pub(super) fn build_genai(
        self,
        Adapter(adapter): Adapter,
        http: reqwest::Client,
        key: Option<String>,
        endpoint: Option<&Url>,
        subject: Arc<Subject>,
    ) -> Result<ProviderModel, ProviderError> {
        if let Some(setting) = [("streaming", !self.streaming), ("header", !self.headers.is_empty())]
            .into_iter()
            .find_map(|(setting, is_set)| is_set.then(|| setting.to_owned()))
        {
            return Err(ProviderError::UnsupportedSetting { name: self.name(), setting });
        }
        // An empty key stands for none: without one `genai` would read the variable.
        let key = key.unwrap_or_default();
        let auth =
            AuthResolver::from_resolver_fn(move |_: ModelIden| Ok(Some(AuthData::from_single(key.clone()))));
        let base: Option<Arc<str>> =
            endpoint.map(|url| format!("{}/", url.as_str().trim_end_matches('/')).into());
        let target = ServiceTargetResolver::from_resolver_fn(move |target: ServiceTarget| {
            let endpoint = base.clone().map_or(target.endpoint, Endpoint::from_owned);
            Ok(ServiceTarget { endpoint, ..target })
        });
        let client = genai::Client::builder()
            .with_reqwest(http)
            .with_adapter_kind(adapter)
            .with_auth_resolver(auth)
            .with_service_target_resolver(target)
            .build();
        let failed =
            |error: genai::Error| ProviderError::Client { name: self.name(), reason: error.to_string() };
        let client = client.map_err(failed)?;
        let limits = self.priced(LIMITS);
        let provider: Arc<str> = match &subject.origin {
            None => adapter.as_lower_str().into(),
            Some(origin) => format!("{}@{origin}", adapter.as_lower_str()).into(),
        };
        let target = Target {
            model: Arc::clone(&self.model),
            provider,
            is_original: endpoint.is_none(),
            streaming: true,
            context: limits.context,
        };
        let genai = Genai {
            client,
            model: ModelIden::new(adapter, &*self.model),
            target,
            options: Value::Object(self.options),
            idle_timeout: self.idle_timeout,
            subject: Arc::clone(&subject),
        };
        // `genai` drops schemas that a provider does not know.
        Ok(ProviderModel {
            backend: Backend::Genai(Arc::new(genai)),
            name: self.model,
            subject,
            limits,
            native_output: false,
        })
    }
}

/// A client of one model.
pub(super) struct Genai {
    client: genai::Client,
    model: ModelIden,
    target: Target,
    options: Value,
    idle_timeout: Duration,
    subject: Arc<Subject>,
}

impl Genai {
    pub(super) async fn call(self: Arc<Self>, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let options = self.options(&request);
        let chat = chat(&self.target, &request);
        let until = Instant::now() + self.idle_timeout;
        let sent = self.client.exec_chat_stream(self.model.clone(), chat, Some(&options));
        let stream = match timeout_at(until, sent).await {
            Err(_) => return Err(self.subject.error(silent(self.idle_timeout))),
            Ok(Err(error)) => return Err(self.subject.error(failure(&error))),
            Ok(Ok(response)) => response.stream,
        };
        Ok(self.events(stream))
    }

    fn options(&self, request: &ModelRequest) -> ChatOptions {
        let options = ChatOptions::default()
            .with_max_tokens(u32::try_from(request.max_output).unwrap_or(u32::MAX))
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_capture_tool_calls(true)
            .with_extra_body(self.options.clone());
        match request.tool_choice {
            ToolChoice::None if !request.tools.is_empty() => options.with_tool_choice(GenaiChoice::None),
            _ => options,
        }
    }

    fn events(self: Arc<Self>, stream: ChatStream) -> ModelStream {
        let now = Instant::now();
        let moved_by = now + self.idle_timeout * PATIENCE;
        let alive_by = now + self.idle_timeout;
        let live = Live { genai: self, stream, begun: Vec::new(), size: 0, alive_by, moved_by };
        stream::unfold(Some(live), |live| async move {
            let mut live = live?;
            match live.next().await {
                Ok(ModelEvent::Finished(reply)) => Some((Ok(ModelEvent::Finished(reply)), None)),
                Ok(event) => Some((Ok(event), Some(live))),
                Err(failure) => Some((Err(live.genai.subject.error(failure)), None)),
            }
        })
        .boxed()
    }
}

/// A stream that is being read.
struct Live {
    genai: Arc<Genai>,
    stream: ChatStream,
    /// The ids of the calls that viewers have seen.
    begun: Vec<String>,
    /// The bytes of the reply so far.
    size: usize,
    alive_by: Instant,
    moved_by: Instant,
}

impl Live {
    async fn next(&mut self) -> Result<ModelEvent, Failure> {
        let silence = self.genai.idle_timeout;
        loop {
            let event = match timeout_at(self.alive_by.min(self.moved_by), self.stream.next()).await {
                Err(_) => return Err(silent(silence)),
                Ok(None) => return Err(Failure::broken_off()),
                Ok(Some(event)) => event.map_err(|error| failure(&error))?,
            };
            if let ChatStreamEvent::End(end) = event {
                return reply(&self.genai.target.provider, end).map(ModelEvent::Finished);
            }
            self.alive_by = Instant::now() + silence;
            let size = size_of(&event);
            self.size = self.size.saturating_add(size);
            if self.size > REPLY {
                return Err(Failure::unusable(format!("the reply has more than {REPLY} bytes")));
            }
            if size > 0 {
                self.moved_by = Instant::now() + silence * PATIENCE;
            }
            if let Some(shown) = shown(event, &mut self.begun) {
                return Ok(shown);
            }
        }
    }
}

/// How many bytes an event adds to a reply. A call repeats its arguments with each fragment, and counts once.
fn size_of(event: &ChatStreamEvent) -> usize {
    match event {
        ChatStreamEvent::Chunk(chunk)
        | ChatStreamEvent::ReasoningChunk(chunk)
        | ChatStreamEvent::ThoughtSignatureChunk(chunk) => chunk.content.len(),
        ChatStreamEvent::ToolCallChunk(chunk) => {
            let arguments = chunk.tool_call.fn_arguments.as_str().map_or(0, str::len);
            if arguments > REPLY { arguments } else { 1 }
        }
        _ => 0,
    }
}

/// The piece that an event shows. A call comes as it grows, and is shown once.
fn shown(event: ChatStreamEvent, begun: &mut Vec<String>) -> Option<ModelEvent> {
    match event {
        ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => Some(ModelEvent::Text(chunk.content)),
        ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
            Some(ModelEvent::Thought(chunk.content))
        }
        ChatStreamEvent::ToolCallChunk(chunk) => {
            let call = chunk.tool_call;
            let is_new = !call.fn_name.is_empty() && !begun.contains(&call.call_id) && begun.len() < 1_024;
            is_new.then(|| {
                begun.push(call.call_id);
                ModelEvent::CallBegun { name: call.fn_name }
            })
        }
        _ => None,
    }
}

fn chat(target: &Target, request: &ModelRequest) -> ChatRequest {
    let messages = request.messages.iter().flat_map(|message| match message {
        Message::User { text, images } => {
            let text = (!text.is_empty() || images.is_empty()).then(|| ContentPart::from_text(&**text));
            let parts: Vec<_> = text.into_iter().chain(images.iter().map(image)).collect();
            vec![ChatMessage::user(MessageContent::from_parts(parts))]
        }
        Message::Assistant { parts } => {
            let parts: Vec<_> = target.returning(parts).filter_map(|sent| part(target, sent)).collect();
            if parts.is_empty() {
                vec![]
            } else {
                vec![ChatMessage::assistant(MessageContent::from_parts(parts))]
            }
        }
        Message::Results(results) => {
            let results = results.iter().map(|result| {
                let response = ToolResponse::new(id_of(&result.call, ID), &*result.text);
                ChatMessage::from(response.with_fn_name(name_of(&result.name)))
            });
            results.collect()
        }
    });
    let chat = ChatRequest::from_messages(messages.collect());
    let chat = if request.system.is_empty() { chat } else { chat.with_system(&*request.system) };
    if request.tools.is_empty() {
        return chat;
    }
    chat.with_tools(request.tools.iter().map(|tool| {
        let sent = Tool::new(tool.name()).with_schema(parameters(tool.schema()));
        sent.with_description(tool.description())
    }))
}

fn image(image: &Image) -> ContentPart {
    match image {
        Image::Url(url) => ContentPart::from_binary_url("image/*", url, None),
        Image::Data { media_type, base64 } => ContentPart::from_binary_base64(media_type, &**base64, None),
    }
}

fn part(target: &Target, part: &Part) -> Option<ContentPart> {
    match part {
        Part::Text(text) => (!text.is_empty()).then(|| ContentPart::from_text(text)),
        Part::Call(call) => {
            let signatures = target.own(call.signature.as_ref()).cloned();
            Some(ContentPart::ToolCall(ToolCall {
                call_id: id_of(&call.id, ID),
                fn_name: name_of(&call.name),
                fn_arguments: arguments_object(call),
                thought_signatures: signatures.and_then(|data| serde_json::from_value(data).ok()),
            }))
        }
        // The only thoughts and opaque parts that come here are those of `reply`.
        Part::Thought { text, signature } => match target.own(signature.as_ref())? {
            data if place_of(data).is_some() => Some(ContentPart::ReasoningContent(text.clone())),
            // Journals of earlier versions have the whole part.
            data => serde_json::from_value(data.clone()).ok(),
        },
        Part::Opaque(opaque) => serde_json::from_value(opaque.data.clone()).ok(),
    }
}

/// The whole reply. Parts of the provider stay as `genai` has them, as JSON.
fn reply(provider: &Arc<str>, end: StreamEnd) -> Result<ModelReply, Failure> {
    let mut assembly = Assembly::default();
    let content = end.captured_content.map(MessageContent::into_parts).unwrap_or_default();
    let has_thoughts = content.iter().any(ContentPart::is_reasoning_content);
    if let Some(thought) = end.captured_reasoning_content.filter(|_| !has_thoughts) {
        assembly.thought(&thought, PLACE);
    }
    for part in content {
        match part {
            ContentPart::Text(text) => assembly.text(&text),
            ContentPart::ToolCall(call) => {
                let at = assembly.call(&call.call_id, &call.fn_name)?;
                assembly.whole_arguments(at, Some(&call.fn_arguments));
                if let Some(signatures) = call.thought_signatures.filter(|all| !all.is_empty()) {
                    assembly.sign_call(at, signatures.into());
                }
            }
            ContentPart::ReasoningContent(text) => {
                assembly.begin_thought(PLACE);
                assembly.thought(&text, PLACE);
            }
            part @ (ContentPart::ThoughtSignature(_) | ContentPart::Custom(_)) => {
                assembly.opaque(serde_json::to_value(part).unwrap_or_default());
            }
            ContentPart::Binary(_) | ContentPart::ToolResponse(_) => {}
        }
    }
    let finish = match end.captured_stop_reason {
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => assembly.complete(),
        Some(StopReason::ToolCall(_)) => Finish::ToolUse,
        Some(StopReason::MaxTokens(_)) => Finish::Length,
        Some(StopReason::ContentFilter(_)) => Finish::Refusal,
        Some(StopReason::Other(other)) => Ending::of(&other)?.finish(&assembly),
        // The stream ended without a reason, so nothing says that the reply is whole.
        None => return Err(Failure::broken_off()),
    };
    let usage = end.captured_usage.and_then(|usage| {
        let tokens = |count: Option<i32>| u64::try_from(count?).ok();
        let cached = usage.prompt_tokens_details.and_then(|details| tokens(details.cached_tokens));
        let both = Usage::new(tokens(usage.prompt_tokens)?, tokens(usage.completion_tokens)?);
        Some(both.cached(cached.unwrap_or(0)))
    });
    assembly.reply(provider, finish, usage)
}

/// The failure of an error. That of a stream has the answer's status in the error that it wraps.
fn failure(error: &genai::Error) -> Failure {
    if let genai::Error::WebStream { error, .. } = error
        && let Some(inner) = error.downcast_ref::<genai::Error>()
    {
        return failure(inner);
    }
    if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
        return Failure::of_answer(status.as_u16(), headers, body_of(error).as_bytes(), false);
    }
    match error {
        genai::Error::ChatResponse { body, .. } => Failure::reported(body),
        genai::Error::WebStream { .. } | genai::Error::StreamParse { .. } => {
            Failure::transient(format!("the stream broke off: {error}"))
        }
        genai::Error::WebModelCall { .. } | genai::Error::WebAdapterCall { .. } => {
            Failure::transient(format!("the call failed: {error}"))
        }
        _ => Failure::permanent(error.to_string()),
    }
}

fn body_of(error: &genai::Error) -> &str {
    use genai::webc::Error::ResponseFailedStatus;
    match error {
        genai::Error::HttpError { body, .. }
        | genai::Error::WebModelCall { webc_error: ResponseFailedStatus { body, .. }, .. }
        | genai::Error::WebAdapterCall { webc_error: ResponseFailedStatus { body, .. }, .. } => body,
        _ => "",
    }
}
