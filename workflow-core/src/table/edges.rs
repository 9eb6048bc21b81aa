//! The part of a table for the outside of its runs: how JSON becomes an event, and what a run-time workflow adds.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::draft::{EventDraft, TableDraft};
use super::{DependencyTable, EventIndex};
use crate::error::UnfitJson;
use crate::event::{EventKind, JsonForm, JsonType};
use crate::json;
use crate::panics::{Panicked, caught};
use crate::retry::RetryPolicy;

/// Checks JSON from outside, by the name of its event.
pub(crate) type Accept = dyn Fn(&str, &Value) -> Result<(), UnfitJson> + Send + Sync;

/// The edges of a table.
#[derive(Default)]
pub(crate) struct Edges {
    /// The forms of the declared events.
    forms: Vec<EventForm>,
    /// The retry policies of the steps that have one, by row; of a table built at run time.
    pub(crate) retries: Vec<(usize, RetryPolicy)>,
    /// Checks JSON from outside; of a run-time workflow.
    pub(crate) accept: Option<Arc<Accept>>,
    /// The value that runs the steps; of a run-time workflow.
    pub(crate) steps: Option<Arc<dyn Any + Send + Sync>>,
    /// The most active time of a run; of a run-time workflow.
    pub(crate) timeout: Option<Duration>,
}

/// The form of a declared event.
#[derive(Debug, Clone)]
pub(crate) enum EventForm {
    Rust(JsonForm),
    Json(Arc<JsonType>),
}

impl EventForm {
    /// The JSON schema of the event's data.
    pub(crate) fn schema(&self) -> Option<Value> {
        match self {
            Self::Rust(form) => json::schema(form.schema),
            Self::Json(known) => known.schema.clone(),
        }
    }
}

impl Edges {
    pub(super) fn of(draft: &TableDraft) -> Self {
        let form = |event: &EventDraft| match event.rust {
            Some(_) => EventForm::Rust(event.json),
            None => EventForm::Json(Arc::new(JsonType {
                name: Arc::clone(&event.name),
                roles: event.roles,
                version: event.version,
                schema: event.schema.clone(),
                reply_schema: event.reply.and_then(|reply| draft.events[reply].schema.clone()),
            })),
        };
        let own = draft.steps.iter().enumerate();
        Self {
            forms: draft.events.iter().map(form).collect(),
            retries: own.filter_map(|(row, step)| Some((row, step.retry.clone()?))).collect(),
            accept: None,
            steps: None,
            timeout: None,
        }
    }

    /// Checks JSON from outside. A panic of the check is a problem too.
    pub(crate) fn accept(&self, event: &str, data: &Value) -> Result<(), UnfitJson> {
        let Some(accept) = &self.accept else { return Ok(()) };
        caught(|| accept(event, data)).unwrap_or_else(|Panicked { message }| {
            Err(UnfitJson::whole(format_args!("`accept` panicked: {message}")))
        })
    }
}

impl fmt::Debug for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edges").field("forms", &self.forms).finish_non_exhaustive()
    }
}

impl DependencyTable {
    /// The form of a declared event; `None` for an event of the library's own.
    pub(crate) fn form(&self, index: EventIndex) -> Option<&EventForm> {
        self.edges.forms.get(index.get())
    }

    /// The type of a declared event that is JSON.
    pub(crate) fn json_type(&self, index: EventIndex) -> Option<&Arc<JsonType>> {
        match self.form(index)? {
            EventForm::Rust(_) => None,
            EventForm::Json(known) => Some(known),
        }
    }

    /// Whether the type is that of the row.
    #[inline]
    pub(crate) fn is_of(&self, index: EventIndex, kind: EventKind<'_>) -> bool {
        match kind {
            EventKind::Rust(known) => self.event(index).type_id == Some(known.type_id),
            EventKind::Json(known) => self.json_type(index).is_some_and(|own| Arc::ptr_eq(own, known)),
        }
    }
}
