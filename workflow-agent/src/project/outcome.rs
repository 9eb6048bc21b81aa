//! How projects and their tasks end, and the states on the way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::errors::chain;
use workflow_core::{BuildError, Event, EventSet, RunError, SendError, StartError};

use super::plan::PlanError;
use crate::agent::StopReason;
use crate::entry::FailureClass;
use crate::model::Usage;

/// The state of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// It has not begun.
    #[default]
    Pending,
    /// Its agent works.
    InProgress,
    /// Its agent answered.
    Completed,
    /// Its agent stopped without an answer.
    Failed,
    /// It never begins, because a task that it depends on failed or was skipped.
    Skipped,
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}

impl TaskState {
    /// Whether no other state follows.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }

    /// The place among the states of a task: a later state has a greater one.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::InProgress => 1,
            Self::Completed | Self::Failed | Self::Skipped => 2,
        }
    }
}

/// The state of a task, for viewers. Each change enters the log, and is displayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(control, display, name = "project.task_status")]
#[non_exhaustive]
pub struct TaskStatus {
    /// The id of the task.
    pub id: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// Its state.
    pub status: TaskState,
    /// The class of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
}

/// The failure of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskFailure {
    /// Its class.
    pub class: FailureClass,
    /// The failure in words.
    pub error: Arc<str>,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskResult {
    /// The id of the task.
    pub id: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// Its state when the project ended.
    pub status: TaskState,
    /// The answer, or the last text of a task that failed. Beyond 32 KiB head and tail remain; the journal of the task's
    /// run has the whole.
    pub text: Arc<str>,
    /// The failure, if the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

/// The end of a project: all tasks are completed, or not.
#[derive(Debug, Clone, PartialEq, EventSet)]
#[non_exhaustive]
pub enum ProjectOutcome {
    /// Every task is completed.
    Done(ProjectDone),
    /// A task failed, or there was no plan.
    Failed(ProjectFailed),
}

impl ProjectOutcome {
    /// The results of all tasks, in the order of the plan; empty if there was no plan.
    pub fn results(&self) -> &[TaskResult] {
        match self {
            Self::Done(done) => &done.results,
            Self::Failed(failed) => &failed.results,
        }
    }

    /// The tokens that planner and workers used.
    pub fn usage(&self) -> Usage {
        match self {
            Self::Done(done) => done.usage,
            Self::Failed(failed) => failed.usage,
        }
    }

    /// The cost, in the currency of the models' prices.
    pub fn cost(&self) -> f64 {
        match self {
            Self::Done(done) => done.cost,
            Self::Failed(failed) => failed.cost,
        }
    }
}

/// A project whose tasks are all completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, display, name = "project.done")]
#[non_exhaustive]
pub struct ProjectDone {
    /// The results, in the order of the plan.
    pub results: Vec<TaskResult>,
    /// The tokens that planner and workers used, failed runs included.
    pub usage: Usage,
    /// The cost, in the currency of the models' prices.
    #[serde(default)]
    pub cost: f64,
}

impl ProjectDone {
    /// The text of a task's answer.
    pub fn text(&self, task: &str) -> Option<&str> {
        self.results.iter().find(|result| &*result.id == task).map(|result| &*result.text)
    }
}

/// A project that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, display, name = "project.failed")]
#[non_exhaustive]
pub struct ProjectFailed {
    /// The reason.
    pub reason: ProjectFailure,
    /// The results of all tasks so far, in the order of the plan; empty if there was no plan.
    pub results: Vec<TaskResult>,
    /// The tokens that planner and workers used, failed runs included.
    pub usage: Usage,
    /// The cost, in the currency of the models' prices.
    #[serde(default)]
    pub cost: f64,
}

/// Why a project failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProjectFailure {
    /// Tasks failed.
    #[error("{} of the tasks failed: {}", tasks.len(), tasks.join(", "))]
    Tasks {
        /// Their ids, in the order of the plan.
        tasks: Vec<String>,
    },
    /// The planner made no plan that can be carried out, also after it saw the problems.
    #[error("the planner made no usable plan in {plans} attempts; in the last one {error}")]
    Plan {
        /// How many plans it made.
        plans: usize,
        /// The problems of the last one.
        error: PlanError,
    },
    /// The planner stopped without a plan.
    #[error("the planner stopped: {reason}")]
    Planner {
        /// The reason.
        reason: StopReason,
    },
    /// People rejected as many plans as a project makes.
    #[error("{plans} plans were rejected{}", why(reason.as_deref()))]
    Rejected {
        /// How many.
        plans: usize,
        /// The last reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// Nobody decided about the plan in time.
    #[error("nobody approved the plan in time: raise `ProjectBuilder::approval_expires`")]
    Unapproved,
    /// A step failed for good.
    #[error("a failure ended the project ({}): {error}", class.as_str())]
    Failed {
        /// The class of the failure.
        class: FailureClass,
        /// The failure.
        error: Arc<str>,
    },
}

fn why(reason: Option<&str>) -> String {
    reason.map(|reason| format!("; the last reason: {reason}")).unwrap_or_default()
}

/// Why a goal cannot start a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GoalError {
    /// The goal has no text.
    #[error("the goal is empty")]
    Empty,
    /// The goal exceeds its bound.
    #[error("the goal has {bytes} bytes, and {limit} at most are allowed: let a tool read long texts")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
}

/// Why a project was not started, or was not completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The project failed.
    #[error("the project failed: {}", .0.reason)]
    Failed(Box<ProjectFailed>),
    /// The goal exceeds a bound.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The project needs a person, and nobody can answer a project that runs in memory.
    #[error("{request} needs a person: host the project in an engine, and start it with `ProjectRun::start`")]
    NeedsPeople {
        /// The tool that needs an approval, `ask_user`, or `the plan`.
        request: String,
    },
    /// The project could not be started.
    #[error("the project could not be started: {}", chain(.0))]
    Start(#[from] StartError),
    /// The project ended in another way, such as cancelled.
    #[error("the project did not end with an outcome: {}", chain(.0))]
    Run(#[from] RunError),
    /// The engine could not be built.
    #[error("the engine could not be built: {}", chain(.0))]
    Build(#[from] BuildError),
    /// The open requests of the project could not be read.
    #[error("the open requests of the project could not be read: {}", chain(.0))]
    Requests(#[from] SendError),
}
