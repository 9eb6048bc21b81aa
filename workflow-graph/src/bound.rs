//! Binds documents to a registry: each of their graphs becomes a workflow that an engine hosts.

use std::collections::HashMap;
use std::sync::Arc;

use workflow_core::RuntimeWorkflow;
use workflow_core::table::TableError;

use crate::check::Layout;
use crate::document::model::Graph;
use crate::hash::hash;
use crate::problem::sink::Problems;
use crate::problem::{CheckError, Code};
use crate::table::{self, Compiled};
use crate::walk::{Child, Walk};
use crate::{Document, Registry, bind};

impl Document {
    /// Binds the document to what a program gives it: its graphs, and those of the registry's further documents, as workflows
    /// for [`EngineBuilder::workflows`](workflow_core::EngineBuilder::workflows).
    ///
    /// Each graph is hosted under its own name. A document can be bound any number of times; engines share its graphs.
    ///
    /// # Errors
    ///
    /// Everything that the registry lacks at once: functions, tools, children, executors, and fields of their inputs.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_graph::{Code, Document, Registry};
    ///
    /// let document = Document::parse("graph: g\nnodes: {a: {function: orders.find}}\n", "g.yaml")?;
    /// let error = document.bind(&Registry::new()).unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::UnknownFunction);
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn bind(&self, registry: &Registry) -> Result<Vec<RuntimeWorkflow>, CheckError> {
        bound(&bind::documents(Some(self), registry), registry)
    }

    /// A graph that has passed its checks has no table: a defect of this crate, told like a problem of the document.
    fn defect(&self, graph: &Graph, error: &TableError) -> CheckError {
        let mut problems = Problems::new(self.file());
        let message = format!("`{}` cannot be compiled, which is a defect: {error}", graph.name.value);
        problems.add(Code::Unsupported, graph.name.at, message, "report it with the document");
        match problems.finish() {
            Err(error) => error,
            Ok(problems) => CheckError { problems },
        }
    }

    /// The first 16 hexadecimal digits of the SHA-256 of the document's text.
    fn hash(&self) -> String {
        hash(self.source().text())
    }
}

impl Registry {
    /// Binds every document that the registry has by [`document`](Self::document), as [`Document::bind`] does, and each
    /// graph once. So documents that name the same children are hosted by one engine.
    ///
    /// # Errors
    ///
    /// Everything that the registry lacks for any of them.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_graph::{Document, GraphRun, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tax = Document::parse("graph: tax\nnodes: {rate: {value: 8}}\n", "tax.yaml")?;
    /// let offer = Document::parse("graph: offer\nnodes: {add: {graph: tax}}\n", "offer.yaml")?;
    /// let bill = Document::parse("graph: bill\nnodes: {add: {graph: tax}}\n", "bill.yaml")?;
    /// let registry = Registry::new().document(&tax).document(&offer).document(&bill);
    /// let engine = Engine::builder().workflows(registry.bind()?).build()?;
    ///
    /// let run = GraphRun::start(&engine, "bill", json!({})).await?;
    /// assert_eq!(run.outcome().await?.output, 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(&self) -> Result<Vec<RuntimeWorkflow>, CheckError> {
        bound(&bind::documents(None, self), self)
    }
}

fn bound(documents: &[&Document], registry: &Registry) -> Result<Vec<RuntimeWorkflow>, CheckError> {
    bind::check(documents, registry)?;
    let mut children = HashMap::new();
    for document in documents {
        let hash: Arc<str> = document.hash().into();
        for graph in document.graphs() {
            let child = Child { document: hash.clone(), is_bounded: graph.limits.time.is_some() };
            children.insert(graph.name.value.clone(), child);
        }
    }
    let (children, executors) = (Arc::new(children), Arc::new(registry.executors().clone()));
    let graphs =
        documents.iter().flat_map(|document| document.graphs().iter().map(move |graph| (*document, graph)));
    let workflows = graphs.map(|(document, graph)| {
        let layout = Layout::of(graph);
        let Compiled { table, plans, tokens } =
            table::compile(graph, &layout).map_err(|error| document.defect(graph, &error))?;
        let walk = Walk::new(graph.clone(), layout, (plans, tokens), executors.clone(), children.clone());
        Ok(match graph.limits.time {
            Some(time) => RuntimeWorkflow::with_timeout(table, time, walk),
            None => RuntimeWorkflow::new(table, walk),
        })
    });
    workflows.collect()
}
