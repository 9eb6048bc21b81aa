//! The open requests of the agents below a run of a graph.

use workflow_core::{AnyRun, Engine, ResumeError, RunError, SendError};
use workflow_graph::GraphRun;

use super::GraphAgents;
use crate::run::{Open, PendingApproval, PendingQuestion, requests};

impl GraphAgents {
    /// The open approvals of the agents that work for a run of a graph, and for the graphs and sub-agents below it.
    ///
    /// [`GraphRun::gates`] has the questions of the document itself.
    ///
    /// It makes a report of each open run, in O(events + executions) of that run. An ended run has no approvals.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn approvals(
        &self,
        engine: &Engine,
        run: &GraphRun,
    ) -> Result<Vec<PendingApproval>, SendError> {
        let open = self.open(engine, run.run()).await?.into_iter();
        Ok(open
            .filter_map(|open| PendingApproval::of(engine, &open.agent, &open.run, &open.request))
            .collect())
    }

    /// The open questions of the agents that work for a run of a graph, at the cost of [`approvals`](Self::approvals).
    ///
    /// # Errors
    /// If the store failed.
    pub async fn questions(
        &self,
        engine: &Engine,
        run: &GraphRun,
    ) -> Result<Vec<PendingQuestion>, SendError> {
        let open = self.open(engine, run.run()).await?.into_iter();
        Ok(open
            .filter_map(|open| PendingQuestion::of(engine, &open.agent, &open.run, &open.request))
            .collect())
    }

    async fn open(&self, engine: &Engine, run: &AnyRun) -> Result<Vec<Open>, SendError> {
        let mut open = Vec::new();
        // The engine bounds how deep runs nest, so the walk ends.
        let mut left = below(engine, run).await?;
        left.reverse();
        while let Some(run) = left.pop() {
            match self.agents.iter().find(|agent| agent.name() == run.workflow()) {
                Some(agent) => match requests(engine, agent, &run).await {
                    Ok(requests) => open.extend(requests),
                    // It ended or stopped here meanwhile.
                    Err(SendError::Ended { .. } | SendError::Stopped { .. }) => {}
                    Err(error) => return Err(error),
                },
                None => left.extend(below(engine, &run).await?.into_iter().rev()),
            }
        }
        Ok(open)
    }
}

/// The runs for which a run waits, in the order in which they began.
async fn below(engine: &Engine, run: &AnyRun) -> Result<Vec<AnyRun>, SendError> {
    let not_loaded = |run: &AnyRun, source| SendError::NotLoaded { run: run.id().clone(), source };
    let report = match run.report_so_far().await {
        Ok(report) => report,
        Err(RunError::Store { source }) => return Err(not_loaded(run, source)),
        // Its task is gone, and its children with it.
        Err(_) => return Ok(Vec::new()),
    };
    let mut runs = Vec::new();
    for child in report.children.iter().filter(|child| child.child.awaited && !child.status.is_ended()) {
        let id = &child.child.run;
        match engine.find(id) {
            Some(run) => runs.push(run),
            None => match engine.attach_any(id.clone()).await {
                Ok(run) => runs.push(run),
                Err(ResumeError::Store(source)) => {
                    return Err(SendError::NotLoaded { run: id.clone(), source });
                }
                // It ended meanwhile, or nobody can answer it here.
                Err(_) => {}
            },
        }
    }
    Ok(runs)
}
