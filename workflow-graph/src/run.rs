//! Runs of graphs, as programs use them: a handle that speaks of nodes, gates and results. Everything that it says follows
//! from the run's log and the graph that the engine hosts.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use workflow_core::draw::Graph as Drawing;
use workflow_core::store::RunQuery;
use workflow_core::{
    AnyRun, Engine, Pause, RedriveError, ResumeError, RunError, RunId, RunOptions, RunStatus,
};

use crate::draw::draw_run;
use crate::error::{GraphError, UnfitField};
use crate::explain::Explanation;
use crate::result::{GraphFailure, GraphResult};
use crate::schema;
use crate::state::{Begin, names};
use crate::trace::Trace;
use crate::walk::Walk;

mod below;
mod gate;
mod people;
mod settled;

pub use gate::{Gate, GateId};

/// A run of a graph.
///
/// ```
/// use serde_json::json;
/// use workflow_core::prelude::*;
/// use workflow_graph::{Document, GraphRun, Registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "
/// graph: greeting
/// input: {type: object, properties: {name: {type: string}}, required: [name]}
/// nodes:
///   greet: {value: 'Hello, ${ input.name }!'}
/// ";
/// let document = Document::parse(text, "greeting.yaml")?;
/// let engine = Engine::builder().workflows(document.bind(&Registry::new())?).build()?;
///
/// let run = GraphRun::start(&engine, "greeting", json!({"name": "Ada"})).await?;
/// assert_eq!(run.outcome().await?.output, "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GraphRun {
    run: AnyRun,
    walk: Arc<Walk>,
}

/// How a run of a graph begins.
#[derive(Debug, Default)]
pub struct GraphOptions {
    run: RunOptions,
    is_dry: bool,
}

impl GraphOptions {
    /// The default: a run of its own id, which takes every route.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of the run: its id, thread, metadata, origin and time. Of that time and the
    /// document's `limits.time` the shorter one counts.
    #[must_use]
    pub fn run(self, run: RunOptions) -> Self {
        Self { run, ..self }
    }

    /// Ends the run at the first node whose route depends on a condition or a model, with the routes that it could take.
    ///
    /// Effects happen: the nodes until there, and that node, run with their real functions, tools, commands and agents.
    #[must_use]
    pub fn dry_run(self) -> Self {
        Self { is_dry: true, ..self }
    }
}

impl GraphRun {
    /// Starts the graph of this name.
    ///
    /// # Errors
    ///
    /// [`GraphError::UnknownGraph`], [`GraphError::Unfit`] with up to 16 fields of the input that do not fit, and
    /// errors of the engine. Nothing is started then.
    pub async fn start(engine: &Engine, graph: &str, input: impl Serialize) -> Result<Self, GraphError> {
        Self::start_with(engine, graph, input, GraphOptions::new()).await
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn start_with(
        engine: &Engine,
        graph: &str,
        input: impl Serialize,
        options: GraphOptions,
    ) -> Result<Self, GraphError> {
        let walk = Self::walk(engine, graph)?;
        let input = serde_json::to_value(input).map_err(|error| GraphError::Unfit {
            graph: graph.into(),
            fields: vec![UnfitField::whole(&error)],
        })?;
        if let Some(known) = &walk.graph.input {
            let fields = schema::unfit(known, &walk.input(&input));
            if !fields.is_empty() {
                let fields = fields.into_iter().map(UnfitField::from).collect();
                return Err(GraphError::Unfit { graph: graph.into(), fields });
            }
        }
        let begin = Begin { input, dry_run: options.is_dry, played: 0, document: walk.document() };
        let run = engine.start_json(graph, names::INPUT, begin, options.run).await?;
        Ok(Self { run, walk })
    }

    /// The run of this id: one that this engine drives, or resumes from its store.
    ///
    /// # Errors
    ///
    /// [`GraphError::NoGraphRun`] if the run is none of a graph, and errors of the engine.
    pub async fn attach(engine: &Engine, run: impl Into<RunId>) -> Result<Self, GraphError> {
        let run = engine.attach_any(run).await?;
        let Some(walk) = engine.steps_of::<Walk>(run.workflow()) else {
            let workflow = run.workflow().to_owned();
            return Err(GraphError::NoGraphRun { run: run.id().clone(), workflow });
        };
        Ok(Self { run, walk })
    }

    /// Continues a run that failed, was cancelled, timed out or stalled, from where it ended: after the document, or what its
    /// nodes call, was mended.
    ///
    /// Visits that ended stay as they are. The failed one begins anew, with the engine's present document.
    ///
    /// # Errors
    ///
    /// [`GraphError::NoGraphRun`] if the run is none of a graph, [`GraphError::Redrive`] with the reason of the engine: the
    /// run is open or completed, for example, or the changed document does not fit its log.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::MemoryStore;
    /// use workflow_graph::{Document, GraphRun, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = std::sync::Arc::new(MemoryStore::default());
    /// let hosting = |divisor: &str| -> Result<Engine, Box<dyn std::error::Error>> {
    ///     let text = format!("graph: g\nnodes: {{a: {{value: '${{ 6 / {divisor} }}'}}}}\n");
    ///     let workflows = Document::parse(&text, "g.yaml")?.bind(&Registry::new())?;
    ///     Ok(Engine::builder().workflows(workflows).store(store.clone()).build()?)
    /// };
    /// let run = GraphRun::start(&hosting("input.none")?, "g", json!({"none": 0})).await?;
    /// assert!(run.outcome().await.is_err());
    ///
    /// let run = GraphRun::redrive(&hosting("2")?, run.id().clone()).await?;
    /// assert_eq!(run.outcome().await?.output, 3.0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn redrive(engine: &Engine, run: impl Into<RunId>) -> Result<Self, GraphError> {
        let run = run.into();
        let query = RunQuery::new().run(run.clone());
        let unread = |error| GraphError::Resume(ResumeError::Store(error));
        let stored = engine.runs(&query).await.map_err(unread)?;
        let Some(stored) = stored.into_iter().next() else {
            return Err(ResumeError::UnknownRun { run }.into());
        };
        if engine.steps_of::<Walk>(&stored.run.workflow).is_none() {
            return Err(GraphError::NoGraphRun { run, workflow: stored.run.workflow.to_string() });
        }
        let redriven = engine.redrive_all(&query, 1).await.map_err(unread)?;
        if let Some(error) = redriven.error {
            return Err(unread(error));
        }
        if let Some((_, error)) = redriven.refused.into_iter().next() {
            return Err(error.into());
        }
        if redriven.runs.is_empty() {
            let status = stored.run.status;
            return Err(match stored.run.parent {
                Some(parent) => RedriveError::Child { run, parent },
                None if status == RunStatus::Completed => RedriveError::Completed { run },
                None => RedriveError::NotEnded { run, status },
            }
            .into());
        }
        Self::attach(engine, run).await
    }

    fn walk(engine: &Engine, graph: &str) -> Result<Arc<Walk>, GraphError> {
        engine.steps_of::<Walk>(graph).ok_or_else(|| {
            let hosted = engine.hosted().into_iter().map(|hosted| hosted.name.to_string());
            let graphs = hosted.filter(|name| engine.steps_of::<Walk>(name).is_some()).collect();
            GraphError::UnknownGraph { graph: graph.to_owned(), graphs }
        })
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.run.id()
    }

    /// The name of the graph.
    pub fn graph(&self) -> &str {
        self.run.workflow()
    }

    /// The run as the engine knows it: its report, display, timers and more.
    pub fn run(&self) -> &AnyRun {
        &self.run
    }

    /// Waits for the end of the run.
    ///
    /// Each end of the walk is `Ok`, also at the limit of visits, without a route that matches, and of a dry run: see
    /// [`GraphResult::status`].
    ///
    /// # Errors
    ///
    /// [`GraphError::Failed`] with the results and the trace so far, if the run did not come to an end of its own: it
    /// failed, was cancelled, or its time was over.
    pub async fn outcome(&self) -> Result<GraphResult, GraphError> {
        let ended = self.run.outcome_any().await;
        // There is none of a run that was removed meanwhile, for example.
        let report = self.run.report().await.ok();
        match ended {
            Ok(output) => GraphResult::of(&self.walk, &output, report.as_deref()),
            Err(error) => Err(self.failed(error, report.as_deref())),
        }
    }

    /// The visits and routes so far.
    ///
    /// # Errors
    ///
    /// [`GraphError::Run`] if no report can be made, for example because the run was removed.
    pub async fn trace(&self) -> Result<Trace, GraphError> {
        let report = self.run.report_so_far().await?;
        Ok(Trace::of(&self.walk.graph, &report))
    }

    /// The run so far, explained: for each node the route that led there, or each route that did not, with its condition
    /// and the values that it saw; and for what the run waits.
    ///
    /// # Errors
    ///
    /// [`GraphError::Run`] if no report can be made, for example because the run was removed.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_graph::{Document, GraphRun, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let document = Document::parse("
    /// graph: refund
    /// nodes:
    ///   check: {value: '${ input.cents }', next: [{when: input.cents > 10000, to: ask}, {to: end}]}
    ///   ask: {human: {ask: Refund?}}
    /// ", "refund.yaml")?;
    /// let engine = Engine::builder().workflows(document.bind(&Registry::new())?).build()?;
    /// let run = GraphRun::start(&engine, "refund", json!({"cents": 500})).await?;
    /// run.outcome().await?;
    /// assert!(run.explain().await?.to_string().contains("input.cents = 500"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self) -> Result<Explanation, GraphError> {
        let report = self.run.report_so_far().await?;
        Ok(Explanation::of(&self.walk.graph, &report, self.run.now()))
    }

    /// The graph with the run laid over it: visits and routes that were taken.
    ///
    /// # Errors
    ///
    /// [`GraphError::Run`] if no report can be made, for example because the run was removed.
    pub async fn draw(&self) -> Result<Drawing, GraphError> {
        Ok(draw_run(&self.walk.graph, &self.trace().await?))
    }

    fn failed(&self, error: RunError, report: Option<&workflow_core::report::RunReport>) -> GraphError {
        GraphError::Failed(Box::new(GraphFailure::of(&self.walk, error, report)))
    }

    /// Pauses the run: no visit begins until [`unpause`](Self::unpause), also after a restart.
    ///
    /// # Errors
    ///
    /// [`GraphError::Send`], for example for a run that has ended. `Pause::Now` needs a store.
    pub async fn pause(&self, how: Pause) -> Result<(), GraphError> {
        Ok(self.run.pause(how).await?)
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// [`GraphError::Send`], for example for a run that has ended.
    pub async fn unpause(&self) -> Result<(), GraphError> {
        Ok(self.run.unpause().await?)
    }

    /// Cancels the run. Its results and its trace stay readable.
    ///
    /// # Errors
    ///
    /// [`GraphError::Send`], for example for a run that has ended.
    pub async fn cancel(&self, reason: impl Into<Arc<str>>) -> Result<(), GraphError> {
        Ok(self.run.cancel(reason).await?)
    }
}

impl std::fmt::Debug for GraphRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GraphRun").field(&self.run).finish()
    }
}

/// Runs graphs as children of a typed step.
///
/// ```
/// use serde_json::{Value, json};
/// use workflow_core::prelude::*;
/// use workflow_graph::{Document, Registry, RunGraph};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeted(Value);
///
/// struct Greeter;
///
/// #[workflow]
/// impl Greeter {
///     #[step]
///     async fn greet(&self, greet: &Greet, children: Children) -> Result<Greeted, StepError> {
///         Ok(Greeted(children.run_graph("greeting", json!({"name": greet.name})).await?))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "graph: greeting\nnodes: {greet: {value: 'Hello, ${ input.name }!'}}\n";
/// let document = Document::parse(text, "greeting.yaml")?;
/// let engine = Engine::builder().workflow(Greeter).workflows(document.bind(&Registry::new())?).build()?;
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// assert_eq!(run.outcome().await?, Greeted("Hello, Ada!".into()));
/// # Ok(())
/// # }
/// ```
pub trait RunGraph {
    /// Runs a graph as an awaited child, and returns its output.
    ///
    /// The child ends with an error if it makes as many visits as its document allows.
    fn run_graph<'a>(
        &'a self,
        graph: &'a str,
        input: impl Serialize + Send + 'a,
    ) -> BoxFuture<'a, Result<Value, GraphError>>;
}

impl RunGraph for workflow_core::Children {
    fn run_graph<'a>(
        &'a self,
        graph: &'a str,
        input: impl Serialize + Send + 'a,
    ) -> BoxFuture<'a, Result<Value, GraphError>> {
        let input = serde_json::to_value(input);
        Box::pin(async move {
            let input = input.map_err(|error| GraphError::Unfit {
                graph: graph.into(),
                fields: vec![UnfitField::whole(&error)],
            })?;
            let begin = Begin { input, ..Begin::default() };
            let ended = self.run_json(graph, names::INPUT, begin, RunOptions::new()).await?;
            GraphResult::output_of(graph, &ended)
        })
    }
}
