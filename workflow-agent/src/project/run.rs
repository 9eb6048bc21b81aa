//! The handle of a project's run: a stream of everything that it shows, and the answers of people.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use workflow_core::report::{ChildRun, OpenRequest};
use workflow_core::{DisplayItem, Engine, ExecutionId, RequestEnd, ResumeError};
use workflow_core::{RunError, RunHandle, RunId, RunOptions, RunStatus, SendError, Seq};

use super::outcome::{ProjectDone, ProjectError, ProjectFailed, ProjectOutcome, TaskState, TaskStatus};
use super::plan::{Plan, PlanTask};
use super::{ApprovePlan, PLANNER, PlanDecision, Project, ProjectGoal, WORKER, planning};
use crate::run::{AnswerError, Fed, Feed, PendingApproval, PendingQuestion, Shown};

/// A run of a project: a stream of [`ProjectShown`] items, and the handle of the run.
///
/// Dropping it does not affect the run. Items that the run showed before the stream began come first, as far as the
/// engine's display still has them; the states of all tasks come always.
pub struct ProjectRun {
    engine: Engine,
    project: Project,
    run: RunHandle<Project>,
    feed: Feed<ProjectShown>,
    /// The state of each task that was shown last.
    states: BTreeMap<Arc<str>, TaskState>,
}

/// An item that a project's run shows.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProjectShown {
    /// A plan waits for a person.
    PlanProposed(PendingPlan),
    /// The state of a task changed.
    TaskStatus(TaskStatus),
    /// An item of the planner, of a task's agent, or of a sub-agent at any depth.
    Agent {
        /// The id of the task; `None` for the planner and its sub-agents.
        task: Option<Arc<str>>,
        /// The run of the agent.
        run: RunId,
        /// The item. [`Shown::Done`] ends that run, not the project.
        item: Box<Shown>,
    },
    /// A tool call of an agent, at any depth, waits for a person.
    Approval(PendingApproval),
    /// An agent, at any depth, asks a person.
    Question(PendingQuestion),
    /// A request of the run `run` is no longer open: a plan, an approval or a question.
    Closed {
        /// The run that asked.
        run: RunId,
        /// The number of the request in that run.
        seq: Seq,
        /// How it was closed.
        how: RequestEnd,
    },
    /// An attempt of a step of the project failed: the items of agents that worked in it count no more.
    ///
    /// Failed attempts of an agent's own steps come as [`Shown::Retracted`], inside of [`Agent`](Self::Agent).
    Retracted {
        /// The execution.
        execution: ExecutionId,
        /// Its attempt.
        attempt: u32,
    },
    /// The viewer was too slow for this many items; `None` after a restart. [`ProjectRun::tasks`] has the states.
    Missed(Option<u64>),
    /// The project ended with an outcome. The stream ends.
    Done(ProjectOutcome),
    /// The project ended in another way, such as cancelled. The stream ends.
    Ended(RunStatus),
}

/// A plan that waits for a person's decision.
#[derive(Clone)]
pub struct PendingPlan {
    engine: Engine,
    project: Project,
    run: RunId,
    seq: Seq,
    request: ApprovePlan,
}

impl ProjectRun {
    /// Starts a run in an engine that hosts the project. Secrets of its agents are removed from the goal before anything
    /// is stored.
    ///
    /// # Errors
    /// If the goal exceeds a bound, or the engine refuses the run.
    pub async fn start(
        engine: &Engine,
        project: &Project,
        goal: impl Into<Arc<str>>,
    ) -> Result<Self, ProjectError> {
        Self::start_with(engine, project, goal, RunOptions::new()).await
    }

    /// Starts a run with options, such as an id or a thread.
    ///
    /// # Errors
    /// If the goal exceeds a bound, or the engine refuses the run.
    pub async fn start_with(
        engine: &Engine,
        project: &Project,
        goal: impl Into<Arc<str>>,
        options: RunOptions,
    ) -> Result<Self, ProjectError> {
        let goal = ProjectGoal::new(planning::checked_goal(&project.inner, &goal.into())?);
        let options = options.workflow(Arc::clone(&project.inner.name));
        let run = engine.start_with::<Project>(goal, options).await?;
        Ok(Self::new(engine, project, run))
    }

    /// Attaches to a run of the project: to watch it, to answer its requests, or for its outcome. A run that an ended
    /// process left resumes. The stream begins with the present states of the tasks.
    ///
    /// # Errors
    /// If there is no such run, or the engine cannot drive it.
    pub async fn attach(
        engine: &Engine,
        project: &Project,
        run: impl Into<RunId>,
    ) -> Result<Self, ResumeError> {
        let handle = engine.attach::<Project>(run).await?;
        let mut run = Self::new(engine, project, handle);
        // A display does not survive its process, and the log does.
        for status in run.tasks().await.unwrap_or_default() {
            run.states.insert(Arc::clone(&status.id), status.status);
            run.feed.add(ProjectShown::TaskStatus(status));
        }
        Ok(run)
    }

    fn new(engine: &Engine, project: &Project, run: RunHandle<Project>) -> Self {
        let feed = Feed::new(run.display());
        Self { engine: engine.clone(), project: project.clone(), run, feed, states: BTreeMap::new() }
    }

    /// The id.
    pub fn id(&self) -> &RunId {
        self.run.id()
    }

    /// The core's handle, for reports, explanations and everything else.
    pub fn handle(&self) -> &RunHandle<Project> {
        &self.run
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the run was cancelled, timed out, or lost its store.
    pub async fn outcome(&self) -> Result<ProjectOutcome, RunError> {
        self.run.outcome().await
    }

    /// Ends the run, and those of its tasks. Secrets of the project's agents are removed from the reason.
    ///
    /// # Errors
    /// If the run has ended, or its store failed.
    pub async fn cancel(&self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        let reason = self.project.inner.redactor.shared(&reason.into());
        self.run.cancel(reason).await
    }

    /// The present states of the tasks, in the order of the plan; empty before there is one.
    ///
    /// # Errors
    /// If the run is unknown meanwhile, or its store failed.
    pub async fn tasks(&self) -> Result<Vec<TaskStatus>, RunError> {
        let report = self.run.report_so_far().await?;
        let mut tasks: Vec<TaskStatus> = Vec::new();
        for status in report.log.iter().filter_map(|logged| logged.value.downcast::<TaskStatus>()) {
            match tasks.iter_mut().find(|task| task.id == status.id) {
                Some(task) => *task = TaskStatus::clone(&status),
                None => tasks.push(TaskStatus::clone(&status)),
            }
        }
        Ok(tasks)
    }

    /// The plan that waits for a decision, if one does.
    ///
    /// # Errors
    /// If the run has ended, or its store failed.
    pub async fn plan(&self) -> Result<Option<PendingPlan>, SendError> {
        Ok(self.run.requests().await?.iter().find_map(|request| self.pending(request)))
    }

    fn pending(&self, request: &OpenRequest) -> Option<PendingPlan> {
        let asked = request.downcast_ref::<ApprovePlan>()?.clone();
        let (engine, project, run) = (self.engine.clone(), self.project.clone(), self.id().clone());
        Some(PendingPlan { engine, project, run, seq: request.seq(), request: asked })
    }

    /// The item of the stream for an item of the display, if people need it.
    fn shown(&mut self, item: &DisplayItem) -> Option<ProjectShown> {
        if let DisplayItem::Child { path, item } = item {
            return self.of_agent(path, item);
        }
        Some(match item {
            DisplayItem::Asked { request } => ProjectShown::PlanProposed(self.pending(request)?),
            DisplayItem::Closed { seq, how } => {
                ProjectShown::Closed { run: self.id().clone(), seq: *seq, how: *how }
            }
            DisplayItem::Retracted { execution, attempt, .. } => {
                ProjectShown::Retracted { execution: *execution, attempt: *attempt }
            }
            DisplayItem::Missed { count } => ProjectShown::Missed(*count),
            DisplayItem::Ended { status } => ProjectShown::Ended(*status),
            item => return self.event(item),
        })
    }

    fn event(&mut self, item: &DisplayItem) -> Option<ProjectShown> {
        if let Some(status) = item.event::<TaskStatus>() {
            let last = self.states.insert(Arc::clone(&status.id), status.status);
            if let Some(last) = last.filter(|last| last.rank() >= status.status.rank()) {
                // The log was ahead of the display.
                self.states.insert(Arc::clone(&status.id), last);
                return None;
            }
            return Some(ProjectShown::TaskStatus(status.clone()));
        }
        let done = item.event::<ProjectDone>().map(|done| ProjectOutcome::Done(done.clone()));
        let failed = || item.event::<ProjectFailed>().map(|failed| ProjectOutcome::Failed(failed.clone()));
        done.or_else(failed).map(ProjectShown::Done)
    }

    fn of_agent(&self, path: &[ChildRun], item: &DisplayItem) -> Option<ProjectShown> {
        let (first, last) = (path.first()?, path.last()?);
        let inner = &self.project.inner;
        let found =
            [(PLANNER, &inner.planner), (WORKER, &inner.worker)].into_iter().find_map(|(role, agent)| {
                let hosted = crate::agent::below(self.run.workflow(), role);
                Some((role, crate::sub_agent::find(agent, &hosted, &last.workflow)?))
            });
        let (role, agent) = found?;
        Some(match crate::run::shown(&self.engine, &last.run, agent, item)? {
            Shown::Approval(approval) => ProjectShown::Approval(approval),
            Shown::Question(question) => ProjectShown::Question(question),
            Shown::Closed { run, seq, how } => ProjectShown::Closed { run, seq, how },
            Shown::Ended(_) => return None,
            item => {
                let task = if role == WORKER { task_of(&first.run) } else { None };
                ProjectShown::Agent { task, run: last.run.clone(), item: Box::new(item) }
            }
        })
    }
}

/// The id of the task for which a worker runs: the last part of its run's id.
fn task_of(run: &RunId) -> Option<Arc<str>> {
    run.as_str().rsplit_once('.').map(|(_, task)| task.into())
}

impl Stream for ProjectRun {
    type Item = ProjectShown;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProjectShown>> {
        loop {
            match ready!(self.feed.poll(cx)) {
                None => return Poll::Ready(None),
                Some(Fed::Ready(shown)) => return Poll::Ready(Some(shown)),
                Some(Fed::Displayed(DisplayItem::Ended { status })) => {
                    let run = self.run.clone();
                    let last = async move {
                        run.outcome().await.map_or(ProjectShown::Ended(status), ProjectShown::Done)
                    };
                    self.feed.end(last);
                }
                Some(Fed::Displayed(item)) => match self.shown(&item) {
                    // The end has the outcome.
                    Some(ProjectShown::Done(_)) | None => {}
                    Some(shown) => self.feed.add(shown),
                },
            }
        }
    }
}

impl fmt::Debug for ProjectRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectRun").field("id", self.id()).finish_non_exhaustive()
    }
}

impl PendingPlan {
    /// The run of the project.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number of the request in its run.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The tasks of the plan.
    pub fn tasks(&self) -> &[PlanTask] {
        &self.request.plan.tasks
    }

    /// Lets the tasks begin.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn approve(&self) -> Result<(), AnswerError> {
        self.decide(PlanDecision::Approve).await
    }

    /// Asks the planner for another plan, which a person decides about again. The planner learns the reason, unless it is
    /// empty. The tenth rejection ends the project.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn reject(&self, reason: impl Into<String>) -> Result<(), AnswerError> {
        let reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        self.decide(PlanDecision::Reject { reason }).await
    }

    /// Lets these tasks begin instead.
    ///
    /// # Errors
    /// [`AnswerError::Plan`] if they cannot be carried out, and the request stays open; or as [`approve`](Self::approve).
    pub async fn edit(&self, tasks: impl IntoIterator<Item = PlanTask>) -> Result<(), AnswerError> {
        let plan = planning::edited(&self.project.inner, tasks.into_iter().collect())?;
        self.decide(PlanDecision::Edit { tasks: plan.tasks }).await
    }

    /// Replies with a decision, without the secrets of the project's agents. Tasks go as they are otherwise: those that
    /// cannot be carried out go back to the planner.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn decide(&self, mut decision: PlanDecision) -> Result<(), AnswerError> {
        let redactor = &self.project.inner.redactor;
        match &mut decision {
            PlanDecision::Edit { tasks } => {
                *tasks = Plan::new(std::mem::take(tasks)).redacted(redactor).tasks;
            }
            PlanDecision::Reject { reason: Some(reason) } => *reason = redactor.text(reason).into_owned(),
            PlanDecision::Approve | PlanDecision::Reject { reason: None } => {}
        }
        let decision = serde_json::to_value(&decision).unwrap_or_default();
        crate::run::reply(&self.engine, &self.run, self.seq, decision).await
    }
}

impl fmt::Debug for PendingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingPlan")
            .field("run", &self.run)
            .field("seq", &self.seq)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
