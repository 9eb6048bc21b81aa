//! Agents and projects in an engine.

use std::sync::Arc;

use workflow_core::EngineBuilder;

use super::Agent;
use crate::project::{self, Project};

/// The runs of an agent at a time; those that wait for people do not count.
const RUNS: usize = 5;

/// Lets an engine host agents and projects.
pub trait HostAgents {
    /// Hosts an agent under its name, and its sub-agents under `AGENT.SUB_AGENT`. Five runs of the agent work at a time;
    /// [`EngineBuilder::max_concurrent_runs_named`] after this call changes that. A run that waits for people does not
    /// count, and sub-agents have the engine's limits for children.
    #[must_use]
    fn agent(self, agent: Agent) -> Self;

    /// Hosts a project under its name, its agents as `PROJECT.planner` and `PROJECT.worker`, and their sub-agents below
    /// them. All of these have the engine's limits for children.
    #[must_use]
    fn project(self, project: Project) -> Self;
}

impl HostAgents for EngineBuilder {
    fn agent(self, agent: Agent) -> Self {
        let name = Arc::clone(&agent.inner.name);
        hosted(self, &name, agent).max_concurrent_runs_named(name, RUNS)
    }

    fn project(self, project: Project) -> Self {
        let name = Arc::clone(&project.inner.name);
        let engine = hosted(self, &below(&name, project::PLANNER), project.inner.planner.clone());
        let engine = hosted(engine, &below(&name, project::WORKER), project.inner.worker.clone());
        engine.workflow_named(name, project)
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
