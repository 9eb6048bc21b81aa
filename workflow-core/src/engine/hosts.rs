//! The workflows that an engine hosts, with the configuration of their parameters.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::de::Error as _;

use crate::config::{ConfigError, ConfigOrigin, ConfigSet, ConfigType, Sources, layered};
use crate::event::AnyEvent;
use crate::id::RunId;
use crate::outcome::{ResumeError, StartError};
use crate::run::{Entrance, Host, RunOptions, Start};
use crate::table::EventIndex;
use crate::workflow::Workflow;

/// Finds the host of a workflow, by its type or by its name.
pub(super) struct Hosts {
    by_name: BTreeMap<Arc<str>, Arc<Host>>,
    /// The host of a type when no name is given: the one with the type's own name, or the only one. Other types are
    /// absent.
    by_type: FxHashMap<TypeId, Arc<Host>>,
    configs: ConfigSet,
}

/// A workflow type, as a caller names it by a type parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedType {
    id: TypeId,
    /// The type's own name.
    name: &'static str,
}

impl AskedType {
    pub(super) fn of<W: Workflow>() -> Self {
        Self { id: TypeId::of::<W>(), name: W::TABLE.name() }
    }
}

impl Hosts {
    pub(super) fn new(hosts: impl Iterator<Item = Host>, configs: ConfigSet) -> Self {
        let by_name: BTreeMap<_, _> =
            hosts.map(|host| (Arc::clone(&host.table.name), Arc::new(host))).collect();
        let mut of_type: HashMap<TypeId, Vec<&Arc<Host>>> = HashMap::new();
        for host in by_name.values() {
            of_type.entry(host.id).or_default().push(host);
        }
        let default_of = |(id, hosts): (TypeId, Vec<&Arc<Host>>)| {
            let own = hosts.iter().find(|host| *host.table.name == *host.type_name);
            let default = own.or(hosts.first().filter(|_| hosts.len() == 1))?;
            Some((id, Arc::clone(default)))
        };
        Self { by_type: of_type.into_iter().filter_map(default_of).collect(), by_name, configs }
    }

    /// The host of the workflow to start, its start event and the index of that. `named` is the name that the options
    /// give.
    pub(super) fn of(
        &self,
        start: Start,
        named: Option<&Arc<str>>,
    ) -> Result<(Arc<Host>, EventIndex, AnyEvent), StartError> {
        let host = Arc::clone(self.host_of(&start, named)?);
        let (index, event) = match start {
            Start::Typed { event, .. } => {
                let index = event.event_type().and_then(|known| host.table.by_type.get(&known.type_id()));
                let unknown = || StartError::UnknownWorkflow { workflow: Arc::clone(&host.table.name) };
                (*index.ok_or_else(unknown)?, event)
            }
            Start::Json(start) => Entrance::Start.read(&host.table, &start.event, start.data)?,
        };
        Ok((host, index, event))
    }

    /// The host of the workflow to start.
    pub(super) fn host_of(&self, start: &Start, named: Option<&Arc<str>>) -> Result<&Arc<Host>, StartError> {
        let (workflow, workflow_type) = match start {
            Start::Typed { workflow, workflow_type, .. } => (*workflow, *workflow_type),
            Start::Json(start) => {
                let unknown = || StartError::UnknownWorkflow { workflow: Arc::clone(&start.workflow) };
                return self.by_name.get(&start.workflow).ok_or_else(unknown);
            }
        };
        let host = match named {
            None => self.by_type.get(&workflow_type),
            Some(name) => self.by_name.get(name).filter(|host| host.id == workflow_type),
        };
        host.ok_or_else(|| self.not_found(AskedType { id: workflow_type, name: workflow }, named))
    }

    /// The error of a start whose workflow is not hosted, or that several workflows fit.
    fn not_found(&self, asked: AskedType, named: Option<&Arc<str>>) -> StartError {
        if let Some(name) = named.filter(|name| !self.has(name)) {
            return StartError::UnknownWorkflow { workflow: Arc::clone(name) };
        }
        let of_type = self.by_name.values().filter(|host| host.id == asked.id);
        let fitting: Vec<_> = of_type.map(|host| Arc::clone(&host.table.name)).collect();
        if fitting.is_empty() {
            StartError::UnknownWorkflow { workflow: asked.name.into() }
        } else {
            StartError::WhichWorkflow { names: fitting }
        }
    }

    /// Whether a call that starts a child may mean the workflow that the child's journal names; else the name that it
    /// means. A workflow that is not hosted cannot be compared, and passes.
    pub(super) fn may_be(
        &self,
        workflow: &Arc<str>,
        start: &Start,
        named: Option<&Arc<str>>,
    ) -> Result<(), Arc<str>> {
        let (asked, is_it) = match (start, named, self.by_name.get(workflow)) {
            (Start::Json(start), ..) => (Arc::clone(&start.workflow), start.workflow == *workflow),
            (_, Some(name), _) => (Arc::clone(name), name == workflow),
            // The same name for another type is a fault of this program, which `host_of` reports.
            (Start::Typed { workflow, workflow_type, .. }, None, Some(host)) => {
                ((*workflow).into(), host.id == *workflow_type || *host.table.name == **workflow)
            }
            (_, None, None) => return Ok(()),
        };
        if is_it { Ok(()) } else { Err(asked) }
    }

    /// The host of this name.
    pub(super) fn get(&self, workflow: &str) -> Option<&Arc<Host>> {
        self.by_name.get(workflow)
    }

    /// Whether a workflow of this name is hosted.
    pub(super) fn has(&self, workflow: &str) -> bool {
        self.by_name.contains_key(workflow)
    }

    /// The host of the workflow that a journal names.
    pub(super) fn named(&self, run: &RunId, workflow: &Arc<str>) -> Result<Arc<Host>, ResumeError> {
        let unknown = || ResumeError::UnknownWorkflow { run: run.clone(), workflow: Arc::clone(workflow) };
        self.by_name.get(workflow).cloned().ok_or_else(unknown)
    }

    /// An error if the run's workflow is of another type than the caller asks for. Types count, and not names.
    pub(super) fn is_of(
        &self,
        run: &RunId,
        workflow: &Arc<str>,
        asked: AskedType,
    ) -> Result<(), ResumeError> {
        if self.named(run, workflow)?.id == asked.id {
            return Ok(());
        }
        let (run, workflow) = (run.clone(), Arc::clone(workflow));
        Err(ResumeError::WrongWorkflow { run, workflow, asked: asked.name.into() })
    }

    /// All hosts, sorted by name.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.by_name.values()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.values().map(|host| host.table.name())
    }

    /// The configurations of a workflow that have sources, each once.
    pub(super) fn sources<'a>(
        &'a self,
        host: &'a Host,
    ) -> impl Iterator<Item = (ConfigType, &'a Sources)> + 'a {
        let mut seen = BTreeSet::new();
        let configs = host.table.configs().filter(move |config| seen.insert(config.type_id()));
        configs.filter_map(|config| Some((config, self.configs.sources(&config)?)))
    }

    /// Whether any configuration has sources.
    pub(super) fn have_sources(&self) -> bool {
        self.configs.all_sources().next().is_some()
    }

    /// Whether a source gives any configuration secret fields.
    pub(super) fn have_secrets(&self) -> bool {
        self.configs.all_sources().any(Sources::has_secrets)
    }

    /// Every configuration that the workflow's parameters declare, checked into its type.
    pub(super) fn configs(
        &self,
        host: &Host,
        options: &RunOptions,
    ) -> Result<HashMap<TypeId, Arc<dyn Any + Send + Sync>>, StartError> {
        let resolved = host.table.configs().map(|config| {
            let layer = options.configs.get(&config.type_id()).map(|own| own.layer.as_ref()).transpose();
            let layer = layer.map_err(|error| StartError::Config(error.clone()))?;
            let with_secrets = options
                .secret(config.type_id())
                .and_then(|secret| layered(Some(secret.clone()), layer.cloned()));
            let layer = with_secrets.as_ref().or(layer);
            let value = self.configs.resolve_for(&config, layer).map_err(|error| match error {
                // The text of the problem may have a secret, also one that is not at its path, and errors enter journals and
                // logs.
                ConfigError::Invalid { type_name, path, .. }
                    if options.secret(config.type_id()).is_some() =>
                {
                    let problem =
                        "a value does not fit; the problem is not shown, since a source has secret fields";
                    let source = Arc::new(serde_json::Error::custom(problem));
                    ConfigError::Invalid { type_name, path, origin: None, source }
                }
                // The run's layer has the values of its sources too, so none of them is blamed.
                ConfigError::Invalid { type_name, path, origin: Some(ConfigOrigin::Run), source }
                    if self.configs.sources(&config).is_some() =>
                {
                    ConfigError::Invalid { type_name, path, origin: None, source }
                }
                error => error,
            });
            let value = value.map_err(StartError::Config)?;
            Ok((config.type_id(), value))
        });
        resolved.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Greet, Greeter, Manners, greeter};
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new([greeter()].into_iter(), ConfigSet::default())
    }

    fn start(workflow_type: TypeId, event: AnyEvent) -> Start {
        Start::Typed { workflow: "Greeter", workflow_type, event }
    }

    #[test]
    fn a_start_finds_its_workflow_by_type_and_its_event() {
        let hosts = hosts();
        let (host, index, _) = hosts.of(start(TypeId::of::<Greeter>(), AnyEvent::new(Greet)), None).unwrap();
        assert_eq!(&*host.table.event(index).name, "Greet");
        let other_workflow = hosts.of(start(TypeId::of::<u8>(), AnyEvent::new(Greet)), None);
        let Err(StartError::UnknownWorkflow { workflow }) = other_workflow else { panic!("it is found") };
        assert_eq!(&*workflow, "Greeter");
    }

    #[test]
    fn a_childs_workflow_that_has_another_type_now_is_not_hosted() {
        let hosts = hosts();
        let other = start(TypeId::of::<u8>(), AnyEvent::new(Greet));
        assert!(hosts.may_be(&"Greeter".into(), &other, None).is_ok(), "the name is the same");
        let found = hosts.host_of(&other, Some(&"Greeter".into()));
        assert!(matches!(found, Err(StartError::UnknownWorkflow { .. })));
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
