//! Tasks: their order by the board, the run of an agent for each, and the results. Nothing here decides about plans.

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::{RunOptions, StepFailed};

use super::board::Board;
use super::outcome::{
    ProjectDone, ProjectFailed, ProjectFailure, ProjectOutcome, TaskFailure, TaskResult, TaskState,
};
use super::plan::{Plan, PlanTask};
use super::planning::GOAL;
use super::{
    Inner, PlanAccepted, PlannerRan, ProjectGoal, TaskDone, TaskEnd, TaskRan, TaskReady, TaskRun, TaskStatus,
    Worked,
};
use crate::agent::{Agent, Outcome, Prompt, StopReason, TEXT};
use crate::entry::FailureClass;
use crate::model::Usage;
use crate::{failures, mark, tool};

/// How often a task whose tools failed begins anew.
const RETRIES: u32 = 2;

/// The changes after an end of a task, or after the acceptance of the plan.
pub(super) struct Changes {
    pub(super) statuses: Vec<TaskStatus>,
    pub(super) ready: Vec<TaskReady>,
    pub(super) outcome: Option<ProjectOutcome>,
}

/// The changes that follow from the last of the ends in `done`; without one, those that begin the project.
pub(super) fn changes(accepted: &PlanAccepted, done: &[&TaskDone], ran: &[&PlannerRan]) -> Changes {
    let plan = &accepted.plan;
    let mut board = Board::new(plan, accepted.strategy, accepted.max_parallel);
    let mut statuses: Vec<TaskStatus> = Vec::new();
    if done.is_empty() {
        statuses.extend((0..plan.tasks.len()).map(|place| status(plan, place, TaskState::Pending, None)));
    }
    let (mut ended, mut begun) = (Vec::new(), board.begin());
    for TaskDone(end) in done {
        (ended, begun) = (Vec::new(), Vec::new());
        if let Some(place) = plan.place(&end.id) {
            ended.push(place);
            ended.extend(board.end(place, end.failure.is_none()));
            begun = board.begin();
        }
    }
    let last = done.last().map(|TaskDone(end)| end);
    let changed = ended.iter().chain(&begun);
    statuses.extend(changed.map(|place| status(plan, *place, board.states()[*place], last)));
    let ready = begun.iter().map(|place| TaskReady { id: plan.tasks[*place].id.as_str().into() }).collect();
    let outcome = board.has_ended().then(|| outcome(plan, board.states(), done, ran));
    Changes { statuses, ready, outcome }
}

/// The status of a task. `end` is the end that led to it, maybe of another task.
fn status(plan: &Plan, place: usize, status: TaskState, end: Option<&TaskEnd>) -> TaskStatus {
    let task = &plan.tasks[place];
    let failure = end.filter(|end| *end.id == *task.id).and_then(|end| end.failure.as_ref());
    let class = failure.map(|failure| failure.class);
    TaskStatus { id: task.id.as_str().into(), title: task.title.as_str().into(), status, class }
}

fn outcome(plan: &Plan, states: &[TaskState], done: &[&TaskDone], ran: &[&PlannerRan]) -> ProjectOutcome {
    let results = results(plan, states, done);
    let (usage, cost) = spent(done, ran);
    let failed = results.iter().filter(|result| result.status == TaskState::Failed);
    let tasks: Vec<String> = failed.map(|result| result.id.to_string()).collect();
    if tasks.is_empty() {
        return ProjectOutcome::Done(ProjectDone { results, usage, cost });
    }
    ProjectOutcome::Failed(ProjectFailed { reason: ProjectFailure::Tasks { tasks }, results, usage, cost })
}

fn results(plan: &Plan, states: &[TaskState], done: &[&TaskDone]) -> Vec<TaskResult> {
    let result = |(task, status): (&PlanTask, &TaskState)| {
        let end = done.iter().find(|TaskDone(end)| *end.id == *task.id).map(|TaskDone(end)| end);
        TaskResult {
            id: task.id.as_str().into(),
            title: task.title.as_str().into(),
            status: *status,
            text: end.map(|end| Arc::clone(&end.text)).unwrap_or_default(),
            failure: end.and_then(|end| end.failure.clone()),
        }
    };
    plan.tasks.iter().zip(states).map(result).collect()
}

fn spent(done: &[&TaskDone], ran: &[&PlannerRan]) -> (Usage, f64) {
    let ran = ran.iter().map(|ran| (ran.usage, ran.cost));
    let all = done.iter().map(|TaskDone(end)| (end.usage, end.cost)).chain(ran);
    all.fold((Usage::default(), 0.0), |(mut sum, cost), (usage, more)| {
        sum += usage;
        (sum, cost + more)
    })
}

/// The end of a project in which a step failed for good, with the results so far.
pub(super) fn gave_up(
    project: &Inner,
    failed: &StepFailed,
    accepted: Option<&PlanAccepted>,
    done: &[&TaskDone],
    ran: &[&PlannerRan],
) -> ProjectFailed {
    let results = accepted.map(|accepted| {
        let mut board = Board::new(&accepted.plan, accepted.strategy, accepted.max_parallel);
        board.begin();
        for TaskDone(end) in done {
            if let Some(place) = accepted.plan.place(&end.id) {
                board.end(place, end.failure.is_none());
                board.begin();
            }
        }
        results(&accepted.plan, board.states(), done)
    });
    let error = format!("step `{}`: {}", failed.step, failed.error);
    let reason = ProjectFailure::Failed {
        class: FailureClass::from(failed.class),
        error: project.redactor.text(&error).as_ref().into(),
    };
    let (usage, cost) = spent(done, ran);
    ProjectFailed { reason, results: results.unwrap_or_default(), usage, cost }
}

/// The events that a task sees.
pub(super) struct Surroundings<'a> {
    pub(super) goal: Option<&'a ProjectGoal>,
    pub(super) accepted: Option<&'a PlanAccepted>,
    pub(super) done: &'a [&'a TaskDone],
}

/// Runs the agent of a task. The result is its end, or another run where its tools failed.
pub(super) async fn work(
    project: &Inner,
    run: &TaskRun,
    surroundings: &Surroundings<'_>,
    children: &Children,
    info: &RunInfo,
) -> Result<Worked, StepError> {
    let plan = surroundings.accepted.map(|accepted| &accepted.plan);
    let task = plan.and_then(|plan| plan.tasks.get(plan.place(&run.id)?));
    let (Some(goal), Some(task)) = (surroundings.goal, task) else {
        return Err(StepError::permanent(format!("the plan has no task `{}`", run.id)));
    };
    let text = prompt(project, &goal.text, task, surroundings.done);
    let options =
        RunOptions::new().workflow(crate::agent::below(info.workflow(), super::WORKER)).id(&*task.id);
    let ended = children.run_with::<Agent>(Prompt::new(text), options).await;
    let (text, failure, usage, cost) = match ended {
        Ok(Outcome::Answered(answer)) => (answer.text, None, answer.usage, answer.cost),
        Ok(Outcome::Stopped(stopped)) => {
            let failure = (class_of(&stopped.reason), stopped.reason.to_string());
            (stopped.text, Some(failure), stopped.usage, stopped.cost)
        }
        Err(error) => {
            let failed = failures::of_child(error)?;
            (String::new(), Some((failed.class.into(), failed.text)), Usage::default(), 0.0)
        }
    };
    let mut spent = run.usage;
    spent += usage;
    let cost = run.cost + cost;
    if failure.as_ref().is_some_and(|(class, _)| *class == FailureClass::Tool) && run.number <= RETRIES {
        let again = TaskRun { id: Arc::clone(&run.id), number: run.number + 1, usage: spent, cost };
        return Ok(Worked::Again(again));
    }
    let failure = failure.map(|(class, error)| failure_of(project, class, &error));
    let text = project.redactor.text(&text);
    let text = tool::cut(&text, tool::OUTPUT).into();
    Ok(Worked::Ran(TaskRan(TaskEnd { id: Arc::clone(&run.id), text, failure, usage: spent, cost })))
}

fn failure_of(project: &Inner, class: FailureClass, error: &str) -> TaskFailure {
    let error = project.redactor.text(error);
    TaskFailure { class, error: tool::cut(&error, tool::OUTPUT).into() }
}

/// The end of a task whose step failed for good.
pub(super) fn failed(project: &Inner, run: &TaskRun, failed: &StepFailed) -> TaskEnd {
    let failure = failure_of(project, failed.class.into(), &failed.error);
    TaskEnd {
        id: Arc::clone(&run.id),
        text: Arc::default(),
        failure: Some(failure),
        usage: run.usage,
        cost: run.cost,
    }
}

/// The class of a stop.
fn class_of(reason: &StopReason) -> FailureClass {
    match reason {
        StopReason::Failed { class, .. } => *class,
        StopReason::OutputLimit
        | StopReason::Looping { .. }
        | StopReason::InvalidOutput { .. }
        | StopReason::JudgeRetries { .. } => FailureClass::Model,
        StopReason::TurnLimit { .. }
        | StopReason::Refused
        | StopReason::Escalated { .. }
        | StopReason::Budget { .. } => FailureClass::Permanent,
    }
}

/// The prompt of a task: its own text, and as data the goal and the results of its dependencies.
fn prompt(project: &Inner, goal: &Arc<str>, task: &PlanTask, done: &[&TaskDone]) -> String {
    let goal = project.redactor.shared(goal);
    let goal = mark::data("goal", tool::head(&goal, GOAL));
    let mut text = format!("{}\n\nThis task is a part of a project with this goal:\n{goal}", task.prompt);
    let mut before: Vec<&TaskEnd> = Vec::new();
    for id in &task.depends_on {
        let end = done.iter().map(|TaskDone(end)| end).find(|end| *end.id == **id);
        before.extend(end.filter(|end| before.iter().all(|known| known.id != end.id)));
    }
    if before.is_empty() {
        return text;
    }
    // A mark adds a label, and at most three bytes to each five of its text.
    let most = (TEXT.saturating_sub(text.len()) / before.len()).saturating_sub(200) / 8 * 5;
    text.push_str("\nThe results of the tasks before, on which this one builds:");
    for end in before {
        text.push('\n');
        text.push_str(&mark::data(&format!("result of task {}", end.id), &tool::cut(&end.text, most)));
    }
    text
}
