//! Events on their way into a store that serialises: the check before they enter a run, and the JSON that the
//! check made.
//!
//! Each event is serialised once. The check needs its JSON, and so do its records: one record for most
//! events, two for the event of a timer. So the checked event carries the JSON until the last record is made.
//! The log needs the value alone, and shares it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Serialize, Serializer};
use serde_json::from_str;
use serde_json::value::{RawValue, to_raw_value};

use super::{AnyEvent, Erased, EventKind, ReplyForm, Serialisable, read_back};
use crate::error::{EventTooLarge, StepError, UnfitEvent, UnfitValue};
use crate::json::{self, Difference, Misfit, ToJson, failing_at};
use crate::panics::{caught, discard, release};

/// The requirements on an event that enters a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventCheck {
    /// The most bytes of its JSON; `None` for no bound.
    pub(crate) most_bytes: Option<usize>,
    /// Whether the event must have JSON that can be read back.
    pub(crate) serialises: bool,
}

/// Why an event may not enter a run.
#[derive(Debug)]
pub(crate) enum Inadmissible {
    TooLarge(EventTooLarge),
    Unfit(UnfitEvent),
}

impl EventCheck {
    /// Checks the event. For a store that serialises, the event carries its JSON from then on, until
    /// `records` records are made.
    #[inline]
    pub(crate) fn check(self, event: &mut AnyEvent, records: u8) -> Result<(), Inadmissible> {
        if self.serialises || self.most_bytes.is_some() { self.check_json(event, records) } else { Ok(()) }
    }

    #[inline(never)]
    fn check_json(self, event: &mut AnyEvent, records: u8) -> Result<(), Inadmissible> {
        if !self.serialises {
            return event.check_size(self.most_bytes);
        }
        let entry = event.erased();
        let json = self.json(event.name(), entry, &|text| read_back(entry, text))?;
        *event = event.with_json(json, records);
        Ok(())
    }

    /// Checks an event that has the same JSON as another one, which was checked.
    pub(crate) fn check_same(
        self,
        event: &mut AnyEvent,
        as_of: &AnyEvent,
        records: u8,
    ) -> Result<(), Inadmissible> {
        let Some(json) = as_of.serialised().and_then(Serialised::json) else {
            return self.check(event, records);
        };
        *event = event.with_json(json, records);
        Ok(())
    }

    /// Checks a value before it becomes an event. Returns its JSON, if the store needs it.
    pub(crate) fn check_value<T: Serialisable>(
        self,
        event: &str,
        value: &T,
    ) -> Result<Option<Box<RawValue>>, Inadmissible> {
        let read = |text: &str| from_str::<T>(text).map(discard);
        self.serialises.then(|| self.json(event, value, &read)).transpose()
    }

    /// The JSON of a value, which its own type reads back: a journal has that very text, and its reader must not fail.
    fn json(
        self,
        event: &str,
        value: &(impl ToJson + ?Sized),
        read: &dyn Fn(&str) -> Result<(), serde_json::Error>,
    ) -> Result<Box<RawValue>, Inadmissible> {
        let limit = self.most_bytes.unwrap_or(usize::MAX);
        let too_large = |bytes| Inadmissible::TooLarge(EventTooLarge { event: event.into(), bytes, limit });
        let unfit = |path, problem| Inadmissible::Unfit(UnfitEvent { event: event.into(), path, problem });
        let json = json::fit(value, limit).map_err(|misfit| match misfit {
            Misfit::TooLarge { bytes } => too_large(bytes),
            Misfit::Unfit { path, problem } => unfit(path, problem),
        })?;
        let json = to_raw_value(&json)
            .map_err(|source| unfit(String::new(), UnfitValue::Serialize { source: Arc::new(source) }))?;
        // Punctuation was not counted.
        let bytes = json.get().len();
        if bytes > limit {
            return Err(too_large(bytes));
        }
        let (path, problem) = match caught(|| read(json.get())) {
            Ok(Ok(())) => return Ok(json),
            Ok(Err(error)) => (failing_at(json.get(), |start| fails(read, start)), text_of(&error)),
            Err(panic) => (String::new(), panic.to_string()),
        };
        Err(unfit(path, UnfitValue::NotReadBack { problem }))
    }
}

/// Whether more than the end of the text is missing.
fn fails(read: &dyn Fn(&str) -> Result<(), serde_json::Error>, text: &str) -> bool {
    caught(|| read(text)).map_or(true, |read| read.is_err_and(|error| !error.is_eof()))
}

/// The text of the error without its place in a text that nobody sees.
fn text_of(error: &serde_json::Error) -> String {
    let (text, at) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    text.strip_suffix(&at).unwrap_or(&text).to_owned()
}

/// An unfit event is a permanent failure, also where an engine classifies errors without a class otherwise: a
/// retry would be refused too.
impl From<Inadmissible> for StepError {
    fn from(inadmissible: Inadmissible) -> Self {
        match inadmissible {
            Inadmissible::TooLarge(error) => error.into(),
            Inadmissible::Unfit(error) => Self::permanent(error),
        }
    }
}

/// An event and its JSON, as a store that serialises gets it.
#[derive(Debug)]
pub(crate) struct WithJson {
    pub(crate) event: AnyEvent,
    pub(crate) json: Box<RawValue>,
}

/// Replaces an event until its records are made, so that the library serialises it once. The log shares the
/// replacement and needs no JSON, which is dropped with the last record.
pub(super) struct Serialised {
    event: AnyEvent,
    pending: Mutex<Pending>,
}

/// The JSON, and the number of records that still need it.
struct Pending {
    made: Option<Arc<WithJson>>,
    records: u8,
}

impl Serialised {
    /// Takes the JSON for one record; `None` if all records are made.
    fn take(&self) -> Option<Arc<WithJson>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.records = pending.records.saturating_sub(1);
        if pending.records == 0 { pending.made.take() } else { pending.made.clone() }
    }

    fn made(&self) -> Option<Arc<WithJson>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).made.clone()
    }

    fn json(&self) -> Option<Box<RawValue>> {
        self.made().map(|made| made.json.clone())
    }
}

impl Erased for Serialised {
    fn kind(&self) -> EventKind<'_> {
        self.event.kind()
    }

    /// Drops only this wrapper. The value is dropped by the events that share it.
    fn release(self: Arc<Self>) {
        release(self);
    }

    fn reply_form(&self) -> Option<&'static ReplyForm> {
        self.event.reply_form()
    }
}

impl Serialize for Serialised {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.event.serialize(serializer)
    }
}

impl AnyEvent {
    /// The same event with JSON for `records` records.
    pub(crate) fn with_json(&self, json: Box<RawValue>, records: u8) -> Self {
        let event = self.serialised().map_or_else(|| self.clone(), |serialised| serialised.event.clone());
        Self::made(Arc::new(WithJson { event, json }), records)
    }

    /// An event from its JSON, for `records` records.
    pub(crate) fn made(made: Arc<WithJson>, records: u8) -> Self {
        let event = made.event.clone();
        let pending = Mutex::new(Pending { made: Some(made), records });
        Self::from_erased(Arc::new(Serialised { event, pending }))
    }

    /// Takes the JSON for the next record; `None` if it was not made or is used up.
    pub(crate) fn take_json(&self) -> Option<Arc<WithJson>> {
        self.serialised()?.take()
    }

    /// The size of the JSON in bytes, if it is there.
    pub(super) fn json_bytes(&self) -> Option<usize> {
        self.serialised()?.made().map(|made| made.json.get().len())
    }

    /// The value, without its JSON.
    pub(super) fn erased(&self) -> &dyn Erased {
        self.serialised().map_or(&**self.payload(), |serialised| &**serialised.event.payload())
    }

    /// The first difference between the values of both events.
    pub(crate) fn difference(&self, other: &Self) -> Option<Difference> {
        json::difference(self.erased(), other.erased())
    }

    fn serialised(&self) -> Option<&Serialised> {
        let payload: &(dyn Any + Send + Sync) = &**self.payload();
        payload.downcast_ref()
    }
}

/// The value behind a [`Serialised`] wrapper, or the value itself.
#[cold]
pub(super) fn value_of(payload: &(dyn Any + Send + Sync)) -> &(dyn Any + Send + Sync) {
    payload.downcast_ref::<Serialised>().map_or(payload, |serialised| &**serialised.event.payload())
}

/// The shared value behind a [`Serialised`] wrapper, or the value itself.
#[cold]
pub(super) fn shared_value_of(payload: Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
    match payload.downcast_ref::<Serialised>() {
        Some(serialised) => Arc::clone(serialised.event.payload()) as _,
        None => payload,
    }
}

impl fmt::Debug for Serialised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Serialised").field(&self.event).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::prelude::*;
    use crate::store::RecordedEvent;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    /// Panics when it is dropped.
    #[derive(Debug, Serialize, Deserialize, Event)]
    #[event(crate = crate)]
    struct Bomb(u8);

    impl Drop for Bomb {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::SeqCst);
            panic!("it goes off");
        }
    }

    fn checked(number: u8) -> AnyEvent {
        let mut event = AnyEvent::new(Bomb(number));
        let check = EventCheck { most_bytes: None, serialises: true };
        check.check(&mut event, 2).unwrap();
        assert!(event.downcast_ref::<Bomb>().is_some() && event.json_bytes() == Some(1));
        event
    }

    /// The number of events that were dropped, without those that the checks read back.
    fn dropped(checked: usize) -> usize {
        DROPPED.load(Ordering::SeqCst) - checked
    }

    // S27
    #[test]
    fn serialised_events_are_dropped_one_by_one_though_each_panics() {
        let events = || Vec::from([1, 2, 3].map(checked));
        drop(events());
        assert_eq!(dropped(3), 3);
        // Their records share the events; dropping the last reference is contained.
        let events_and_records = || {
            let events = events();
            let records: Vec<_> = events.iter().cloned().map(RecordedEvent::new).collect();
            (events, records)
        };
        let (events, records) = events_and_records();
        drop(events);
        assert_eq!(dropped(6), 3);
        drop(records);
        assert_eq!(dropped(6), 6);
        let panicking = caught(|| {
            let _both = events_and_records();
            panic!("while they are there");
        });
        assert!(panicking.is_err());
        assert_eq!(dropped(9), 9);
    }
}
