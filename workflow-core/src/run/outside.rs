//! Events from outside as JSON: finding the event type by its name, and reading the JSON as a value of it (S56).

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::error::{UnfitJson, UnfitValue};
use crate::event::{AnyEvent, EventKind, JsonEvent, JsonForm, JsonType};
use crate::id::Seq;
use crate::json::Misfit;
use crate::outcome::{SendError, StartError};
use crate::table::{DependencyTable, EventForm, EventIndex, EventRow};

/// The way by which events enter a run from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    Start,
    Send,
}

/// Why JSON from outside is no event of the workflow.
#[derive(Debug)]
pub(crate) enum Refused {
    Unknown { event: Arc<str>, fitting: Vec<Arc<str>> },
    Unfit { event: Arc<str>, path: String, problem: UnfitValue },
}

impl Entrance {
    /// Whether the event may enter, and a step reads it or it ends the run.
    fn admits(self, row: &EventRow) -> bool {
        let may_enter = match self {
            Self::Start => row.roles.is_start(),
            Self::Send => row.roles.is_external(),
        };
        may_enter && (!row.topics.is_empty() || row.roles.is_stop())
    }

    /// Reads an event that the table takes from outside. `data` is the result of serialising it.
    pub(crate) fn read(
        self,
        table: &DependencyTable,
        event: &str,
        data: Result<Value, Misfit>,
    ) -> Result<(EventIndex, AnyEvent), Refused> {
        let index = table.event_named(event).filter(|index| self.admits(table.event(*index)));
        let index = index.ok_or_else(|| self.unknown(table, event))?;
        let read = data.and_then(|data| Ok(read(table, index, data)?)).map_err(|misfit| {
            let (path, problem) = misfit.into_unfit();
            Refused::Unfit { event: Arc::clone(&table.event(index).name), path, problem }
        })?;
        Ok((index, read))
    }

    fn unknown(self, table: &DependencyTable, event: &str) -> Refused {
        let fitting = table.events.iter().filter(|row| self.admits(row));
        let (event, fitting) = unknown_event(event, fitting.map(|row| &row.name));
        Refused::Unknown { event, fitting }
    }
}

/// The name of an event that may not enter, and those of the ones that may, sorted.
pub(super) fn unknown_event<'a>(
    event: &str,
    fitting: impl Iterator<Item = &'a Arc<str>>,
) -> (Arc<str>, Vec<Arc<str>>) {
    let mut fitting: Vec<_> = fitting.cloned().collect();
    fitting.sort_unstable();
    (event.into(), fitting)
}

/// Reads the event with its own reader, or as from a journal if it does not derive `Event`. JSON without a Rust type stays
/// as it is, once the workflow has accepted it.
fn read(table: &DependencyTable, index: EventIndex, data: Value) -> Result<AnyEvent, UnfitJson> {
    match table.form(index) {
        Some(EventForm::Json(known)) => {
            table.edges.accept(&known.name, &data)?;
            Ok(JsonEvent::new(known, data).into())
        }
        Some(EventForm::Rust(JsonForm { read: Some(read), .. })) => read(data),
        _ => {
            let row = table.event(index);
            let reader = row.reader().ok_or_else(|| UnfitJson::whole("nothing reads it"))?;
            let data = to_raw_value(&data).map_err(UnfitJson::whole)?;
            reader.read(row.version, &data, None).map_err(UnfitJson::whole)
        }
    }
}

/// Reads the reply to an open request.
pub(super) fn read_reply(
    table: &DependencyTable,
    request: Seq,
    asked: &AnyEvent,
    reply: Value,
) -> Result<AnyEvent, SendError> {
    let read = match asked.kind() {
        EventKind::Rust(_) => read_typed_reply(asked, reply),
        EventKind::Json(known) => read_json_reply(table, known, asked, reply),
    };
    read.map_err(|UnfitJson { path, problem }| {
        let asked = asked.name().to_owned();
        SendError::UnfitReply { request, asked, path, problem }
    })
}

fn read_typed_reply(asked: &AnyEvent, reply: Value) -> Result<AnyEvent, UnfitJson> {
    let no_form = "its type does not derive `Event`, so no reply to it can be read";
    let form = asked.reply_form().ok_or_else(|| UnfitJson::whole(no_form))?;
    (form.read)(asked, reply)
}

fn read_json_reply(
    table: &DependencyTable,
    known: &JsonType,
    asked: &AnyEvent,
    reply: Value,
) -> Result<AnyEvent, UnfitJson> {
    let index = table.event_named(&known.name).and_then(|request| table.event(request).reply);
    let of = index.and_then(|reply| table.json_type(reply));
    let of = of.ok_or_else(|| UnfitJson::whole("the workflow declares no reply to it"))?;
    table.edges.accept(&of.name, &reply)?;
    Ok(JsonEvent::new(of, reply).to(Some(asked)).into())
}

impl From<Refused> for StartError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unknown { event, fitting } => Self::UnknownEvent { event, fitting },
            Refused::Unfit { event, path, problem } => Self::Unfit { event, path, problem },
        }
    }
}

impl From<Refused> for SendError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unknown { event, fitting } => Self::UnknownEvent { event, fitting },
            Refused::Unfit { event, path, problem } => Self::Unfit { event, path, problem },
        }
    }
}
