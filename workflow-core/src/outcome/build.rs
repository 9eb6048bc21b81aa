//! The problems of an engine that cannot be built.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::ConfigError;
use crate::error::chain;
use crate::spec::TableError;
use crate::text::{enumerated, quoted};

/// The problems of an engine that cannot be built: all of them, not just the first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BuildError {
    /// The problems.
    pub problems: Vec<BuildProblem>,
}

/// One problem of an engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProblem {
    /// A workflow's table has problems.
    #[error(transparent)]
    Table(TableError),
    /// A configuration is missing or does not fit its type.
    #[error("workflow `{workflow}` needs a configuration: {}; give it with `.config::<…>(…)`", chain(.source))]
    Config {
        /// The workflow that needs it.
        workflow: String,
        /// The problem.
        r#source: ConfigError,
    },
    /// A layer of a configuration cannot be read.
    #[error("a configuration layer cannot be used: {}", chain(.0))]
    ConfigLayer(ConfigError),
    /// Two workflows have one name.
    #[error("two workflows are named `{workflow}`: host one under another name with `.workflow_named(…)`")]
    DuplicateWorkflow {
        /// The name.
        workflow: String,
    },
    /// A run-time workflow has the table of a typed one, whose events are Rust types.
    #[error(
        "the run-time workflow `{workflow}` declares `{event}` with a Rust type: build its table with `DependencyTable::builder`"
    )]
    TypedEvent {
        /// The workflow.
        workflow: String,
        /// The first such event.
        event: String,
    },
    /// There is a limit for the runs of a workflow that the engine does not host.
    #[error(
        "`max_concurrent_runs_of` or `max_concurrent_runs_named` is set for workflow `{workflow}`, which the engine does not host: add it with `.workflow(…)`"
    )]
    LimitOfUnknown {
        /// The workflow.
        workflow: Arc<str>,
    },
    /// A step has a named limit that is not set.
    #[error(
        "step `{step}` of workflow `{workflow}` has the limit `{limit}`, which is not set: set it with `.limit(\"{limit}\", …)`; {}",
        set_limits(.known)
    )]
    UnknownLimit {
        /// The workflow.
        workflow: String,
        /// The step.
        step: String,
        /// The name of the limit.
        limit: String,
        /// The names of the limits that are set, sorted.
        known: Vec<String>,
    },
    /// The engine has a lease, and no store for it.
    #[error("a lease is set, and there is no store to take it from: give one with `.store(…)`")]
    LeaseWithoutStore,
    /// The engine is to keep ended runs, for no time or none of them.
    #[error(
        "`.keep_ended({time:?}, {at_most})` would keep no run: give a time and a number above zero, or leave it out"
    )]
    KeepsNothing {
        /// The time.
        time: Duration,
        /// The most runs.
        at_most: usize,
    },
    /// A workflow takes a context, and the engine's store of journals hands out no store of contexts.
    #[error(
        "step `{step}` of workflow `{workflow}` takes a `{input}`, which a restart would lose: `.store(…)` keeps journals and hands out no contexts, and `.contexts(…)` is not set; store them with `.contexts(store)`, or lose them with `.contexts(MemoryContexts::forgetful())`"
    )]
    ContextsWithoutStore {
        /// The workflow.
        workflow: String,
        /// Its first step that takes a context, itself or by its precondition.
        step: String,
        /// The name of the parameter, such as `RunContext`.
        input: String,
    },
    /// The lease is too short for its renewals.
    #[error(
        "a lease of {lease:?} is too short to be renewed in time: give `.lease(…)` at least {shortest:?}"
    )]
    LeaseTooShort {
        /// Its duration.
        lease: Duration,
        /// The shortest duration.
        shortest: Duration,
    },
    /// The runs of a workflow, or of the engine, may not be active at all.
    #[error(
        "{}, so each run would end before it began: give it a time, or leave it out",
        .workflow.as_ref().map_or_else(
            || "`.run_timeout(…)` is 0".to_owned(),
            |workflow| format!("the timeout of workflow `{workflow}` is 0")
        )
    )]
    NoTime {
        /// The run-time workflow with its own [timeout](crate::RuntimeWorkflow::with_timeout); `None` for
        /// [`run_timeout`](crate::EngineBuilder::run_timeout).
        workflow: Option<String>,
    },
    /// Two event types have one wire name.
    #[error(
        "two event types are named `{event}`: `{}` and `{}`; give one another name with `#[event(name = \"…\")]`",
        types[0], types[1]
    )]
    DuplicateEvent {
        /// The wire name.
        event: String,
        /// The Rust types.
        types: [String; 2],
    },
}

/// The limits that are set, at the end of a sentence.
fn set_limits(known: &[String]) -> String {
    match &quoted(known)[..] {
        [] => "no limit is set".to_owned(),
        [only] => format!("{only} is set"),
        all => format!("{} are set", enumerated(all, "and")),
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine cannot be built:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

/// Without a source: the text has the problems with their causes.
impl Error for BuildError {}
