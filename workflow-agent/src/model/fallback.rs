//! Several models in order: the next one is called if the one before fails.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use workflow_core::ErrorClass;

use super::{Model, ModelError, ModelLimits, ModelRequest, ModelStream};

/// Models in order: a call goes to the next one if the one before cannot begin its reply.
///
/// A call moves on after an error of class `transient`, `permanent` or `model` that comes before the first event of the
/// stream. A context error, or a stream that breaks off, is an error of the whole: the agent then shortens the
/// conversation, or begins the turn anew. The limits are the smallest of all, and the price is the highest, so that a
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
                match model.call(request.clone()).await {
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

/// Of two failures, the one that a retry may mend; else the later one.
fn more_hopeful(before: ModelError, after: ModelError) -> ModelError {
    match (before.class, after.class) {
        (ErrorClass::Transient, class) if class != ErrorClass::Transient => before,
        _ => after,
    }
}
