//! The open requests of a run and of the runs below it.

use workflow_core::report::OpenRequest;
use workflow_core::{AnyRun, Engine, ResumeError, RunError, RunId, SendError};

use crate::agent::Agent;
use crate::sub_agent;

/// An open request, with the run and the agent that ask.
pub(crate) struct Open {
    pub(crate) run: RunId,
    pub(crate) agent: Agent,
    pub(crate) request: OpenRequest,
}

/// The open requests of a run of `agent`, and then those of its sub-agents, at any depth. The runs are in the order in
/// which they began, each before those below it.
pub(crate) async fn requests(engine: &Engine, agent: &Agent, run: &AnyRun) -> Result<Vec<Open>, SendError> {
    let mut open = own(agent, run).await?;
    // Sub-agents nest three levels deep, so the walk ends.
    let mut left = below(engine, agent, run).await?;
    left.reverse();
    while let Some((agent, run)) = left.pop() {
        match own(&agent, &run).await {
            Ok(requests) => open.extend(requests),
            // It ended or stopped here meanwhile.
            Err(SendError::Ended { .. } | SendError::Stopped { .. }) => continue,
            Err(error) => return Err(error),
        }
        left.extend(below(engine, &agent, &run).await?.into_iter().rev());
    }
    Ok(open)
}

async fn own(agent: &Agent, run: &AnyRun) -> Result<Vec<Open>, SendError> {
    let requests = run.requests().await?.into_iter();
    Ok(requests.map(|request| Open { run: run.id().clone(), agent: agent.clone(), request }).collect())
}

/// The runs of sub-agents for which a run waits, in the order in which they began.
async fn below(engine: &Engine, agent: &Agent, run: &AnyRun) -> Result<Vec<(Agent, AnyRun)>, SendError> {
    if agent.inner.sub_agents.is_empty() {
        return Ok(Vec::new());
    }
    let report = match run.report_so_far().await {
        Ok(report) => report,
        Err(RunError::Store { source }) => {
            return Err(SendError::NotLoaded { run: run.id().clone(), source });
        }
        // Its task is gone, and its children with it.
        Err(_) => return Ok(Vec::new()),
    };
    let mut runs = Vec::new();
    for child in report.children.iter().filter(|child| child.child.awaited && !child.status.is_ended()) {
        let Some(agent) = sub_agent::find(agent, run.workflow(), &child.child.workflow) else { continue };
        let id = &child.child.run;
        let run = match engine.find(id) {
            Some(run) => run,
            None => match engine.attach_any(id.clone()).await {
                Ok(run) => run,
                Err(ResumeError::Store(source)) => {
                    return Err(SendError::NotLoaded { run: id.clone(), source });
                }
                // It ended meanwhile in an engine without a store, or nobody can answer it here.
                Err(_) => continue,
            },
        };
        runs.push((agent.clone(), run));
    }
    Ok(runs)
}
