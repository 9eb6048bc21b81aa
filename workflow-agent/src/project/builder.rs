//! The builder of projects: it takes the agents and the rules, and checks them all at once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::board::Strategy;
use super::{Inner, Project};
use crate::agent::Agent;
use crate::secret::Redactor;
use crate::sub_agent;

/// The most tasks that may run at a time: as many as a plan can have.
const MOST_PARALLEL: usize = 100;

/// Makes a [`Project`].
#[derive(Debug)]
#[must_use = "`build` makes the project"]
pub struct ProjectBuilder {
    name: Arc<str>,
    planner: Option<Agent>,
    worker: Option<Agent>,
    strategy: Strategy,
    max_parallel: usize,
    approve_plan: bool,
    approval_expires: Duration,
}

/// Every mistake of a project that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectBuildError {
    /// The name of the project.
    pub project: Arc<str>,
    /// The mistakes, at least one.
    pub problems: Vec<ProjectProblem>,
}

impl fmt::Display for ProjectBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "project `{}` cannot be built:", self.project)?;
        match &self.problems[..] {
            [problem] => write!(f, " {problem}"),
            problems => problems.iter().try_for_each(|problem| write!(f, "\n- {problem}")),
        }
    }
}

impl std::error::Error for ProjectBuildError {}

/// A mistake of a project's parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectProblem {
    /// The name is empty, or has characters that paths of runs use.
    #[error("the name `{name}` is not valid: use letters, digits, `_`, `-` and `.`")]
    Name {
        /// The name.
        name: String,
    },
    /// There is no planner.
    #[error("it has no planner: call `planner`")]
    NoPlanner,
    /// There is no worker.
    #[error("it has no worker: call `worker`")]
    NoWorker,
    /// No task could ever begin.
    #[error("`max_parallel` is {value}: use 1 to {limit}")]
    MaxParallel {
        /// The value.
        value: usize,
        /// The bound.
        limit: usize,
    },
    /// The plan expires before a person can decide about it.
    #[error("people have no time to decide: give `approval_expires` more than 0")]
    NoTimeForPeople,
    /// The sub-agents of planner or worker nest too deep below the project.
    #[error(
        "the sub-agents of its {role} nest {depth} levels deep, and {limit} at most are allowed below a project"
    )]
    TooDeep {
        /// `planner` or `worker`.
        role: &'static str,
        /// The levels.
        depth: usize,
        /// The bound.
        limit: usize,
    },
}

impl ProjectBuilder {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            planner: None,
            worker: None,
            strategy: Strategy::default(),
            max_parallel: 4,
            approve_plan: false,
            approval_expires: Duration::from_hours(1),
        }
    }

    /// Sets the agent that makes the plan. Required.
    ///
    /// Its answer must be a [`Plan`](crate::Plan), whose JSON schema is the output schema of its run. So its phases, if it
    /// has any, set no other one.
    pub fn planner(self, agent: Agent) -> Self {
        Self { planner: Some(agent), ..self }
    }

    /// Sets the agent that works on the tasks. Required.
    pub fn worker(self, agent: Agent) -> Self {
        Self { worker: Some(agent), ..self }
    }

    /// Sets the order in which tasks run. Default: [`Strategy::Dag`].
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Sets how many tasks run at a time, 1 to 100. Default: 4. [`Strategy::Sequential`] runs one.
    ///
    /// The engine's limit for children, [`max_concurrent_children`](workflow_core::EngineBuilder::max_concurrent_children),
    /// holds too: 8 agents work at a time, sub-agents included.
    pub fn max_parallel(self, tasks: usize) -> Self {
        Self { max_parallel: tasks, ..self }
    }

    /// Asks a person before the first task begins. Default: off.
    pub fn approve_plan(self) -> Self {
        Self { approve_plan: true, ..self }
    }

    /// Sets the time in which a person must decide about a plan; then the project fails. Default: an hour.
    pub fn approval_expires(self, after: Duration) -> Self {
        Self { approval_expires: after, ..self }
    }

    /// Checks all parts.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn build(self) -> Result<Project, ProjectBuildError> {
        let mut problems = Vec::new();
        if !crate::agent::is_name(&self.name) {
            problems.push(ProjectProblem::Name { name: self.name.to_string() });
        }
        if self.max_parallel == 0 || self.max_parallel > MOST_PARALLEL {
            problems.push(ProjectProblem::MaxParallel { value: self.max_parallel, limit: MOST_PARALLEL });
        }
        if self.approval_expires.is_zero() {
            problems.push(ProjectProblem::NoTimeForPeople);
        }
        check_depth("planner", self.planner.as_ref(), &mut problems);
        check_depth("worker", self.worker.as_ref(), &mut problems);
        if self.planner.is_none() {
            problems.push(ProjectProblem::NoPlanner);
        }
        if self.worker.is_none() {
            problems.push(ProjectProblem::NoWorker);
        }
        let (Some(planner), Some(worker), true) = (self.planner, self.worker, problems.is_empty()) else {
            return Err(ProjectBuildError { project: self.name, problems });
        };
        let redactor = Redactor::of_all([&planner, &worker].map(|agent| &agent.inner.caller.redactor));
        let inner = Inner {
            name: self.name,
            planner,
            worker,
            strategy: self.strategy,
            max_parallel: self.max_parallel,
            approve_plan: self.approve_plan,
            approval_expires: self.approval_expires,
            redactor,
        };
        Ok(Project { inner: Arc::new(inner) })
    }
}

/// Planner and workers are on the first level of children, so their sub-agents have one level less.
fn check_depth(role: &'static str, agent: Option<&Agent>, problems: &mut Vec<ProjectProblem>) {
    let limit = sub_agent::MOST_LEVELS - 1;
    let depth = agent.map_or(0, |agent| sub_agent::depth(&agent.inner.sub_agents));
    if depth > limit {
        problems.push(ProjectProblem::TooDeep { role, depth, limit });
    }
}
