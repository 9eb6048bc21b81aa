//! Plans: the tasks of a project, and every problem that keeps a plan from being carried out. `board` carries it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::board::Strategy;
use crate::secret::Redactor;
use crate::tool;

/// The most tasks of a plan.
const MOST_TASKS: usize = 100;
/// The longest title in bytes.
const TITLE: usize = 300;
/// The longest prompt of a task in bytes.
const PROMPT: usize = 64 * 1024;
/// The most problems that an error lists.
const MOST_PROBLEMS: usize = 20;

/// The tasks of a project, in the order in which its planner named them.
///
/// ```
/// use workflow_agent::{Plan, PlanTask};
///
/// let write = PlanTask::new("write", "Write the notes", "Write the release notes.");
/// let check = PlanTask::new("check", "Check the notes", "Check the notes.").after(["write"]);
/// let plan = Plan::new([write, check]);
/// assert_eq!(plan.tasks[1].depends_on, ["write"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Plan {
    /// The tasks, 1 to 100.
    pub tasks: Vec<PlanTask>,
}

/// A task of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanTask {
    /// The id, unique in the plan: 1 to 64 letters, digits, `_` and `-`.
    pub id: String,
    /// A short title for people, at most 300 bytes.
    pub title: String,
    /// The whole task, for an agent that knows only this text, the goal, and the results of `depends_on`. At most 64 KiB.
    pub prompt: String,
    /// The ids of the tasks that must be completed before.
    #[serde(default)]
    pub depends_on: Vec<String>,
}

impl Plan {
    /// A plan of these tasks.
    pub fn new(tasks: impl IntoIterator<Item = PlanTask>) -> Self {
        Self { tasks: tasks.into_iter().collect() }
    }

    /// Checks whether a project with this strategy can carry the plan out.
    ///
    /// # Errors
    /// Every problem at once, up to 20.
    ///
    /// ```
    /// use workflow_agent::{Plan, PlanTask, Strategy};
    ///
    /// let plan = Plan::new([PlanTask::new("a", "A", "Do A.").after(["b"])]);
    /// let error = plan.check(Strategy::Dag).unwrap_err();
    /// assert_eq!(error.to_string(), "the plan cannot be carried out: task `a` depends on `b`, which is no task");
    /// ```
    pub fn check(&self, strategy: Strategy) -> Result<(), PlanError> {
        let mut problems = Vec::new();
        match self.tasks.len() {
            0 => problems.push(PlanProblem::NoTasks),
            tasks if tasks > MOST_TASKS => {
                problems.push(PlanProblem::TooManyTasks { tasks, limit: MOST_TASKS });
            }
            _ => self.check_tasks(strategy, &mut problems),
        }
        problems.truncate(MOST_PROBLEMS);
        if problems.is_empty() { Ok(()) } else { Err(PlanError { problems }) }
    }

    fn check_tasks(&self, strategy: Strategy, problems: &mut Vec<PlanProblem>) {
        let known: BTreeSet<&str> = self.tasks.iter().map(|task| &*task.id).collect();
        let mut seen = BTreeSet::new();
        for task in &self.tasks {
            let id = named(&task.id);
            if !tool::is_fit(&task.id) {
                problems.push(PlanProblem::Id { id: id.clone() });
            } else if !seen.insert(&*task.id) {
                problems.push(PlanProblem::RepeatedId { id: id.clone() });
            }
            task.check_texts(&id, problems);
            if strategy == Strategy::Parallel && !task.depends_on.is_empty() {
                problems.push(PlanProblem::DependsInParallel { id: id.clone() });
            }
            let unknown: BTreeSet<&String> =
                task.depends_on.iter().filter(|other| !known.contains(&***other)).collect();
            for other in unknown {
                problems.push(PlanProblem::UnknownDependency { id: id.clone(), depends_on: named(other) });
            }
        }
        if let Some(ids) = self.cycle() {
            problems.push(PlanProblem::Cycle { ids });
        }
    }

    /// The ids of a cycle, each dependent before the task that it depends on. The first one is not repeated at the end.
    fn cycle(&self) -> Option<Vec<String>> {
        let tasks: BTreeMap<&str, &PlanTask> = self.tasks.iter().map(|task| (&*task.id, task)).collect();
        let mut done = BTreeSet::new();
        self.tasks.iter().find_map(|task| walk(task, &tasks, &mut done, &mut Vec::new()))
    }

    /// The place of the task with this id.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.tasks.iter().position(|task| task.id == id)
    }

    /// The plan without secrets.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let redact = |text: &mut String| *text = redactor.text(text).into_owned();
        for task in &mut self.tasks {
            [&mut task.id, &mut task.title, &mut task.prompt].into_iter().for_each(redact);
            task.depends_on.iter_mut().for_each(redact);
        }
        self
    }
}

/// Walks the dependencies of a task along `path`. Plans have at most 100 tasks, so the depth is bounded.
fn walk<'a>(
    task: &'a PlanTask,
    tasks: &BTreeMap<&str, &'a PlanTask>,
    done: &mut BTreeSet<&'a str>,
    path: &mut Vec<&'a str>,
) -> Option<Vec<String>> {
    if let Some(from) = path.iter().position(|id| *id == task.id) {
        return Some(path[from..].iter().map(|id| named(id)).collect());
    }
    if done.contains(&*task.id) {
        return None;
    }
    path.push(&task.id);
    let before = task.depends_on.iter().filter_map(|id| tasks.get(&**id));
    let cycle = before.into_iter().find_map(|before| walk(before, tasks, done, path));
    path.pop();
    done.insert(&task.id);
    cycle
}

/// A name that a model wrote, within a bound.
fn named(id: &str) -> String {
    tool::head(id, 100).to_owned()
}

impl PlanTask {
    /// A task that depends on no other one.
    pub fn new(id: impl Into<String>, title: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), prompt: prompt.into(), depends_on: Vec::new() }
    }

    /// Sets the tasks that must be completed before.
    #[must_use]
    pub fn after<S: Into<String>>(self, tasks: impl IntoIterator<Item = S>) -> Self {
        Self { depends_on: tasks.into_iter().map(Into::into).collect(), ..self }
    }

    fn check_texts(&self, id: &str, problems: &mut Vec<PlanProblem>) {
        if self.title.len() > TITLE {
            problems.push(PlanProblem::LongTitle {
                id: id.to_owned(),
                bytes: self.title.len(),
                limit: TITLE,
            });
        }
        if self.prompt.trim().is_empty() {
            problems.push(PlanProblem::EmptyPrompt { id: id.to_owned() });
        }
        if self.prompt.len() > PROMPT {
            problems.push(PlanProblem::LongPrompt {
                id: id.to_owned(),
                bytes: self.prompt.len(),
                limit: PROMPT,
            });
        }
    }
}

/// Every problem of a plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanError {
    /// The problems: at least one, and 20 at most.
    pub problems: Vec<PlanProblem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the plan cannot be carried out:")?;
        match &self.problems[..] {
            [problem] => write!(f, " {problem}"),
            problems => problems.iter().try_for_each(|problem| write!(f, "\n- {problem}")),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<PlanProblem> for PlanError {
    fn from(problem: PlanProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

/// A problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanProblem {
    /// The planner's answer is no plan.
    #[error("the answer is no plan{}: {problem}", at(path))]
    Unreadable {
        /// The path of the misfit; empty for the answer as a whole.
        path: String,
        /// The misfit.
        problem: String,
    },
    /// There are no tasks.
    #[error("it has no tasks")]
    NoTasks,
    /// There are too many tasks.
    #[error("it has {tasks} tasks, and {limit} at most are allowed")]
    TooManyTasks {
        /// Their number.
        tasks: usize,
        /// The bound.
        limit: usize,
    },
    /// An id has characters that names of runs cannot have.
    #[error("the id `{id}` is not valid: use 1 to 64 letters, digits, `_` and `-`")]
    Id {
        /// The id.
        id: String,
    },
    /// Two tasks have one id.
    #[error("two tasks have the id `{id}`")]
    RepeatedId {
        /// The id.
        id: String,
    },
    /// A task depends on a task that does not exist.
    #[error("task `{id}` depends on `{depends_on}`, which is no task")]
    UnknownDependency {
        /// The task.
        id: String,
        /// The id that no task has.
        depends_on: String,
    },
    /// A task depends on another one, and all tasks run side by side.
    #[error("task `{id}` has `depends_on`, and the tasks of this project run side by side")]
    DependsInParallel {
        /// The task.
        id: String,
    },
    /// Tasks wait for each other.
    #[error("tasks wait for each other in a circle: {}", circle(ids))]
    Cycle {
        /// The ids, each before the one that it depends on.
        ids: Vec<String>,
    },
    /// A title exceeds its bound.
    #[error("the title of task `{id}` has {bytes} bytes, and {limit} at most are allowed")]
    LongTitle {
        /// The task.
        id: String,
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// A task has no prompt.
    #[error("the prompt of task `{id}` is empty")]
    EmptyPrompt {
        /// The task.
        id: String,
    },
    /// A prompt exceeds its bound.
    #[error("the prompt of task `{id}` has {bytes} bytes, and {limit} at most are allowed")]
    LongPrompt {
        /// The task.
        id: String,
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
}

fn at(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!(" at `{path}`") }
}

/// The way around: each task, the one that it depends on, and at last the first one again.
fn circle(ids: &[String]) -> String {
    let quoted: Vec<String> = ids.iter().chain(ids.first()).map(|id| format!("`{id}`")).collect();
    quoted.join(" → ")
}
