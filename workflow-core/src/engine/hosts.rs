//! The workflows that an engine hosts, with the configuration of their parameters.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use crate::config::ConfigSet;
use crate::id::RunId;
use crate::outcome::{ResumeError, StartError};
use crate::run::{Host, RunOptions, Start};
use crate::table::EventIndex;

/// Finds the host of a workflow, by its type or by its name.
pub(super) struct Hosts {
    by_type: HashMap<TypeId, Arc<Host>>,
    configs: ConfigSet,
}

impl Hosts {
    pub(super) fn new(hosts: impl Iterator<Item = Host>, configs: ConfigSet) -> Self {
        Self { by_type: hosts.map(|host| (host.id, Arc::new(host))).collect(), configs }
    }

    /// The host of the workflow to start, and the index of its start event.
    pub(super) fn of(&self, start: &Start) -> Result<(Arc<Host>, EventIndex), StartError> {
        let unknown = || StartError::UnknownWorkflow { workflow: start.workflow };
        let host = Arc::clone(self.by_type.get(&start.workflow_type).ok_or_else(unknown)?);
        let event_type = start.event.event_type().type_id();
        let index = *host.table.by_type.get(&event_type).ok_or_else(unknown)?;
        Ok((host, index))
    }

    /// Whether a workflow of this name is hosted.
    pub(super) fn has(&self, workflow: &str) -> bool {
        self.names().any(|name| *name == *workflow)
    }

    /// The host of the workflow that a journal names.
    pub(super) fn named(&self, run: &RunId, workflow: &Arc<str>) -> Result<Arc<Host>, ResumeError> {
        let host = self.by_type.values().find(|host| host.table.name == *workflow);
        let unknown = || ResumeError::UnknownWorkflow { run: run.clone(), workflow: Arc::clone(workflow) };
        host.cloned().ok_or_else(unknown)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_type.values().map(|host| host.table.name())
    }

    /// Every configuration that the workflow's parameters declare, checked into its type.
    pub(super) fn configs(
        &self,
        host: &Host,
        options: &RunOptions,
    ) -> Result<HashMap<TypeId, Arc<dyn Any + Send + Sync>>, StartError> {
        let resolved = host.table.configs().map(|config| {
            let layer = options.configs.get(&config.type_id()).map(Result::as_ref).transpose();
            let layer = layer.map_err(|error| StartError::Config(error.clone()))?;
            let value = self.configs.resolve_for(&config, layer).map_err(StartError::Config)?;
            Ok((config.type_id(), value))
        });
        resolved.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Greet, Greeter, Manners, greeter};
    use super::*;
    use crate::event::AnyEvent;

    fn hosts() -> Hosts {
        Hosts::new([greeter()].into_iter(), ConfigSet::default())
    }

    fn start(workflow_type: TypeId, event: AnyEvent) -> Start {
        Start { workflow: "Greeter", workflow_type, event }
    }

    #[test]
    fn a_start_finds_its_workflow_by_type_and_its_event() {
        let hosts = hosts();
        let (host, index) = hosts.of(&start(TypeId::of::<Greeter>(), AnyEvent::new(Greet))).unwrap();
        assert_eq!(&*host.table.event(index).name, "Greet");
        let other_workflow = hosts.of(&start(TypeId::of::<u8>(), AnyEvent::new(Greet)));
        assert!(matches!(other_workflow, Err(StartError::UnknownWorkflow { workflow: "Greeter" })));
    }

    #[test]
    fn a_journal_finds_its_workflow_by_name() {
        let hosts = hosts();
        let named = |name: &str| hosts.named(&"a".into(), &name.into());
        assert_eq!(named("Greeter").unwrap().table.name(), "Greeter");
        assert!(matches!(named("Farewell"), Err(ResumeError::UnknownWorkflow { .. })));
        assert!(hosts.has("Greeter") && !hosts.has("Farewell"));
    }

    #[test]
    fn a_run_gets_every_configuration_of_its_workflow_with_its_own_layer() {
        let (hosts, host) = (hosts(), greeter());
        let options = RunOptions::new().config::<Manners>(serde_json::json!({ "polite": true }));
        for (options, polite) in [(RunOptions::new(), false), (options, true)] {
            let configs = hosts.configs(&host, &options).unwrap();
            let manners = Arc::clone(&configs[&TypeId::of::<Manners>()]).downcast::<Manners>().unwrap();
            assert_eq!(*manners, Manners { polite });
        }
        let wrong = RunOptions::new().config::<Manners>(serde_json::json!({ "polite": 1 }));
        assert!(matches!(hosts.configs(&host, &wrong), Err(StartError::Config(_))));
    }
}
