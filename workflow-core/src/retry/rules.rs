//! An engine's rules for failures: the default policy of its steps, and the classes of users' error types.

use std::error::Error;

use super::RetryPolicy;
use crate::error::{ErrorClass, StepError};
use crate::panics::caught;

/// Returns the class of an error, if it knows the type.
type Classifier = Box<dyn Fn(&StepError) -> Option<ErrorClass> + Send + Sync>;

/// The rules of one engine.
#[derive(Default)]
pub(crate) struct Rules {
    /// For every step without a policy of its own.
    pub(crate) policy: RetryPolicy,
    classifiers: Vec<Classifier>,
}

impl Rules {
    /// Adds a classifier. A later one for the same type replaces the earlier one.
    pub(crate) fn classify<E: Error + 'static>(
        &mut self,
        class: impl Fn(&E) -> ErrorClass + Send + Sync + 'static,
    ) {
        self.classifiers.push(Box::new(move |error| error.downcast_ref::<E>().map(&class)));
    }

    /// Classifies an error without a class, if a classifier knows its type. A panic of a classifier counts as no
    /// answer.
    pub(crate) fn classified(&self, error: StepError) -> StepError {
        if error.is_classified() {
            return error;
        }
        match self.class_of(&error) {
            Some(class) => error.of_class(class),
            None => error,
        }
    }

    fn class_of(&self, error: &StepError) -> Option<ErrorClass> {
        let mut latest_first = self.classifiers.iter().rev();
        latest_first.find_map(|class| caught(|| class(error)).unwrap_or_default())
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("policy", &self.policy).finish_non_exhaustive()
    }
}
