//! Signs of work, which the work of a node shows while it runs, as events.

use super::GraphEvent;
use crate::retried::Again;
use crate::seen::{Activity, NodeActivity};

/// The event of a sign. The instruction of an agent is part of the event with which its visit begins.
pub(super) fn event(shown: NodeActivity) -> Option<GraphEvent> {
    let NodeActivity { node, iteration, attempt, item, activity } = shown;
    Some(match activity {
        Activity::Progress { text } => GraphEvent::Progress { node, iteration, attempt, item, text },
        Activity::ToolCalled { tool, input } => {
            GraphEvent::ToolCalled { node, iteration, attempt, item, tool, input }
        }
        Activity::ToolReturned { tool, ok, output, error } => {
            GraphEvent::ToolReturned { node, iteration, attempt, item, tool, ok, output, error }
        }
        Activity::Again(Again { of, failure, .. }) => {
            GraphEvent::WorkRepeated { node, iteration, attempt, item, of, failure }
        }
        Activity::Instructed { .. } => return None,
    })
}
