//! Planning: the run of the planner, the check of its plan, a person's decision, and the way back to the planner.

use std::sync::Arc;

use workflow_core::RunOptions;
use workflow_core::prelude::*;

use super::board::Strategy;
use super::outcome::{GoalError, ProjectFailed, ProjectFailure};
use super::plan::{Plan, PlanError, PlanProblem, PlanTask};
use super::{
    ApprovePlan, Inner, PlanAccepted, PlanDecision, PlanReturned, Planned, PlannerRan, ProjectGoal, Returned,
};
use crate::agent::{Agent, Outcome, Prompt};
use crate::{failures, mark, tool};

/// The longest goal in bytes.
pub(super) const GOAL: usize = 512 * 1024;
/// How often in a row plans go back to the planner because of problems.
const RETURNS: usize = 2;
/// How many plans people may reject.
pub(super) const MOST_REJECTED: usize = 10;
/// The longest answer and the longest reason that the planner sees again, in bytes.
const AGAIN: usize = 48 * 1024;
const REASON: usize = 8 * 1024;

/// The result of a run of the planner.
pub(super) enum Made {
    /// A plan that can be carried out.
    Plan(Plan),
    /// The way back to the planner, or the end of the project.
    Other(Planned),
}

/// The goal without secrets.
pub(super) fn checked_goal(project: &Inner, text: &Arc<str>) -> Result<Arc<str>, GoalError> {
    let text = project.redactor.shared(text);
    match text.len() {
        _ if text.trim().is_empty() => Err(GoalError::Empty),
        bytes if bytes > GOAL => Err(GoalError::TooLong { bytes, limit: GOAL }),
        _ => Ok(text),
    }
}

/// Runs the planner. The result is a plan, a reason for another one, or the end of the project.
pub(super) async fn run(
    project: &Inner,
    goal: Option<&ProjectGoal>,
    returned: &[&PlanReturned],
    ran: &[&PlannerRan],
    children: &Children,
    info: &RunInfo,
) -> Result<(PlannerRan, Made), StepError> {
    let Some(goal) = goal else { return Err(StepError::permanent("the project has no goal")) };
    let goal = checked_goal(project, &goal.text).map_err(StepError::permanent)?;
    let text = prompt(project, &goal, returned.last().copied());
    let prompt = Prompt::new(text).output(tool::schema_of::<Plan>());
    let options = RunOptions::new().workflow(crate::agent::below(info.workflow(), super::PLANNER)).id("plan");
    let outcome = match children.run_with::<Agent>(prompt, options).await {
        Ok(outcome) => outcome,
        Err(error) => {
            // The run of the planner has its own retries, so this step has none.
            let ended = failures::of_child(error)?;
            let error = project.redactor.text(&ended.text).as_ref().into();
            let reason = ProjectFailure::Failed { class: ended.class.into(), error };
            let spent = PlannerRan { usage: crate::model::Usage::default(), cost: 0.0 };
            return Ok((spent, Made::Other(Planned::Failed(failed(reason, ran.iter().copied())))));
        }
    };
    let spent = PlannerRan { usage: outcome.usage(), cost: outcome.cost() };
    let answer = match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Stopped(stopped) => {
            let reason = ProjectFailure::Planner { reason: stopped.reason };
            let failed = failed(reason, ran.iter().copied().chain([&spent]));
            return Ok((spent, Made::Other(Planned::Failed(failed))));
        }
    };
    let mut data = answer.data.unwrap_or_default();
    project.redactor.value(&mut data);
    let said =
        if data.is_null() { project.redactor.text(&answer.text).into_owned() } else { data.to_string() };
    let plan = match read(data).and_then(|plan| plan.check(project.strategy).map(|()| plan)) {
        Ok(plan) => Made::Plan(plan),
        Err(error) => Made::Other(returns(error, &said, returned, ran.iter().copied().chain([&spent]))),
    };
    Ok((spent, plan))
}

fn read(data: serde_json::Value) -> Result<Plan, PlanError> {
    serde_path_to_error::deserialize(data).map_err(|error| {
        let path = tool::head(&error.path().to_string(), 200).to_owned();
        PlanProblem::Unreadable { path, problem: tool::head(&error.inner().to_string(), 500).to_owned() }
            .into()
    })
}

/// Sends a plan with problems back, unless that has happened too often in a row.
fn returns<'a>(
    error: PlanError,
    said: &str,
    returned: &[&PlanReturned],
    ran: impl Iterator<Item = &'a PlannerRan>,
) -> Planned {
    let in_a_row =
        returned.iter().rev().take_while(|one| matches!(one.why, Returned::Problems { .. })).count();
    if in_a_row >= RETURNS {
        return Planned::Failed(failed(ProjectFailure::Plan { plans: in_a_row + 1, error }, ran));
    }
    Planned::Returned(PlanReturned {
        answer: tool::cut(said, AGAIN).into(),
        why: Returned::Problems { error },
    })
}

/// The end of a project without results.
pub(super) fn failed<'a>(reason: ProjectFailure, ran: impl Iterator<Item = &'a PlannerRan>) -> ProjectFailed {
    let mut failed =
        ProjectFailed { reason, results: Vec::new(), usage: crate::model::Usage::default(), cost: 0.0 };
    for ran in ran {
        failed.usage += ran.usage;
        failed.cost += ran.cost;
    }
    failed
}

/// Takes a person's decision.
pub(super) fn decided(
    project: &Inner,
    decision: &PlanDecision,
    asked: &ApprovePlan,
    returned: &[&PlanReturned],
    ran: &[&PlannerRan],
) -> Planned {
    let reason = match decision {
        PlanDecision::Approve => return Planned::Accepted(accepted(project, asked.plan.clone())),
        PlanDecision::Edit { tasks } => match edited(project, tasks.clone()) {
            Ok(plan) => return Planned::Accepted(accepted(project, plan)),
            Err(error) => Some(format!("a person edited the tasks, and {error}")),
        },
        PlanDecision::Reject { reason } => {
            reason.as_deref().map(|reason| project.redactor.text(reason).into_owned())
        }
    };
    let reason: Option<Arc<str>> = reason.map(|reason| tool::head(&reason, REASON).into());
    let rejected = returned.iter().filter(|one| matches!(one.why, Returned::Rejected { .. })).count() + 1;
    if rejected >= MOST_REJECTED {
        let reason = ProjectFailure::Rejected { plans: rejected, reason };
        return Planned::Failed(failed(reason, ran.iter().copied()));
    }
    let answer = serde_json::to_string(&asked.plan).unwrap_or_default();
    Planned::Returned(PlanReturned {
        answer: tool::cut(&answer, AGAIN).into(),
        why: Returned::Rejected { reason },
    })
}

/// The plan of edited tasks, without secrets.
pub(super) fn edited(project: &Inner, tasks: Vec<PlanTask>) -> Result<Plan, PlanError> {
    let plan = Plan::new(tasks).redacted(&project.redactor);
    plan.check(project.strategy).map(|()| plan)
}

/// The rules of the project stand beside the plan, so that a resumed run keeps to those with which it began.
pub(super) fn accepted(project: &Inner, plan: Plan) -> PlanAccepted {
    PlanAccepted { plan, strategy: project.strategy, max_parallel: project.max_parallel }
}

fn prompt(project: &Inner, goal: &str, returned: Option<&PlanReturned>) -> String {
    let order = match project.strategy {
        Strategy::Sequential => {
            "Tasks run one at a time, in the order of your list; a task runs after those in its `depends_on`."
        }
        Strategy::Parallel => "All tasks run side by side, so `depends_on` stays empty.",
        Strategy::Dag => "A task runs as soon as all tasks in its `depends_on` are completed, beside others.",
    };
    let goal = mark::data("goal", goal);
    let mut text = format!(
        "Plan the project whose goal is below: split it into tasks for agents, 1 to 100. An agent sees the prompt of its \
         task, the goal, and the results of the tasks in its `depends_on`, and nothing else, so the prompt has everything \
         else that it needs. {order} Ids are unique, and have 1 to 64 letters, digits, `_` and `-`.\n{goal}"
    );
    if let Some(PlanReturned { answer, why }) = returned {
        let why = match why {
            Returned::Problems { error } => {
                let error = mark::data("problems", tool::head(&error.to_string(), REASON));
                format!("It cannot be carried out:\n{error}")
            }
            Returned::Rejected { reason: Some(reason) } => {
                format!("A person rejected it for this reason:\n{}", mark::data("reason", reason))
            }
            Returned::Rejected { reason: None } => "A person rejected it without a reason.".to_owned(),
        };
        let answer = mark::data("plan before", answer);
        for part in ["\nYour plan before:\n", &*answer, "\n", &*why, "\nMake another plan."] {
            text.push_str(part);
        }
    }
    text
}
