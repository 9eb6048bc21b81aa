//! Projects: a planner makes tasks of a goal, and agents work on them. This file has the workflow, and each step's work
//! is in a file of its own below. Nothing here runs a task without a child run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use schemars::JsonSchema;
use workflow_core::prelude::*;
use workflow_core::{Engine, StepFailed};

mod board;
mod builder;
mod outcome;
mod plan;
mod planning;
mod run;
mod task;

use planning::Made;

pub use board::Strategy;
pub use builder::{ProjectBuildError, ProjectBuilder, ProjectProblem};
pub use outcome::{GoalError, ProjectDone, ProjectError, ProjectFailed, ProjectFailure, ProjectOutcome};
pub use outcome::{TaskFailure, TaskResult, TaskState, TaskStatus};
pub use plan::{Plan, PlanError, PlanProblem, PlanTask};
pub use run::{PendingPlan, ProjectRun, ProjectShown};

use crate::agent::{Agent, HostAgents as _};
use crate::model::Usage;
use crate::secret::Redactor;

/// Below the name of a project, that of its planner's workflow.
pub(crate) const PLANNER: &str = "planner";
/// Below the name of a project, that of its workers' workflow.
pub(crate) const WORKER: &str = "worker";

/// A goal that agents reach: a planner makes a plan of tasks, and an agent works on each task, as a durable workflow.
///
/// [`run`](Self::run) runs it in memory. An engine hosts it as a workflow under its name
/// ([`HostAgents::project`](crate::HostAgents::project)); then [`ProjectRun::start`] starts its runs, and a run that was
/// interrupted resumes from its journal without repeating finished tasks. Cloning copies a pointer.
///
/// A plan that cannot be carried out goes back to the planner twice in a row. An agent's task begins anew, twice at most,
/// if its run stopped because a tool failed; other failures are final. Tasks that depend on a failed one are skipped,
/// the others continue, and the project fails in the end with all results.
///
/// ```
/// use serde_json::json;
/// use workflow_agent::prelude::*;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plan = json!({ "tasks": [
///     { "id": "notes", "title": "Write the notes", "prompt": "Write the release notes." },
///     { "id": "post", "title": "Write the post", "prompt": "Write the post.", "depends_on": ["notes"] },
/// ] });
/// let planner = ScriptedModel::new([ScriptedReply::call("1", "final_answer", plan)]);
/// let worker = ScriptedModel::new([ScriptedReply::text("The notes."), ScriptedReply::text("The post.")]);
/// let project = Project::builder("release")
///     .planner(Agent::builder("planner").model(planner).build()?)
///     .worker(Agent::builder("writer").model(worker.clone()).build()?)
///     .strategy(Strategy::Dag)
///     .build()?;
///
/// let done = project.run("Release 2.0").await?;
/// assert_eq!(done.text("post"), Some("The post."));
/// assert!(worker.requests()[1].messages[0].text().contains("The notes."));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Project {
    pub(crate) inner: Arc<Inner>,
}

/// The parts of a project.
pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) planner: Agent,
    pub(crate) worker: Agent,
    strategy: Strategy,
    max_parallel: usize,
    approve_plan: bool,
    approval_expires: Duration,
    /// For the secrets of both agents.
    redactor: Redactor,
}

impl Project {
    /// Begins a project. Its name is that of its workflow in engines, journals and reports.
    pub fn builder(name: impl Into<Arc<str>>) -> ProjectBuilder {
        ProjectBuilder::new(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Runs the project in memory, without a store. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`ProjectError::Failed`] if a task failed or there was no plan, [`ProjectError::NeedsPeople`] as soon as the plan or
    /// an agent needs a person, and failures of the run.
    pub async fn run(&self, goal: impl Into<Arc<str>>) -> Result<ProjectDone, ProjectError> {
        let engine = Engine::builder().project(self.clone()).build()?;
        let mut run = ProjectRun::start(&engine, self, goal).await?;
        let guard = run.handle().clone().cancel_on_drop("nobody waits for the project");
        while let Some(shown) = run.next().await {
            let request = match shown {
                ProjectShown::PlanProposed(_) => "the plan".to_owned(),
                ProjectShown::Approval(approval) => format!("`{}`", approval.tool()),
                ProjectShown::Question(_) => format!("`{}`", crate::agent::ASK_USER),
                // A request may be among the missed items.
                ProjectShown::Missed(_) => match crate::run::first_request(&engine).await? {
                    Some(request) => crate::run::tool_of(&request)
                        .map_or_else(|| "the plan".to_owned(), |tool| format!("`{tool}`")),
                    None => continue,
                },
                _ => continue,
            };
            return Err(ProjectError::NeedsPeople { request });
        }
        let outcome = guard.outcome().await?;
        drop(guard.disarm());
        match outcome {
            ProjectOutcome::Done(done) => Ok(done),
            ProjectOutcome::Failed(failed) => Err(ProjectError::Failed(Box::new(failed))),
        }
    }
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Project").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

/// The start event of a project's run: the goal. [`ProjectRun::start`] makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start, name = "project.goal")]
#[non_exhaustive]
pub struct ProjectGoal {
    /// The text, at most 512 KiB.
    pub text: Arc<str>,
}

impl ProjectGoal {
    /// A goal.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into() }
    }
}

/// The request of a project to carry a plan out: a person approves or rejects it, or changes the tasks.
///
/// A program with a handle answers through [`PendingPlan`]; a front end without it replies with the JSON of a
/// [`PlanDecision`] to the request `project.approve_plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(request, reply = PlanDecision, name = "project.approve_plan")]
pub struct ApprovePlan {
    /// The plan.
    pub plan: Plan,
}

/// The answer to [`ApprovePlan`].
///
/// ```
/// use workflow_agent::PlanDecision;
///
/// let json = r#"{"decision": "reject", "reason": "tests are missing"}"#;
/// let rejected = PlanDecision::Reject { reason: Some("tests are missing".into()) };
/// assert_eq!(serde_json::from_str::<PlanDecision>(json)?, rejected);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanDecision {
    /// The tasks begin.
    Approve,
    /// The planner makes another plan, and learns the reason.
    Reject {
        /// The reason for the planner.
        #[serde(default)]
        reason: Option<String>,
    },
    /// These tasks begin instead. Tasks that cannot be carried out go back to the planner with their problems.
    Edit {
        /// All tasks.
        tasks: Vec<PlanTask>,
    },
}

/// A run of the planner has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.planner_ran")]
pub(crate) struct PlannerRan {
    usage: Usage,
    cost: f64,
}

/// A plan goes back to the planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.plan_returned")]
pub(crate) struct PlanReturned {
    /// The plan as JSON, or the answer that is none.
    answer: Arc<str>,
    why: Returned,
}

/// Why a plan goes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Returned {
    Problems { error: PlanError },
    Rejected { reason: Option<Arc<str>> },
}

/// The plan that is carried out, and the rules by which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.plan_accepted")]
pub(crate) struct PlanAccepted {
    plan: Plan,
    strategy: Strategy,
    max_parallel: usize,
}

/// A task may begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.task_ready")]
pub(crate) struct TaskReady {
    id: Arc<str>,
}

/// An agent is to work on a task. Each task has a branch of its own, in which its failure finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.task_run")]
pub(crate) struct TaskRun {
    id: Arc<str>,
    /// From 1.
    number: u32,
    /// The tokens and the cost of the task's runs before.
    usage: Usage,
    cost: f64,
}

/// A task has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskEnd {
    id: Arc<str>,
    text: Arc<str>,
    failure: Option<TaskFailure>,
    usage: Usage,
    cost: f64,
}

/// A task has ended, for its branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.task_ran")]
pub(crate) struct TaskRan(TaskEnd);

/// A task has ended, for the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "project.task_done")]
pub(crate) struct TaskDone(TaskEnd);

/// The events that lead to a plan.
#[derive(Debug, EventSet)]
pub(crate) enum Begin {
    Goal(Arc<ProjectGoal>),
    Returned(Arc<PlanReturned>),
}

/// The event that follows a plan.
#[derive(Debug, EventSet)]
pub(crate) enum Planned {
    Accepted(PlanAccepted),
    Returned(PlanReturned),
    Failed(ProjectFailed),
}

/// The events after which tasks may begin.
#[derive(Debug, EventSet)]
pub(crate) enum Progress {
    Accepted(Arc<PlanAccepted>),
    Done(Arc<TaskDone>),
}

/// The event that follows a run of a task.
#[derive(Debug, EventSet)]
pub(crate) enum Worked {
    Again(TaskRun),
    Ran(TaskRan),
}

#[workflow(output = ProjectOutcome)]
impl Project {
    /// Runs the planner, and checks its plan.
    #[step(loops)]
    async fn plan(
        &self,
        _: Begin,
        goal: Passive<&ProjectGoal>,
        returned: Passive<List<PlanReturned>>,
        ran: Passive<List<PlannerRan>>,
        children: &Children,
        info: &RunInfo,
    ) -> Result<(PlannerRan, Option<Planned>, Option<Expiring<ApprovePlan>>), StepError> {
        let (returned, ran): (Vec<_>, Vec<_>) = (returned.iter().collect(), ran.iter().collect());
        let project = &*self.inner;
        let (spent, plan) = planning::run(project, *goal, &returned, &ran, children, info).await?;
        Ok(match plan {
            Made::Plan(plan) if project.approve_plan => {
                (spent, None, Some(ApprovePlan { plan }.expires_in(project.approval_expires)))
            }
            Made::Plan(plan) => (spent, Some(Planned::Accepted(planning::accepted(project, plan))), None),
            Made::Other(planned) => (spent, Some(planned), None),
        })
    }

    /// Takes a person's decision about the plan.
    #[step]
    async fn approved(
        &self,
        decision: &Reply<ApprovePlan>,
        returned: Passive<List<PlanReturned>>,
        ran: Passive<List<PlannerRan>>,
    ) -> Planned {
        let (returned, ran): (Vec<_>, Vec<_>) = (returned.iter().collect(), ran.iter().collect());
        planning::decided(&self.inner, decision, decision.request(), &returned, &ran)
    }

    /// Ends a project about whose plan nobody decided in time.
    #[step]
    async fn approval_expired(
        &self,
        asked: &Expired<ApprovePlan>,
        ran: Passive<List<PlannerRan>>,
    ) -> ProjectFailed {
        planning::failed(ProjectFailure::Unapproved, ran.iter())
    }

    /// Finds the tasks that may begin, and the end of the project. One at a time, so that the states enter the log in
    /// the order of the ends, and the last one with the end of the project.
    #[step(concurrency = 1)]
    async fn schedule(
        &self,
        _: Progress,
        accepted: Passive<&PlanAccepted>,
        done: Passive<List<TaskDone>>,
        ran: Passive<List<PlannerRan>>,
    ) -> Result<(Vec<TaskStatus>, Vec<TaskReady>, Option<ProjectOutcome>), StepError> {
        let Some(accepted) = *accepted else { return Err(StepError::permanent("the project has no plan")) };
        let (done, ran): (Vec<_>, Vec<_>) = (done.iter().collect(), ran.iter().collect());
        let task::Changes { statuses, ready, outcome } = task::changes(accepted, &done, &ran);
        Ok((statuses, ready, outcome))
    }

    /// Opens the branch of a task.
    #[step]
    async fn begin(&self, ready: &TaskReady) -> FanOut<TaskRun> {
        let first = TaskRun { id: Arc::clone(&ready.id), number: 1, usage: Usage::default(), cost: 0.0 };
        FanOut::from_iter([first])
    }

    /// Runs the agent of a task.
    #[step(loops)]
    async fn work(
        &self,
        run: &TaskRun,
        goal: Passive<&ProjectGoal>,
        accepted: Passive<&PlanAccepted>,
        done: Passive<List<TaskDone>>,
        children: &Children,
        info: &RunInfo,
    ) -> Result<Worked, StepError> {
        let done: Vec<_> = done.iter().collect();
        let surroundings = task::Surroundings { goal: *goal, accepted: *accepted, done: &done };
        task::work(&self.inner, run, &surroundings, children, info).await
    }

    /// Gives a task whose step failed for good its end.
    #[step(catches = [work])]
    async fn fail_task(&self, failed: &StepFailed, run: Passive<&TaskRun>) -> Option<TaskRan> {
        run.map(|run| TaskRan(task::failed(&self.inner, run, failed)))
    }

    /// Takes the end of a task out of its branch.
    #[step]
    async fn end(&self, branches: &Gather<TaskRan>) -> Option<TaskDone> {
        branches.ok().next().map(|TaskRan(end)| TaskDone(end.clone()))
    }

    /// Ends a project in which a step failed for good.
    #[step(catches = [plan, approved, approval_expired, schedule, begin, end])]
    async fn give_up(
        &self,
        failed: &StepFailed,
        accepted: Passive<&PlanAccepted>,
        done: Passive<List<TaskDone>>,
        ran: Passive<List<PlannerRan>>,
    ) -> ProjectFailed {
        let (done, ran): (Vec<_>, Vec<_>) = (done.iter().collect(), ran.iter().collect());
        task::gave_up(&self.inner, failed, *accepted, &done, &ran)
    }
}
