//! The work of nodes and what is checked around it. Each file beneath owns one part; the walk calls them.

use std::sync::Arc;

use serde_json::Value;

use crate::NodeContext;
use crate::expression::Scope;

pub(crate) mod agent;
pub(crate) mod checks;
pub(crate) mod judge;
pub(crate) mod path;
pub(crate) mod render;
#[cfg(test)]
mod tests;

/// The view that the walk gives to the work of an agent node. Work keeps it while it waits.
pub(crate) trait Sees: Send + Sync {
    /// The names as they are before this visit has a result.
    fn before(&self) -> &(dyn Scope + Send + Sync);

    /// The names with `data` as the latest result of the node itself.
    fn with<'a>(&'a self, data: &'a Value) -> Box<dyn Scope + Send + Sync + 'a>;

    /// The surroundings of the agent's next run, after this many runs in the present attempt of the node.
    fn context(&self, runs: u32) -> NodeContext;
}

/// Adds the warnings that are new, each cut at the length of reasons.
pub(crate) fn add_warnings(to: &mut Vec<Arc<str>>, warnings: Vec<Arc<str>>) {
    for warning in warnings {
        let warning: Arc<str> = reason(&warning).into();
        if !to.contains(&warning) {
            to.push(warning);
        }
    }
}

/// Characters of a reason in messages and in the log.
const REASON_CHARACTERS: usize = 500;

/// The text in one line, cut at the length of reasons, so that no model decides about the size of messages.
pub(crate) fn reason(text: &str) -> String {
    let mut reason = String::new();
    let mut left = REASON_CHARACTERS;
    for word in text.split_whitespace() {
        for c in reason.chars().next().map(|_| ' ').into_iter().chain(word.chars()) {
            if left == 0 {
                reason.push('…');
                return reason;
            }
            reason.push(c);
            left -= 1;
        }
    }
    reason
}
