//! The options that every driven run has, and its engine: from the document and the script to the end of the drive.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use workflow_core::errors::chain;
use workflow_core::{Engine, RuntimeWorkflow};
use workflow_graph::{Document, GraphRun, Registry, ScriptedExecutor};
use workflow_redb::RedbStore;

use crate::ask::{Ask, Lines};
use crate::drive::{Driven, Driver, Given};
use crate::interrupts::Interrupts;
use crate::problem::Problem;
use crate::progress::{Progress, Watch};
use crate::unbound;

/// The time that an engine may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The options of a driven run.
#[derive(Debug, Args)]
pub(crate) struct With {
    /// A script that stands in for functions, tools, agents, commands and people.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Let the document run programs of this machine.
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Whether questions are asked here.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    ask: Ask,
}

/// A document that is ready to run.
pub(crate) struct Session {
    workflows: Vec<RuntimeWorkflow>,
    script: Option<ScriptedExecutor>,
    asks_here: bool,
}

/// A run that was driven.
pub(crate) struct Done {
    pub(crate) run: GraphRun,
    pub(crate) driven: Driven,
}

impl With {
    /// Binds the document.
    pub(crate) fn bind(&self, document: &Document) -> Result<Session, Problem> {
        let script = self.script.as_ref().map(ScriptedExecutor::load).transpose()?;
        let mut registry = Registry::new();
        if let Some(script) = &script {
            registry = registry.script(script.clone());
        }
        if self.allow_commands {
            registry = registry.allow_commands();
        }
        let workflows = document.bind(&registry);
        let workflows = workflows.map_err(|error| unbound::told(error, document, script.is_some()))?;
        Ok(Session { workflows, script, asks_here: self.ask.is_here() })
    }

    /// Whether lines of the standard input are answers in any case.
    pub(crate) fn always_asks(&self) -> bool {
        self.ask == Ask::Always
    }
}

impl Session {
    /// The session, whose standard input is used up.
    pub(crate) fn without_lines(self) -> Self {
        Self { asks_here: false, ..self }
    }

    /// Begins a run, and drives it. `given` answers a question of it first.
    pub(crate) fn drive(
        self,
        store: Option<&Path>,
        begin: impl AsyncFnOnce(&Engine) -> Result<GraphRun, Problem>,
        given: Option<Given>,
    ) -> Result<Done, Problem> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Problem::Failed(format!("no thread can run: {error}")))?;
        let done = runtime.block_on(self.driven(store, begin, given));
        // A thread that still blocks ends with the program.
        runtime.shutdown_background();
        done
    }

    async fn driven(
        self,
        store: Option<&Path>,
        begin: impl AsyncFnOnce(&Engine) -> Result<GraphRun, Problem>,
        given: Option<Given>,
    ) -> Result<Done, Problem> {
        let progress = Arc::new(Progress::new());
        let (watch, settled) = Watch::new(Arc::clone(&progress));
        // The program ends with its run, so a waiting run need not make room.
        let mut builder = Engine::builder().observer(watch).unload_waiting_after(Duration::MAX);
        builder = builder.workflows(self.workflows);
        if let Some(store) = store {
            builder = builder.store(RedbStore::open(store)?);
        }
        let engine = builder.build().map_err(|error| Problem::Wrong(chain(&error)))?;
        let interrupts = Interrupts::new()?;
        let lines = if self.asks_here { Some(Lines::read()?) } else { None };
        let mut driver = Driver {
            script: self.script.as_ref(),
            progress: &progress,
            settled,
            interrupts,
            lines,
            is_stored: store.is_some(),
        };
        let done = async {
            let run = begin(&engine).await?;
            let end = driver.drive(&run, given).await?;
            Ok(Done { run, driven: end })
        };
        let done = done.await;
        // Observers see the rest before the end is printed.
        engine.shut_down(PATIENCE).await;
        progress.hold(true);
        done
    }
}
