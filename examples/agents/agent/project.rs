//! Projects: a plan of tasks, after your y, with the state of each task as it changes.

use std::error::Error;
use std::sync::Arc;

use futures::StreamExt as _;
use workflow_agent::model::Model;
use workflow_agent::prelude::*;
use workflow_agent::{
    PendingPlan, Project, ProjectOutcome, ProjectRun, ProjectShown, Strategy, terminal_safe,
};
use workflow_core::store::RunQuery;

use crate::screen::{Lines, Screen};

const NAME: &str = "project";

pub(crate) fn project(model: &Arc<dyn Model>) -> Result<Project, Box<dyn Error>> {
    let planner = Agent::builder("planner").model(Arc::clone(model));
    let planner = planner.identity("You divide a goal into tasks that others can do alone.").build()?;
    let worker = Agent::builder("worker").model(Arc::clone(model)).identity("You do one task.").build()?;
    let project =
        Project::builder(NAME).planner(planner).worker(worker).strategy(Strategy::Dag).approve_plan();
    Ok(project.build()?)
}

/// Starts a project, and shows it. `false` if it waits for an answer that nobody gives.
pub(crate) async fn start(
    engine: &Engine,
    project: &Project,
    goal: &str,
    screen: &mut Screen,
    lines: &mut Lines,
) -> Result<bool, Box<dyn Error>> {
    show(ProjectRun::start(engine, project, goal).await?, screen, lines).await
}

/// Shows the project that an earlier process left, if there is one.
pub(crate) async fn resume(
    engine: &Engine,
    project: &Project,
    screen: &mut Screen,
    lines: &mut Lines,
) -> Result<bool, Box<dyn Error>> {
    let open = engine.runs(&RunQuery::new().workflow(NAME).open().at_most(1)).await?;
    let Some(left) = open.into_iter().next() else { return Ok(true) };
    screen.say("(resumes the project that it found)");
    show(ProjectRun::attach(engine, project, left.id).await?, screen, lines).await
}

async fn show(mut run: ProjectRun, screen: &mut Screen, lines: &mut Lines) -> Result<bool, Box<dyn Error>> {
    while let Some(shown) = run.next().await {
        let is_answered = match shown {
            ProjectShown::PlanProposed(plan) => approve(&plan, screen, lines).await?,
            ProjectShown::TaskStatus(task) => {
                screen.say(format_args!("- {} ({}): {}", task.id, terminal_safe(&task.title), task.status));
                true
            }
            ProjectShown::Approval(approval) => screen.item(Shown::Approval(approval), lines).await?,
            ProjectShown::Question(question) => screen.item(Shown::Question(question), lines).await?,
            ProjectShown::Done(ProjectOutcome::Done(done)) => {
                for result in &done.results {
                    screen.say(format_args!("= {}: {}", result.id, terminal_safe(&result.text)));
                }
                screen.say("the project is done");
                true
            }
            ProjectShown::Done(ProjectOutcome::Failed(failed)) => {
                screen.say(format_args!("the project failed: {}", failed.reason));
                true
            }
            ProjectShown::Ended(status) => {
                screen.say(format_args!("(the project is {status})"));
                true
            }
            // The pieces of text of several agents at once would mix.
            _ => true,
        };
        if !is_answered {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn approve(plan: &PendingPlan, screen: &mut Screen, lines: &mut Lines) -> Result<bool, Box<dyn Error>> {
    screen.say("The plan:");
    for task in plan.tasks() {
        let needs = task.depends_on.join(", ");
        screen.say(format_args!("- {}: {} [{needs}]", task.id, terminal_safe(&task.title)));
    }
    let Some(line) = lines.ask("y, or what to change> ").await? else { return Ok(false) };
    match line.trim() {
        "y" => plan.approve().await?,
        reason => plan.reject(reason).await?,
    }
    Ok(true)
}
