//! A model for tests: it replies by a script, or by a function, and keeps the requests that it received.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Serialize;
use serde_json::Value;

use super::{
    Finish, Model, ModelError, ModelEvent, ModelLimits, ModelReply, ModelRequest, ModelStream, Part,
};
use super::{Price, ToolUse, Usage};

type Respond = dyn Fn(&ModelRequest) -> ScriptedReply + Send + Sync;

/// A model that follows a script, for tests and for examples without a network.
///
/// Clones share script and requests, so a test keeps one and gives the other to the agent. After the last reply of its
/// script each further call fails with class `permanent`.
///
/// ```
/// use serde_json::json;
/// use workflow_agent::prelude::*;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([
///     ScriptedReply::text("It is warm."),
/// ]);
/// let agent = Agent::builder("assistant").model(model.clone()).build()?;
/// assert_eq!(agent.ask("Warm in Bern?").await?.text, "It is warm.");
/// assert_eq!(model.requests()[0].messages[0].text(), "Warm in Bern?");
/// # Ok(())
/// # }
/// ```
///
/// After a crash a resumed run may repeat its last call, and a script that counts its calls would be out of step. Use
/// [`respond`](Self::respond) there: its function sees the request.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Script,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    limits: ModelLimits,
    native_output: bool,
    name: Arc<str>,
}

#[derive(Clone)]
enum Script {
    Replies(Arc<Mutex<VecDeque<ScriptedReply>>>),
    Function(Arc<Respond>),
}

impl ScriptedModel {
    /// A model that gives these replies, one for each call.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::of(Script::Replies(Arc::new(Mutex::new(replies.into_iter().collect()))))
    }

    /// A model whose function replies to each request.
    pub fn respond(reply: impl Fn(&ModelRequest) -> ScriptedReply + Send + Sync + 'static) -> Self {
        Self::of(Script::Function(Arc::new(reply)))
    }

    fn of(script: Script) -> Self {
        Self {
            script,
            requests: Arc::default(),
            limits: ModelLimits::new(200_000, 8_000).price(Price::new(1.0, 1.0)),
            native_output: false,
            name: "scripted".into(),
        }
    }

    /// Sets the limits. Default: a context of 200,000 tokens, replies of 8,000, and a price of 1 for a million tokens.
    #[must_use]
    pub fn limits(self, limits: ModelLimits) -> Self {
        Self { limits, ..self }
    }

    /// Makes it a model that keeps to output schemas by itself: see [`Model::has_native_output`].
    #[must_use]
    pub fn native_output(self) -> Self {
        Self { native_output: true, ..self }
    }

    /// Sets the name. Default: `scripted`.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }

    fn has_native_output(&self) -> bool {
        self.native_output
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let reply = match &self.script {
            Script::Function(respond) => respond(&request),
            Script::Replies(replies) => {
                let next = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let over = || ScriptedReply::fail(ModelError::permanent("the script has no more replies"));
                next.unwrap_or_else(over)
            }
        };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        reply.stream()
    }
}

/// One reply of a [`ScriptedModel`].
#[derive(Debug, Clone)]
pub struct ScriptedReply {
    delay: Option<Duration>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Reply {
        events: Vec<ModelEvent>,
        reply: ModelReply,
    },
    Failure(ModelError),
    /// The stream breaks off with an error, or simply ends.
    Broken(Vec<ModelEvent>, Option<ModelError>),
    Silent,
}

impl ScriptedReply {
    /// An answer, shown as one piece.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::of(Kind::Reply { events: vec![ModelEvent::Text(text.clone())], reply: ModelReply::text(text) })
    }

    /// An answer that arrives in pieces.
    pub fn chunks<S: Into<String>>(chunks: impl IntoIterator<Item = S>) -> Self {
        let chunks: Vec<String> = chunks.into_iter().map(Into::into).collect();
        let reply = ModelReply::text(chunks.concat());
        Self::of(Kind::Reply { events: chunks.into_iter().map(ModelEvent::Text).collect(), reply })
    }

    /// A tool call. More of them follow with [`and_call`](Self::and_call).
    ///
    /// # Panics
    /// If the arguments cannot be serialised.
    pub fn call(id: &str, name: &str, arguments: impl Serialize) -> Self {
        Self::of(Kind::Reply { events: Vec::new(), reply: ModelReply::new(Vec::new(), Finish::ToolUse) })
            .and_call(id, name, arguments)
    }

    /// Adds a tool call; the reply then ends with [`Finish::ToolUse`].
    ///
    /// # Panics
    /// If the arguments cannot be serialised.
    #[must_use]
    pub fn and_call(mut self, id: &str, name: &str, arguments: impl Serialize) -> Self {
        let arguments =
            serde_json::to_value(arguments).expect("the arguments of a scripted call can be serialised");
        self.with(|events, reply| {
            events.push(ModelEvent::CallBegun { name: name.to_owned() });
            reply.parts.push(Part::Call(ToolUse::new(id, name, arguments)));
            reply.finish = Finish::ToolUse;
        });
        self
    }

    /// Exactly this reply, without pieces before it.
    pub fn reply(reply: ModelReply) -> Self {
        Self::of(Kind::Reply { events: Vec::new(), reply })
    }

    /// The call fails at once.
    pub fn fail(error: ModelError) -> Self {
        Self::of(Kind::Failure(error))
    }

    /// The pieces arrive, and then the stream fails, or ends without a reply.
    pub fn broken<S: Into<String>>(chunks: impl IntoIterator<Item = S>, error: Option<ModelError>) -> Self {
        Self::of(Kind::Broken(
            chunks.into_iter().map(|chunk| ModelEvent::Text(chunk.into())).collect(),
            error,
        ))
    }

    /// The call never returns.
    pub fn silent() -> Self {
        Self::of(Kind::Silent)
    }

    fn of(kind: Kind) -> Self {
        Self { delay: None, kind }
    }

    fn with(&mut self, change: impl FnOnce(&mut Vec<ModelEvent>, &mut ModelReply)) {
        if let Kind::Reply { events, reply } = &mut self.kind {
            change(events, reply);
        }
    }

    /// Puts text before the calls of a reply.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.with(|events, reply| {
            events.insert(0, ModelEvent::Text(text.clone()));
            reply.parts.insert(0, Part::Text(text));
        });
        self
    }

    /// Puts a thought before everything else.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.with(|events, reply| {
            events.insert(0, ModelEvent::Thought(text.clone()));
            reply.parts.insert(0, Part::Thought { text, signature: None });
        });
        self
    }

    /// Sets how the reply ended.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> Self {
        self.with(|_, reply| reply.finish = finish);
        self
    }

    /// Sets the reported usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.with(|_, reply| reply.usage = Some(usage));
        self
    }

    /// Sets the time before the reply.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    fn stream(self) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        async move {
            if let Some(delay) = self.delay {
                tokio::time::sleep(delay).await;
            }
            match self.kind {
                Kind::Reply { events, reply } => {
                    let events = events.into_iter().chain([ModelEvent::Finished(reply)]).map(Ok);
                    Ok(stream::iter(events.collect::<Vec<_>>()).boxed())
                }
                Kind::Failure(error) => Err(error),
                Kind::Broken(events, error) => {
                    let events = events.into_iter().map(Ok).chain(error.map(Err));
                    Ok(stream::iter(events.collect::<Vec<_>>()).boxed())
                }
                Kind::Silent => std::future::pending().await,
            }
        }
        .boxed()
    }
}

impl From<Value> for ScriptedReply {
    /// An answer with the value as JSON.
    fn from(value: Value) -> Self {
        Self::text(value.to_string())
    }
}
