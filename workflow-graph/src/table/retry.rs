//! Attempts by the executor: functions, tools and commands have them, and nothing else has.

use std::time::Duration;

use workflow_core::{ErrorClass, Retries, RetryPolicy};

use crate::document::model::{Graph, Node, Retry, Work};

const ATTEMPTS: u32 = 3;
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_mins(1);
const FACTOR: f64 = 2.0;

pub(super) fn none() -> RetryPolicy {
    RetryPolicy::none()
}

/// The most attempts of a node's work.
pub(crate) fn attempts(graph: &Graph, node: &Node) -> u32 {
    if !matches!(node.work, Work::Function(_) | Work::Tool(_) | Work::Command(_)) {
        return 1;
    }
    match node.retry.as_ref().map(|retry| &retry.value).or(graph.defaults.retry.as_ref()) {
        Some(Retry::None) => 1,
        Some(Retry::Attempts { attempts, .. }) => attempts.unwrap_or(ATTEMPTS),
        None => ATTEMPTS,
    }
}

/// The attempts of a node: its own, else those of the document, else 3 after 1 s and 2 s.
pub(super) fn of(graph: &Graph, node: &Node) -> RetryPolicy {
    if !matches!(node.work, Work::Function(_) | Work::Tool(_) | Work::Command(_)) {
        return none();
    }
    let stated = node.retry.as_ref().map(|retry| &retry.value).or(graph.defaults.retry.as_ref());
    let retries = match stated {
        Some(Retry::None) => return none(),
        Some(Retry::Attempts { attempts, first, factor, most, jitter }) => {
            let attempts = attempts.unwrap_or(ATTEMPTS).saturating_sub(1);
            let retries = Retries::exponential(attempts, first.unwrap_or(FIRST));
            let retries = retries.factor(factor.unwrap_or(FACTOR)).cap(most.unwrap_or(MOST));
            retries.jitter(jitter.unwrap_or(0.0))
        }
        None => Retries::exponential(ATTEMPTS - 1, FIRST).factor(FACTOR).cap(MOST),
    };
    let classes = [ErrorClass::Transient, ErrorClass::Tool, ErrorClass::Model];
    classes.into_iter().fold(none(), |policy, class| policy.on(class, retries.clone()))
}
