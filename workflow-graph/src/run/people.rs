//! The questions of a run and of the graphs below it, and their answers.

use futures_util::future::BoxFuture;
use serde::Serialize;
use workflow_core::{AnyRun, Engine, RunStatus, SendError};

use super::below::{DEPTH, children, working};
use super::{Gate, GateId, GraphRun};
use crate::error::{GraphError, UnfitField};
use crate::script::ScriptedExecutor;
use crate::walk::Walk;

impl GraphRun {
    /// The nodes that ask people now: those of the run in the order in which they asked, then those of the graphs below it, for
    /// which its nodes wait.
    ///
    /// It makes a report of the run and of each open child. A run that has ended asks nothing.
    ///
    /// # Errors
    ///
    /// [`GraphError::Send`] if the run stopped here, for example because its store failed, and
    /// [`GraphError::Run`] if a report cannot be made.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_graph::{Document, GraphRun, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = "
    /// graph: order
    /// nodes: {pay: {graph: payment}}
    /// ---
    /// graph: payment
    /// nodes: {approve: {human: {ask: 'Pay?'}}}
    /// ";
    /// let document = Document::parse(text, "order.yaml")?;
    /// let engine = Engine::builder().workflows(document.bind(&Registry::new())?).build()?;
    /// let run = GraphRun::start(&engine, "order", json!({})).await?;
    /// run.settled().await;
    ///
    /// let gates = run.gates().await?;
    /// assert_eq!((&*gates[0].path, &*gates[0].node), (&["pay".to_owned()][..], "approve"));
    /// run.answer(&gates[0], "yes").await?;
    /// assert_eq!(run.outcome().await?.output, "yes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn gates(&self) -> Result<Vec<Gate>, GraphError> {
        let requests = match self.run.requests().await {
            Ok(requests) => requests,
            Err(SendError::Ended { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let of_run = |request| Gate::of(&self.walk.graph, self.id(), request);
        let mut gates: Vec<Gate> = requests.iter().filter_map(of_run).collect();
        if matches!(self.run.status(), RunStatus::Running | RunStatus::Paused)
            && let Some(engine) = self.run.engine()
        {
            below(&engine, self.run.clone(), &[], &mut gates, DEPTH).await?;
        }
        Ok(gates)
    }

    /// Answers a question: a [`Gate`] of the run or of a graph below it, or the number of a question of the run itself.
    ///
    /// # Errors
    ///
    /// An answer that does not fit is refused with its path, and the question stays open. So is an answer to a question
    /// that is not open.
    pub async fn answer(&self, gate: impl Into<GateId>, answer: impl Serialize) -> Result<(), GraphError> {
        let GateId { run, seq } = gate.into();
        let asks = self.asking(run).await?;
        let answer = serde_json::to_value(answer).map_err(|error| GraphError::Unfit {
            graph: asks.workflow().into(),
            fields: vec![UnfitField::whole(&error)],
        })?;
        asks.reply_json(seq, answer).await.map_err(|error| match error {
            SendError::UnfitReply { asked, path, problem, .. } => GraphError::UnfitAnswer {
                node: asked.strip_suffix(":ask").unwrap_or(&asked).to_owned(),
                field: UnfitField { path, problem },
            },
            error => error.into(),
        })
    }

    /// The run that asks.
    async fn asking(&self, run: Option<workflow_core::RunId>) -> Result<AnyRun, GraphError> {
        match (run.filter(|run| run != self.id()), self.run.engine()) {
            (Some(run), Some(engine)) => match engine.find(&run) {
                Some(run) => Ok(run),
                None => Ok(engine.attach_any(run).await?),
            },
            _ => Ok(self.run.clone()),
        }
    }

    /// Plays the people of a script: answers every question of the run and of the graphs below it for which the script has a
    /// reply, until the run has ended or waits for something else.
    ///
    /// # Errors
    ///
    /// As [`answer`](Self::answer).
    pub async fn play(&self, script: &ScriptedExecutor) -> Result<RunStatus, GraphError> {
        loop {
            let status = self.settled().await;
            if status.is_ended() {
                return Ok(status);
            }
            let gates = self.gates().await?;
            let mut open = gates.iter().filter_map(|gate| Some((gate, script.reply_to(gate)?)));
            let Some((gate, reply)) = open.next() else { return Ok(status) };
            match self.answer(gate, reply).await {
                // The run ended or stopped here, or the time to answer was over meanwhile.
                Err(GraphError::Send(
                    SendError::Ended { .. }
                    | SendError::Stopped { .. }
                    | SendError::Answered { .. }
                    | SendError::Expired { .. }
                    | SendError::NotOpen { .. },
                )) => {}
                answered => answered?,
            }
        }
    }
}

/// Adds the questions of the graphs below a run.
fn below<'a>(
    engine: &'a Engine,
    run: AnyRun,
    path: &'a [String],
    gates: &'a mut Vec<Gate>,
    depth: usize,
) -> BoxFuture<'a, Result<(), GraphError>> {
    Box::pin(async move {
        // One without a driver has no questions here.
        let Ok(report) = run.report_so_far().await else { return Ok(()) };
        for execution in working(&report) {
            for child in children(engine, &report, execution).flatten().filter(|_| depth > 0) {
                let node = execution.step.split(':').next().unwrap_or_default().to_owned();
                let path: Vec<String> = path.iter().cloned().chain([node]).collect();
                gates.extend(own(engine, &child, &path).await?);
                below(engine, child, &path, gates, depth - 1).await?;
            }
        }
        Ok(())
    })
}

/// The questions of a child itself, if it is one of a graph.
async fn own(engine: &Engine, child: &AnyRun, path: &[String]) -> Result<Vec<Gate>, GraphError> {
    let Some(walk) = engine.steps_of::<Walk>(child.workflow()) else { return Ok(Vec::new()) };
    let requests = match child.requests().await {
        // It ended or stopped here meanwhile.
        Err(SendError::Ended { .. } | SendError::Stopped { .. }) => return Ok(Vec::new()),
        requests => requests?,
    };
    let of_child = |request| {
        let gate = Gate::of(&walk.graph, child.id(), request)?;
        Some(Gate { path: path.to_vec(), ..gate })
    };
    Ok(requests.iter().filter_map(of_child).collect())
}
