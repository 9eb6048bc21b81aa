//! `retry-on-agent`, `missing-reply-schema`: keys that some kinds of work lack or must not have.

use crate::document::model::{Graph, Work};
use crate::problem::Code;
use crate::problem::sink::Problems;

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    for node in &graph.nodes {
        let id = &node.id.value;
        match (&node.work, &node.retry) {
            (Work::Agent(_), Some(retry)) => {
                let message =
                    format!("the agent node `{id}` has `retry`, and the executor never repeats agents");
                let remedy = "write the attempts as `ensure: {all: […], retries: 1}`";
                problems.add(Code::RetryOnAgent, retry.at, message, remedy);
            }
            (Work::Human(human), _) if human.reply.is_none() && !node.unread.reply => {
                let message =
                    format!("`{id}` asks people without a schema of the reply, so any reply is accepted");
                problems.add(Code::MissingReplySchema, human.at, message, "add `reply:` with a JSON Schema");
            }
            _ => {}
        }
    }
}
