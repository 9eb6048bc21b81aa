//! Outputs of run-time steps: JSON in the form of an event, a fan-out, a timer or a request that expires (S57).

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::fan_out::ItemType;
use super::{Emitted, EmittedItem, FanOut, OpenedFanOut, SetTimer, Timer};
use crate::event::{AnyEvent, JsonData, JsonEvent, JsonType, LazyJson, When};

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
    /// An event with a Rust value, as [`typed`](Self::typed) makes it.
    Typed(TypedOutput),
}

/// The Rust value of a [typed output](JsonOutput::typed).
#[derive(Debug)]
pub struct TypedOutput(LazyJson);

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
    /// An event with this value, whose JSON is made when something first reads it.
    ///
    /// For events that the steps of the same workflow read: [`AnyEvent::typed_output`] has the value back, without any JSON,
    /// as long as the event was not read from a store. Everybody else sees the JSON. The cost is two allocations.
    ///
    /// A value that JSON cannot hold is refused as that of an event of a Rust type is: over a store that serialises, the
    /// execution that emits it fails. A store of values, such as [`MemoryStore`](crate::store::MemoryStore), takes it, and
    /// another engine cannot read the run from there.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::{AnyEvent, JsonOutput, RunOptions, RuntimeWorkflow, prelude::*};
    /// use workflow_core::signature::{Roles, StepCall};
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    ///
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Priced { cents: u64 }
    ///
    /// /// As the step emitted it, or as the store has it.
    /// fn priced(event: &AnyEvent) -> Option<Priced> {
    ///     event.typed_output().cloned().or_else(|| Priced::deserialize(event.as_json()?).ok())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = DependencyTable::builder("prices")
    ///     .event(EventDef::new("order", Roles::NONE.start()))
    ///     .event(EventDef::new("priced", Roles::NONE.stop()))
    ///     .step(StepDef::new("price").input(InputDef::one("order")).output(OutputDef::event("priced")))
    ///     .build()?;
    /// let workflow = RuntimeWorkflow::new(table, async |mut call: StepCall| {
    ///     call.emit("priced", JsonOutput::typed(Priced { cents: 900 }))?;
    ///     call.commit(())
    /// });
    /// let engine = Engine::builder().workflows([workflow]).build()?;
    /// let run = engine.start_json("prices", "order", json!({}), RunOptions::new()).await?;
    /// let ended = run.outcome_any().await?;
    /// assert_eq!(priced(&ended).map(|priced| priced.cents), Some(900));
    /// assert_eq!(ended.as_json(), Some(&json!({ "cents": 900 })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<T: Serialize + Any + Send + Sync>(value: T) -> Self {
        Self::Typed(TypedOutput(LazyJson::of(value)))
    }

    pub(crate) fn form(&self) -> OutputForm {
        match self {
            Self::Event(_) | Self::Typed(_) => OutputForm::Event,
            Self::FanOut(_) => OutputForm::FanOut,
            Self::Timer(_) => OutputForm::Timer,
            Self::Expiring(..) => OutputForm::Expiring,
        }
    }

    /// Puts the output into the batch of its execution.
    pub(crate) fn emit(self, types: &JsonOutputTypes, into: &mut Emitted) {
        let event = |value: Value| AnyEvent::from(JsonEvent::new(&types.event, value));
        into.put(match self {
            Self::Event(value) => EmittedItem::Event(event(value)),
            Self::Typed(TypedOutput(value)) => {
                EmittedItem::Event(JsonEvent::new(&types.event, JsonData::Lazy(value)).into())
            }
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
