//! Asks the sources of a run's configuration: before its first batch, and on a resume for what no journal has (S68).

use std::any::TypeId;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::{Map, Value};

use super::Inner;
use super::first_record::Beginning;
use super::load::ends_with_run_ended;
use crate::config::{ConfigError, ConfigRequest, ConfigType, SourceLayer, Sources, layered};
use crate::id::RunId;
use crate::outcome::{ResumeError, StartError};
use crate::run::{Host, RunLayer, RunOptions, Start};
use crate::store::Record;
use crate::table::StepRow;

/// The secret fields of a run's configurations, by their types.
pub(super) type Secrets = BTreeMap<TypeId, Value>;

/// The values that the sources of its configurations give a run which an engine takes up.
#[derive(Default)]
pub(super) struct FromSources {
    /// The values that no journal has.
    pub(super) secrets: Secrets,
    /// The layers that a queued run's journal is to have, with those of its start, by the names of their types. Empty for
    /// any other run.
    pub(super) layers: BTreeMap<String, Value>,
}

/// Why a source gave no layer.
pub(super) enum NoLayer {
    Config(ConfigError),
    ShutDown,
}

impl Inner {
    /// Whether a source has to be asked before this start.
    pub(super) fn asks_sources(&self, start: &Start, options: &RunOptions) -> bool {
        if !self.hosts.have_sources() {
            return false;
        }
        let host = self.hosts.host_of(start, options.workflow.as_ref());
        host.is_ok_and(|host| self.hosts.sources(host).next().is_some())
    }

    /// The options with the layers of the sources below the run's own.
    pub(super) async fn with_sources(
        &self,
        start: &Start,
        mut options: RunOptions,
    ) -> Result<RunOptions, StartError> {
        if !self.asks_sources(start, &options) {
            return Ok(options);
        }
        let host = self.hosts.host_of(start, options.workflow.as_ref())?;
        // What can refuse the start comes first.
        options.check()?;
        options.checked_origin()?;
        // The sources are asked for this run, so its id is chosen before.
        let id = options.id.get_or_insert_with(RunId::generate);
        if self.runs.has(id) {
            return Err(StartError::DuplicateRun { run: id.clone() });
        }
        let mut secrets = Secrets::new();
        for (config, sources) in self.hosts.sources(host) {
            let id = config.type_id();
            let own =
                options.configs.remove(&id).map(|own| own.layer).transpose().map_err(StartError::Config)?;
            let SourceLayer { open, secret } = self.ask(host, config, sources, &options).await?;
            let layer = layered(open, own);
            options.configs.extend(layer.map(|layer| (id, RunLayer::of(config, layer))));
            secrets.extend(secret.map(|secret| (id, secret)));
        }
        Ok(options.with_secrets(secrets))
    }

    /// The secret fields of a run that is about to be resumed: its journal has everything else. `None` if no step of the
    /// run reads a configuration any more: the run has ended, or is to be cancelled and has no clean-up steps.
    pub(super) async fn secrets_of(
        &self,
        id: &RunId,
        records: &[Record],
        is_cancelled: bool,
    ) -> Result<Option<FromSources>, ResumeError> {
        let beginning = Beginning::of(id, records)?;
        let host = self.hosts.named(id, beginning.workflow)?;
        let executes = !is_cancelled || host.table.steps.iter().any(StepRow::cleans_up);
        if ends_with_run_ended(records) || !executes {
            return Ok(None);
        }
        let mut given = FromSources::default();
        if !self.hosts.have_secrets() {
            return Ok(Some(given));
        }
        let options = beginning.asked_options(id, &host);
        for (config, sources) in self.hosts.sources(&host).filter(|(_, sources)| sources.has_secrets()) {
            // An engine that ends cancels its runs, and waits for that.
            let asked = if is_cancelled {
                sources.ask(&request(&host, config, &options)).await.map_err(ResumeError::Config)?
            } else {
                self.ask(&host, config, sources, &options).await?
            };
            // The journal may have an earlier layer of the source, which no error quotes either.
            let recorded = beginning.configs().contains_key(config.type_name());
            let secret = asked.secret.or_else(|| recorded.then(|| Value::Object(Map::new())));
            given.secrets.extend(secret.map(|secret| (config.type_id(), secret)));
        }
        Ok(Some(given))
    }

    /// Asks the sources, unless the engine ends meanwhile.
    pub(super) async fn ask(
        &self,
        host: &Host,
        config: ConfigType,
        sources: &Sources,
        options: &RunOptions,
    ) -> Result<SourceLayer, NoLayer> {
        let request = request(host, config, options);
        match select(pin!(sources.ask(&request)), pin!(self.ending.begins())).await {
            Either::Left((asked, _)) => asked.map_err(NoLayer::Config),
            Either::Right(_) => Err(NoLayer::ShutDown),
        }
    }
}

fn request(host: &Host, config: ConfigType, options: &RunOptions) -> ConfigRequest {
    ConfigRequest {
        run: options.id.clone().unwrap_or_else(RunId::generate),
        workflow: Arc::clone(&host.table.name),
        thread: options.thread.clone(),
        metadata: options.metadata.clone(),
        config: config.type_name(),
    }
}

impl From<NoLayer> for StartError {
    fn from(none: NoLayer) -> Self {
        match none {
            NoLayer::Config(error) => Self::Config(error),
            NoLayer::ShutDown => Self::ShutDown,
        }
    }
}

impl From<NoLayer> for ResumeError {
    fn from(none: NoLayer) -> Self {
        match none {
            NoLayer::Config(error) => Self::Config(error),
            NoLayer::ShutDown => Self::ShutDown,
        }
    }
}
