//! Outputs of run-time steps: JSON in the form of an event, a fan-out, a timer or a request that expires (S57).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::fan_out::ItemType;
use super::{Emitted, EmittedItem, FanOut, OpenedFanOut, SetTimer, Timer};
use crate::event::{AnyEvent, JsonEvent, JsonType, When};

/// What a step of a run-time workflow emits of one event type, as JSON.
///
/// [`StepCall::emit`](crate::signature::StepCall::emit) takes it. A [`Value`], a [`FanOut`] and a [`Timer`] become one with
/// `into()`.
#[derive(Debug)]
#[non_exhaustive]
pub enum JsonOutput {
    /// An event.
    Event(Value),
    /// A branch per item.
    FanOut(FanOut<Value>),
    /// An event that enters the log later.
    Timer(Timer<Value>),
    /// A request that expires after this time, counted from the step's end. The table declares its
    /// [`expiry_of`](crate::table::EventDef::expiry_of).
    Expiring(Value, Duration),
}

impl From<Value> for JsonOutput {
    fn from(event: Value) -> Self {
        Self::Event(event)
    }
}

impl From<FanOut<Value>> for JsonOutput {
    fn from(fan_out: FanOut<Value>) -> Self {
        Self::FanOut(fan_out)
    }
}

impl From<Timer<Value>> for JsonOutput {
    fn from(timer: Timer<Value>) -> Self {
        Self::Timer(timer)
    }
}

/// The form of an output: how its event enters the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputForm {
    /// At the end of the execution.
    Event,
    /// As the items of a fan-out.
    FanOut,
    /// When a timer fires.
    Timer,
    /// At the end of the execution, as a request that expires.
    Expiring,
}

impl fmt::Display for OutputForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event => "an event",
            Self::FanOut => "a fan-out",
            Self::Timer => "a timer",
            Self::Expiring => "a request that expires",
        })
    }
}

/// The declared types of an output.
#[derive(Debug)]
pub(crate) struct JsonOutputTypes {
    pub(crate) event: Arc<JsonType>,
    /// Of a request that expires: its expiry.
    pub(crate) expired: Option<Arc<JsonType>>,
}

impl JsonOutput {
    pub(crate) fn form(&self) -> OutputForm {
        match self {
            Self::Event(_) => OutputForm::Event,
            Self::FanOut(_) => OutputForm::FanOut,
            Self::Timer(_) => OutputForm::Timer,
            Self::Expiring(..) => OutputForm::Expiring,
        }
    }

    /// Puts the output into the batch of its execution.
    pub(crate) fn emit(self, types: &JsonOutputTypes, into: &mut Emitted) {
        let event = |value| AnyEvent::from(JsonEvent::new(&types.event, value));
        into.put(match self {
            Self::Event(value) => EmittedItem::Event(event(value)),
            Self::FanOut(fan_out) => {
                let item_type = ItemType::Json(Arc::clone(&types.event));
                EmittedItem::FanOut(Box::new(OpenedFanOut::of(fan_out, item_type, event)))
            }
            Self::Timer(timer) => EmittedItem::Timer(Box::new(timer.set(event))),
            Self::Expiring(value, time) => {
                let request = event(value.clone());
                let expired = types.expired.as_ref().unwrap_or(&types.event);
                let expired = JsonEvent::new(expired, value).to(Some(&request)).into();
                let timer = SetTimer { when: When::After(time), event: expired };
                EmittedItem::Expiring(Box::new((request, timer)))
            }
        });
    }
}
