//! Agents: their parts, checked and ready. `builder` makes them, and `flow` is the workflow that they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

mod ask;
mod builder;
mod host;
mod outcome;
mod problem;
mod prompt;

pub use ask::AgentError;
pub use builder::AgentBuilder;
pub(crate) use builder::{ASK_USER, is_name};
pub use host::HostAgents;
pub(crate) use host::below;
pub use outcome::{Answer, DataError, Outcome, StopReason, Stopped};
pub(crate) use outcome::{Called, Work};
pub use problem::{AgentBuildError, AgentProblem};
pub(crate) use prompt::{CONVERSATION, IMAGE, SessionPlace, TEXT};
pub use prompt::{Prompt, PromptError};

use crate::approval::OnRejection;
use crate::budget::Budget;
use crate::caller::Caller;
use crate::judge::Judge;
use crate::memory::Memory;
use crate::phase::{Conversation, Phase};
use crate::sub_agent::{Aggregation, SubAgent};
use crate::tool::{Schema, Tool, ToolSpec};

/// A model with tools, as a durable workflow.
///
/// [`Agent::builder`] makes one. [`ask`](Self::ask) runs it in memory. An engine hosts it as a workflow under its name
/// ([`HostAgents::agent`]); then [`Agent::start`](Self::start) and [`Session`](crate::Session) start its runs, and a run
/// that was interrupted resumes from its journal. Cloning copies a pointer.
///
/// ```
/// use workflow_agent::prelude::*;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([ScriptedReply::text("Hello, Ada.")]);
/// let agent = Agent::builder("greeter").model(model).identity("You greet people.").build()?;
/// let answer = agent.ask("I am Ada.").await?;
/// assert_eq!(answer.text, "Hello, Ada.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

/// The parts of an agent.
pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) caller: Caller,
    pub(crate) instructions: Arc<str>,
    pub(crate) tools: Tools,
    /// The specifications of all tools, sorted by name, as most requests have them.
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) judge: Option<Arc<dyn Judge>>,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) entities: bool,
    pub(crate) sub_agents: Vec<SubAgent>,
    pub(crate) aggregation: Aggregation,
    pub(crate) rules: Rules,
}

/// The rules of an agent's runs.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) max_turns: u32,
    pub(crate) closing_call: bool,
    /// The number of equal turns that ends a run.
    pub(crate) repeats: Option<u32>,
    pub(crate) max_output: Option<u64>,
    pub(crate) on_rejection: OnRejection,
    pub(crate) approval_expires: Duration,
    pub(crate) budget: Budget,
}

/// The tools of an agent, by name.
#[derive(Default)]
pub(crate) struct Tools(pub(crate) BTreeMap<Arc<str>, Offered>);

/// A tool, with its schema compiled.
pub(crate) struct Offered {
    pub(crate) spec: ToolSpec,
    pub(crate) schema: Schema,
    pub(crate) handler: Handler,
}

/// The code that answers calls.
pub(crate) enum Handler {
    Tool(Arc<dyn Tool>),
    /// `ask_user`: a request to a person.
    AskUser,
    /// `spawn_sub_agent`: child runs.
    Spawn,
}

impl Agent {
    /// Begins an agent. Its name is that of its workflow in engines, journals and reports.
    pub fn builder(name: impl Into<Arc<str>>) -> AgentBuilder {
        AgentBuilder::new(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The specifications of the tools that the model can be offered, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.inner.tools.0.values().map(|offered| &offered.spec)
    }

    /// The phase after a marker of this name; the first one without a marker.
    pub(crate) fn phase(&self, entered: Option<&str>) -> Option<(usize, &Phase)> {
        let phases = &self.inner.phases;
        let first = phases.first().map(|first| (0, first));
        match entered {
            // A run whose phase was renamed meanwhile begins with the first one, rather than without limits.
            Some(name) => phases.iter().enumerate().find(|(_, phase)| &*phase.name == name).or(first),
            None => first,
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

/// The terms of a run that do not change while it runs, out of its prompt and its agent.
pub(crate) struct Terms<'a> {
    pub(crate) prompt: Option<&'a Prompt>,
    pub(crate) agent: &'a Agent,
}

impl Terms<'_> {
    pub(crate) fn max_turns(&self) -> u32 {
        let own = self.agent.inner.rules.max_turns;
        self.prompt.and_then(|prompt| prompt.turns).map_or(own, |turns| turns.min(own))
    }

    pub(crate) fn budget(&self) -> Budget {
        let own = self.agent.inner.rules.budget;
        self.prompt.and_then(|prompt| prompt.budget).map_or(own, |budget| own.at_most(budget))
    }

    /// The schema of the answer: that of the phase, or else that of the prompt.
    pub(crate) fn output(&self, phase: Option<&Phase>) -> Option<Arc<Value>> {
        let of_phase = phase.and_then(|phase| phase.output.clone());
        of_phase.or_else(|| self.prompt.and_then(|prompt| prompt.output.clone()).map(Arc::new))
    }

    /// The phase of a run: that of its last marker, else that of the conversation that it continues, else the first.
    pub(crate) fn phase(&self, entered: Option<&str>) -> Option<(usize, &Phase)> {
        let conversation = self.prompt.and_then(|prompt| prompt.conversation.as_ref());
        self.agent.phase(entered.or(conversation.and_then(Conversation::phase)))
    }

    /// Whether neither the run nor the phase has a list of tools.
    pub(crate) fn allows_all(&self, phase: Option<&Phase>) -> bool {
        phase.is_none_or(|phase| phase.tools.is_none())
            && self.prompt.is_none_or(|prompt| prompt.tools.is_none())
    }

    /// Whether the run and the phase allow a tool.
    pub(crate) fn allows(&self, tool: &str, phase: Option<&Phase>) -> bool {
        let in_list = |list: &Vec<String>| list.iter().any(|allowed| allowed == tool);
        phase.and_then(|phase| phase.tools.as_ref()).is_none_or(in_list)
            && self.prompt.and_then(|prompt| prompt.tools.as_ref()).is_none_or(in_list)
    }
}
