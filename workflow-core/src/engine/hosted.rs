//! The workflows of an engine as data, for front ends: their tables, events, configurations and drawings.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Engine;
use crate::draw::Graph;
use crate::event::Roles;
use crate::run::Host;
use crate::runtime_workflow::Steps;
use crate::table::{EventForm, RecordedTable};

/// A workflow that an engine hosts, as data for front ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostedWorkflow {
    /// The name in this engine.
    pub name: Arc<str>,
    /// The description: the doc comment of the workflow.
    #[serde(default)]
    pub description: Arc<str>,
    /// The table as journals store it.
    pub table: RecordedTable,
    /// The drawing.
    pub graph: Graph,
    /// The event types that its steps take and emit, in the order of the table.
    pub events: Vec<HostedEvent>,
    /// The configurations that its steps take, each once, in the order of the table.
    pub configs: Vec<HostedConfig>,
}

/// An event type of a hosted workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostedEvent {
    /// The wire name.
    pub name: Arc<str>,
    /// Its roles.
    pub roles: Roles,
    /// The version of its serialised form, from 1.
    pub version: u32,
    /// The JSON schema of its data, of a reply event that of the reply: see
    /// [`EventType::json_schema`](crate::signature::EventType::json_schema).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A type of configuration that steps of a hosted workflow take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostedConfig {
    /// The full path of the Rust type, as journals store it.
    pub name: Arc<str>,
    /// The JSON schema: see [`ConfigType::json_schema`](crate::signature::ConfigType::json_schema).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Engine {
    /// The workflows of this engine as data, sorted by name.
    ///
    /// Makes drawings and schemas anew at each call: O(tables).
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    ///
    /// #[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema, Event)]
    /// #[event(start)]
    /// struct Greet { name: String }
    ///
    /// struct Greeter;
    ///
    /// #[workflow]
    /// impl Greeter {
    ///     #[step]
    ///     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(greet.name.clone()) }
    /// }
    ///
    /// # fn main() -> Result<(), workflow_core::BuildError> {
    /// let engine = Engine::builder().workflow(Greeter).build()?;
    /// let greeter = &engine.hosted()[0];
    /// assert_eq!(&*greeter.name, "Greeter");
    /// let start = greeter.events.iter().find(|event| event.roles.is_start()).unwrap();
    /// assert_eq!(start.schema.as_ref().unwrap()["required"], serde_json::json!(["name"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hosted(&self) -> Vec<HostedWorkflow> {
        self.inner.hosts.all().map(|host| HostedWorkflow::of(host)).collect()
    }

    /// The steps of the [run-time workflow](crate::RuntimeWorkflow) of this name, if they are of type `S`.
    ///
    /// A crate that builds run-time workflows finds its own again with it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use futures::future::BoxFuture;
    /// use workflow_core::prelude::*;
    /// use workflow_core::signature::{Emitted, Roles, StepCall};
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepIndex};
    /// use workflow_core::{RuntimeWorkflow, Steps};
    ///
    /// struct Said(&'static str);
    ///
    /// impl Steps for Said {
    ///     fn call(self: Arc<Self>, _: StepIndex, mut call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
    ///         Box::pin(async move {
    ///             call.emit("Text", serde_json::json!(self.0))?;
    ///             call.commit(())
    ///         })
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = DependencyTable::builder("say")
    ///     .event(EventDef::new("Say", Roles::NONE.start()))
    ///     .event(EventDef::new("Text", Roles::NONE.stop()))
    ///     .step(StepDef::new("say").input(InputDef::one("Say")).output(OutputDef::event("Text")))
    ///     .build()?;
    /// let engine = Engine::builder().workflows([RuntimeWorkflow::new(table, Said("hello"))]).build()?;
    /// assert_eq!(engine.steps_of::<Said>("say").unwrap().0, "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn steps_of<S: Steps>(&self, workflow: &str) -> Option<Arc<S>> {
        let steps = self.inner.hosts.get(workflow)?.table.edges.steps.clone()?;
        steps.downcast().ok()
    }
}

impl HostedWorkflow {
    fn of(host: &Host) -> Self {
        let table = &host.table;
        let events = table.declared().map(|(index, row)| HostedEvent {
            name: Arc::clone(&row.name),
            roles: row.roles,
            version: row.version,
            schema: table.form(index).and_then(EventForm::schema),
        });
        let mut configs: Vec<HostedConfig> = Vec::new();
        for config in table.configs() {
            if configs.iter().all(|known| *known.name != *config.type_name()) {
                configs.push(HostedConfig { name: config.type_name().into(), schema: config.json_schema() });
            }
        }
        Self {
            name: Arc::clone(&table.name),
            description: Arc::clone(&table.description),
            table: table.recorded().clone(),
            graph: table.graph(),
            events: events.collect(),
            configs,
        }
    }
}
