//! Agents in an engine.

use std::sync::Arc;

use workflow_core::EngineBuilder;

use super::Agent;

/// The runs of an agent at a time; those that wait for people do not count.
const RUNS: usize = 5;

/// Lets an engine host agents.
pub trait HostAgents {
    /// Hosts an agent under its name, and its sub-agents under `AGENT.SUB_AGENT`. Five runs of the agent work at a time;
    /// [`EngineBuilder::max_concurrent_runs_named`] after this call changes that. A run that waits for people does not
    /// count, and sub-agents have the engine's limits for children.
    #[must_use]
    fn agent(self, agent: Agent) -> Self;
}

impl HostAgents for EngineBuilder {
    fn agent(self, agent: Agent) -> Self {
        let name = Arc::clone(&agent.inner.name);
        hosted(self, &name, agent).max_concurrent_runs_named(name, RUNS)
    }
}

/// Hosts an agent under a name, and its sub-agents below it.
pub(crate) fn hosted(engine: EngineBuilder, name: &str, agent: Agent) -> EngineBuilder {
    let mut engine = engine;
    for sub_agent in &agent.inner.sub_agents {
        engine = hosted(engine, &below(name, sub_agent.agent.name()), sub_agent.agent.clone());
    }
    if agent.inner.entities {
        engine = crate::entities::hosted(engine, name, &agent);
    }
    engine.workflow_named(name, agent)
}

/// The name of a sub-agent's workflow.
pub(crate) fn below(name: &str, sub_agent: &str) -> String {
    format!("{name}.{sub_agent}")
}
