//! Failures of users' code inside steps: panics become errors, and texts lose their secrets.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use workflow_core::errors::ContextError;
use workflow_core::{ErrorClass, RunError, StartError, StepError};

use crate::model::ModelError;
use crate::secret::Redactor;

/// The text of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without text")
}

/// The output of a future, or the text of its panic.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let caught = AssertUnwindSafe(future).catch_unwind().await;
    caught.map_err(|panic| format!("it panicked: {}", text_of(&*panic)))
}

/// The error of a step whose model call failed.
pub(crate) fn of_model(error: &ModelError, redactor: &Redactor) -> StepError {
    let text = workflow_core::errors::chain(error).clone();
    let failed = StepError::new(error.class, redactor.text(&text).into_owned());
    match error.retry_after {
        Some(delay) => failed.retry_after(delay),
        None => failed,
    }
}

/// The error of a step whose context failed: an unavailable store may be back soon.
pub(crate) fn of_context(error: ContextError) -> StepError {
    match error {
        ContextError::Unavailable { .. } => StepError::transient(error),
        _ => StepError::permanent(error),
    }
}

/// The result of a call of a memory that may have panicked. Its errors are texts of users' code.
pub(crate) fn of_memory<T>(
    called: Result<Result<T, ContextError>, String>,
    redactor: &Redactor,
) -> Result<T, StepError> {
    match called {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => {
            let class = of_context_class(&error);
            let text = workflow_core::errors::chain(&error).clone();
            Err(StepError::new(class, redactor.text(&text).into_owned()))
        }
        Err(panic) => {
            let text = format!("the memory failed: {panic}");
            Err(StepError::permanent(redactor.text(&text).into_owned()))
        }
    }
}

fn of_context_class(error: &ContextError) -> ErrorClass {
    match error {
        ContextError::Unavailable { .. } => ErrorClass::Transient,
        _ => ErrorClass::Permanent,
    }
}

/// The error of a step in which users' code failed.
pub(crate) fn of_user(error: &StepError, redactor: &Redactor) -> StepError {
    let text = workflow_core::errors::chain(error.source()).clone();
    let class = if error.is_classified() { error.class() } else { ErrorClass::Permanent };
    StepError::new(class, redactor.text(&text).into_owned())
}

/// The end of a child run without an outcome.
#[derive(Debug)]
pub(crate) struct ChildFailure {
    pub(crate) class: ErrorClass,
    pub(crate) text: String,
}

/// The failure of a child run.
///
/// # Errors
/// If the engine or its store stopped the child without an end: then the step that waits for it has none either.
pub(crate) fn of_child(error: RunError) -> Result<ChildFailure, StepError> {
    match error {
        RunError::Start(StartError::TooDeep { limit, .. }) => {
            let text = format!("agents nest at most {limit} levels deep");
            Ok(ChildFailure { class: ErrorClass::Permanent, text })
        }
        RunError::Detached | RunError::Store { .. } | RunError::Conflict { .. } => {
            Err(StepError::new(ErrorClass::Transient, error))
        }
        RunError::StepFailed { class, .. } => Ok(ChildFailure { class, text: error.to_string() }),
        error => Ok(ChildFailure { class: ErrorClass::Permanent, text: error.to_string() }),
    }
}
