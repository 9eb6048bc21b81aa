//! Several models in order: the next one is called if the one before fails.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use workflow_core::ErrorClass;

use super::{Model, ModelError, ModelLimits, ModelRequest, ModelStream};

/// Models in order: a call goes to the next one if the one before cannot begin its reply.
///
/// A call moves on after an error of class `transient`, `permanent` or `model` that comes before the first event of the
/// stream, or as its first item. A context error, or a stream that breaks off later, is an error of the whole: the agent
/// then shortens the conversation, or begins the turn anew. The limits are the smallest of all, and the price is the highest, so that a
/// budget holds for each of them.
///
/// ```
/// use workflow_agent::model::{Fallback, Model, ModelError, ScriptedModel, ScriptedReply};
///
/// let busy = ScriptedModel::respond(|_| ScriptedReply::fail(ModelError::transient("overloaded")));
/// let model = Fallback::new(busy).or(ScriptedModel::new([ScriptedReply::text("I am here.")]));
/// assert_eq!(model.name(), "scripted or scripted");
/// ```
#[derive(Clone)]
pub struct Fallback {
    models: Vec<Arc<dyn Model>>,
    name: Arc<str>,
}

impl Fallback {
    /// Begins with `first`.
    pub fn new(first: impl Model) -> Self {
        let name = first.name().into();
        Self { models: vec![Arc::new(first)], name }
    }

    /// Adds the model to call after all before it have failed.
    #[must_use]
    pub fn or(mut self, next: impl Model) -> Self {
        self.name = format!("{} or {}", self.name, next.name()).into();
        self.models.push(Arc::new(next));
        self
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Model for Fallback {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        let mut limits = self.models.iter().map(super::Model::limits);
        let first = limits.next().unwrap_or(ModelLimits::new(0, 0));
        limits.fold(first, |all, one| ModelLimits {
            context: all.context.min(one.context),
            output: all.output.min(one.output),
            price: all.price.zip(one.price).map(|(a, b)| super::Price {
                input: a.input.max(b.input),
                cached_input: a.cached_input.max(b.cached_input),
                output: a.output.max(b.output),
            }),
        })
    }

    fn has_native_output(&self) -> bool {
        self.models.iter().all(super::Model::has_native_output)
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let models = self.models.clone();
        async move {
            let mut failed = ModelError::permanent("there is no model");
            for model in models {
                match begun(&*model, request.clone()).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) if error.class == ErrorClass::ContextLimit => return Err(error),
                    Err(error) => failed = more_hopeful(failed, error),
                }
            }
            Err(failed)
        }
        .boxed()
    }
}

/// The stream of a call whose first item is no error.
async fn begun(model: &dyn Model, request: ModelRequest) -> Result<ModelStream, ModelError> {
    let mut stream = model.call(request).await?;
    let first = stream.next().await.transpose()?;
    Ok(stream::iter(first.map(Ok)).chain(stream).boxed())
}

/// Of two failures, the one that a retry may mend; else the later one.
fn more_hopeful(before: ModelError, after: ModelError) -> ModelError {
    match (before.class, after.class) {
        (ErrorClass::Transient, class) if class != ErrorClass::Transient => before,
        _ => after,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{FutureExt as _, StreamExt as _};

    use super::Fallback;
    use crate::model::{Message, Model, ModelError, ModelEvent, ModelRequest, ScriptedModel, ScriptedReply};

    fn text_of(model: &Fallback) -> Result<String, ModelError> {
        let call = async {
            let request = ModelRequest::new("", vec![Message::user("hello")], 100);
            let mut stream = model.call(request).await?;
            let mut text = String::new();
            while let Some(event) = stream.next().await {
                if let ModelEvent::Finished(reply) = event? {
                    text = crate::entry::text(&reply.parts);
                }
            }
            Ok(text)
        };
        call.now_or_never().unwrap()
    }

    /// A80
    #[test]
    fn a_call_moves_on_until_a_reply_begins() {
        let error = || ModelError::transient("overloaded");
        let second = || ScriptedModel::new([ScriptedReply::text("I am here.")]);
        let none: [&str; 0] = [];
        for first in [ScriptedReply::fail(error()), ScriptedReply::broken(none, Some(error()))] {
            let first = Arc::new(first);
            let busy = ScriptedModel::respond(move |_| (*first).clone());
            assert_eq!(text_of(&Fallback::new(busy).or(second())).unwrap(), "I am here.");
        }
        // A reply that has begun is not begun anew by another model.
        let broken = ScriptedModel::respond(move |_| ScriptedReply::broken(["I "], Some(error())));
        let failed = text_of(&Fallback::new(broken).or(second())).unwrap_err();
        assert_eq!(failed.message(), "overloaded");
    }
}
