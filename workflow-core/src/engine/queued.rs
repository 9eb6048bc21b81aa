//! The first look at a queued run: the checks of its start that only an engine can make (S65, S68).

use std::sync::Arc;

use super::Inner;
use super::config_sources::{FromSources, NoLayer, Secrets};
use super::first_record::Beginning;
use super::load::{Loaded, ends_with_run_ended};
use crate::config::{ConfigError, SourceLayer, layered};
use crate::error::{UnfitJson, UnfitValue};
use crate::id::{RunId, RunStatus};
use crate::outcome::{ResumeError, StartError};
use crate::run::{Entrance, Host, RunLayer, failed, is_queued};
use crate::store::{Position, Record, RecordedEvent, StoreError};
use crate::table::DependencyTable;
use crate::text::bounded;

/// The result of the first look at a queued run.
pub(super) enum FirstLook {
    /// Its start fits.
    Fits(FromSources),
    /// Its start does not fit.
    Unfit(StartError),
}

impl Inner {
    /// Checks the start event of a queued run, asks the sources of its configurations, and checks these. `None` for any other
    /// run, for one that a process has driven, and for one that has ended.
    pub(super) async fn look_at_queued(
        &self,
        id: &RunId,
        records: &[Record],
    ) -> Result<Option<FirstLook>, ResumeError> {
        if !is_queued(records) || ends_with_run_ended(records) {
            return Ok(None);
        }
        let beginning = Beginning::of(id, records)?;
        let host = self.hosts.named(id, beginning.workflow)?;
        // Of another table the resume says what differs.
        let is_of_table = beginning.table().fingerprint() == host.table.recorded().fingerprint();
        if is_of_table && let Err(error) = self.check_start(&host, start_event(records)) {
            return Ok(Some(FirstLook::Unfit(error)));
        }
        let mut options = beginning.asked_options(id, &host);
        let (mut layers, mut secrets) = (beginning.configs().clone(), Secrets::new());
        for (config, sources) in self.hosts.sources(&host) {
            let SourceLayer { open, secret } = match self.ask(&host, config, sources, &options).await {
                Err(NoLayer::Config(error)) if !matches!(error, ConfigError::Unavailable { .. }) => {
                    return Ok(Some(FirstLook::Unfit(StartError::Config(error))));
                }
                asked => asked?,
            };
            let own = layers.remove(config.type_name());
            if let Some(layer) = layered(open, own) {
                layers.insert(config.type_name().to_owned(), layer.clone());
                options.configs.insert(config.type_id(), RunLayer::of(config, layer));
            }
            secrets.extend(secret.map(|secret| (config.type_id(), secret)));
        }
        Ok(Some(match self.hosts.configs(&host, &options.with_secrets(secrets.clone())) {
            Ok(_) => FirstLook::Fits(FromSources { secrets, layers }),
            Err(error) => FirstLook::Unfit(error),
        }))
    }

    /// Whether a start with this event would be refused.
    fn check_start(&self, host: &Host, event: Option<&RecordedEvent>) -> Result<(), StartError> {
        let Some(recorded) = event else { return Ok(()) };
        let table = &host.table;
        let readable = table.event_named(recorded.name()).map(|index| host.read(recorded, index, None));
        let Some(Ok(mut event)) = readable else {
            // The same reading again, for the place of the mistake.
            let data = recorded.to_json().map_err(|error| UnfitJson::whole(error).into());
            let read = Entrance::Start.read(table, recorded.name(), data);
            let why = readable.and_then(Result::err).map(|error| error.to_string()).unwrap_or_default();
            return Err(read.err().map_or_else(
                || StartError::Unfit {
                    event: recorded.name().into(),
                    path: String::new(),
                    problem: UnfitValue::Read { problem: why },
                },
                StartError::from,
            ));
        };
        Ok(self.common.event_check().check(&mut event, 1)?)
    }

    /// Ends a queued run whose start does not fit. `Moved` if another engine was faster.
    pub(super) async fn fail_queued(
        &self,
        id: &RunId,
        records: &[Record],
        why: &StartError,
    ) -> Result<Option<Loaded>, ResumeError> {
        let at = self.common.clock.now();
        let Some(write) = failed(records, bounded(why.to_string()), at) else { return Ok(None) };
        let end = Position::default().after(records.len());
        let store = self.journals.store().map_err(ResumeError::Store)?;
        match store.append(id, end, write).await {
            Ok(()) => Ok(None),
            Err(StoreError::Conflict { .. }) => Ok(Some(Loaded::Moved(end))),
            Err(error) => Err(ResumeError::Store(error)),
        }
    }
}

/// The event with which a queued run starts.
fn start_event(records: &[Record]) -> Option<&RecordedEvent> {
    records.iter().find_map(|record| match record {
        Record::EventLogged { event, .. } => Some(event),
        _ => None,
    })
}

/// Whether the host's types read the output of a run, if it has completed.
pub(super) fn is_output_readable(host: &Host, records: &[Record]) -> bool {
    if !matches!(records.last(), Some(Record::RunEnded { status: RunStatus::Completed, .. })) {
        return true;
    }
    let mut events = records.iter().rev().filter_map(|record| match record {
        Record::EventLogged { event, .. } => Some(event),
        _ => None,
    });
    let is_read = |event: &RecordedEvent| {
        let index = host.table.event_named(event.name())?;
        (host.table.event(index).roles.is_stop() && host.read(event, index, None).is_ok()).then_some(())
    };
    events.next().and_then(is_read).is_some()
}

/// The host to read the journal of a run that has ended with. It has the last table of the journal, so that a later table
/// changes no report of it. Where the types of the present workflow cannot read an event, it stays JSON: so a
/// queued run ends whose start does not fit.
pub(super) fn reader_of(host: &Arc<Host>, records: &[Record]) -> Arc<Host> {
    let is_readable = |event: &RecordedEvent| {
        host.table.event_named(event.name()).is_none_or(|index| host.read(event, index, None).is_ok())
    };
    let last = records.iter().rev().find_map(Record::table);
    let shape = match last.filter(|last| last.fingerprint() != host.table.recorded().fingerprint()) {
        Some(last) => last.shape().ok(),
        None if start_event(records).is_none_or(is_readable) => None,
        None => Some(host.table.shape()),
    };
    let table = shape.and_then(|shape| DependencyTable::from_shape(&shape).ok());
    table.map_or_else(|| Arc::clone(host), |table| Arc::new(Host::of_journal(Arc::new(table), host)))
}
