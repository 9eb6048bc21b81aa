//! Memory (to be replaced).
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workflow_core::errors::ContextError;
use workflow_core::{RunId, StepError, ThreadContext};
/// M.
pub trait Memory: Send + Sync + 'static {
    /// R.
    fn recall<'a>(
        &'a self,
        question: &'a Question,
        thread: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>>;
    /// R.
    fn remember<'a>(
        &'a self,
        episode: &'a Episode,
        thread: &'a ThreadContext,
    ) -> BoxFuture<'a, Result<(), ContextError>>;
}
/// Q.
#[derive(Debug)]
pub struct Question {
    /// T.
    pub text: String,
    /// K.
    pub known_runs: Vec<RunId>,
}
/// E.
#[derive(Debug)]
pub struct Episode {
    /// R.
    pub run: RunId,
    /// Q.
    pub question: String,
    /// A.
    pub answer: String,
}
impl Episode {
    pub(crate) fn new(run: RunId, question: String, answer: &str) -> Self {
        Self { run, question, answer: answer.into() }
    }
}
/// R.
#[derive(Debug)]
pub struct Recalled {
    /// T.
    pub text: String,
}
/// E.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Entities {
    /// E.
    pub entities: Vec<String>,
    /// R.
    pub relations: Vec<String>,
}
pub(crate) async fn merge_entities(_: Entities, _: &RunId, _: &ThreadContext) -> Result<(), ContextError> {
    Ok(())
}
pub(crate) async fn recall_entities(_: &str, _: &ThreadContext) -> Result<Vec<Recalled>, StepError> {
    Ok(Vec::new())
}
