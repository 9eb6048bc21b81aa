//! Runs of graphs from their journals alone, for commands and tools that look at a store: nothing runs, and nothing is
//! written.

use std::sync::Arc;
use std::time::SystemTime;

use workflow_core::draw::Graph as Drawing;
use workflow_core::{RecordedRun, RunStatus};

use crate::Document;
use crate::document::model::Graph;
use crate::draw::draw_run;
use crate::error::GraphError;
use crate::explain::Explanation;
use crate::run::Gate;
use crate::trace::Trace;

/// A run of a document's graph, read from its journal without an engine.
///
/// It shows one moment: to follow a run that continues, make a new one from its newer records.
///
/// ```
/// use serde_json::json;
/// use workflow_core::prelude::*;
/// use workflow_core::RecordedRun;
/// use workflow_core::store::MemoryStore;
/// use workflow_graph::{Document, GraphRun, Registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let document = Document::parse("graph: g\nnodes: {ask: {human: {ask: Well?}}}\n", "g.yaml")?;
/// let workflows = document.bind(&Registry::new())?;
/// let engine = Engine::builder().workflows(workflows).store(MemoryStore::default()).build()?;
/// let run = GraphRun::start(&engine, "g", json!({})).await?;
/// run.settled().await;
///
/// let records = engine.history(run.id()).await?;
/// let recorded = document.recorded(RecordedRun::of(run.id(), &records)?)?;
/// assert_eq!(recorded.gates()[0].text, "Well?");
/// assert!(recorded.trace().visits.is_empty(), "the visit has not ended");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RecordedGraph {
    graph: Arc<Graph>,
    run: RecordedRun,
}

impl Document {
    /// Reads a recorded run in the words of this document.
    ///
    /// # Errors
    ///
    /// [`GraphError::OtherDocument`] if the run is of no graph of the document.
    pub fn recorded(&self, run: RecordedRun) -> Result<RecordedGraph, GraphError> {
        let workflow = run.report().workflow.clone();
        let Some(graph) = self.graphs().iter().find(|graph| graph.name.value == workflow) else {
            let graphs = self.graphs().iter().map(|graph| graph.name.value.to_string()).collect();
            return Err(GraphError::OtherDocument { run: run.report().run.clone(), workflow, graphs });
        };
        Ok(RecordedGraph { graph: Arc::clone(graph), run })
    }
}

impl RecordedGraph {
    /// The recorded run as the engine knows it.
    pub fn run(&self) -> &RecordedRun {
        &self.run
    }

    /// The status of the run at the end of its records.
    pub fn status(&self) -> RunStatus {
        self.run.status()
    }

    /// The nodes that ask people, in the order in which they asked.
    pub fn gates(&self) -> Vec<Gate> {
        let run = &self.run.report().run;
        self.run.requests().iter().filter_map(|request| Gate::of(&self.graph, run, request)).collect()
    }

    /// The visits and routes so far.
    pub fn trace(&self) -> Trace {
        Trace::of(&self.graph, self.run.report())
    }

    /// The run so far, explained: for each node the route that led there, or each route that did not, with its condition
    /// and the values that it saw. The time that is left of its waits is by the clock of the system.
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.graph, self.run.report(), SystemTime::now())
    }

    /// The drawing of the graph with the run laid over it: visits of nodes, and how often each route was taken.
    pub fn draw(&self) -> Drawing {
        draw_run(&self.graph, &self.trace())
    }
}
