//! The engine as a parameter of a step: `engine: &Engine`.

use std::any::Any;
use std::sync::Arc;

use super::{Engine, Inner};
use crate::error::StepError;
use crate::input::{Injectables, Slot, StepCall, StepInput};
use crate::run::AnyRun;
use crate::spec::InputSpec;

impl Engine {
    fn of(parts: Arc<dyn Any + Send + Sync>) -> Result<Self, StepError> {
        let inner = parts.downcast::<Inner>();
        let inner = inner.map_err(|_| StepError::permanent("an engine of another kind drives the run"))?;
        Ok(Self { inner })
    }
}

impl StepCall {
    /// The engine that drives the run.
    ///
    /// # Errors
    /// If no engine drives the run any more.
    pub fn engine(&self) -> Result<Engine, StepError> {
        Engine::of(self.engine_parts()?)
    }
}

impl Injectables {
    /// The engine that drives the run.
    ///
    /// # Errors
    /// If no engine drives the run any more.
    pub fn engine(&self) -> Result<Engine, StepError> {
        Engine::of(self.engine_parts()?)
    }
}

impl AnyRun {
    /// The engine of the run, which also has its children. `None` if the program has dropped the engine, and nothing of it
    /// runs any more: a handle does not keep its engine.
    pub fn engine(&self) -> Option<Engine> {
        Engine::of(self.engine_parts()?).ok()
    }
}

impl Slot<'_> {
    /// The engine that drives the run.
    ///
    /// # Errors
    /// If no engine drives the run any more.
    pub fn engine(&self) -> Result<Engine, StepError> {
        Engine::of(self.engine_parts()?)
    }
}

/// The engine that drives the run: a step starts and addresses runs that are no children of its own.
///
/// A step may be repeated after a restart, so give a run that it starts an id, and take
/// [`StartError::DuplicateRun`](crate::StartError::DuplicateRun) as success. [`Children`](crate::Children) do that by
/// themselves, and end with their parent. A step that waits for another run keeps its permits meanwhile.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::{RunOptions, StartError};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { number: u32 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Shipment { order: u32 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Accepted;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Shipped;
/// # struct Shipping;
/// # #[workflow]
/// # impl Shipping {
/// #     #[step]
/// #     async fn ship(&self, _shipment: &Shipment) -> Shipped { Shipped }
/// # }
/// struct Orders;
///
/// #[workflow]
/// impl Orders {
///     #[step]
///     async fn accept(&self, order: &Order, engine: &Engine) -> Result<Accepted, StepError> {
///         let options = RunOptions::new().id(format!("shipment-{}", order.number));
///         match engine.start_with::<Shipping>(Shipment { order: order.number }, options).await {
///             Ok(_) | Err(StartError::DuplicateRun { .. }) => Ok(Accepted),
///             Err(error) => Err(StepError::transient(error)),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Orders).workflow(Shipping).build()?;
/// let run = engine.start::<Orders>(Order { number: 17 }).await?;
/// assert_eq!(run.outcome().await?, Accepted);
/// # Ok(())
/// # }
/// ```
impl StepInput for Engine {
    const SPEC: InputSpec = InputSpec::provided("Engine");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Self::of(slot.engine_parts()?)
    }
}

impl StepInput for &Engine {
    const SPEC: InputSpec = InputSpec::provided("Engine");
    type Item<'a> = &'a Engine;

    fn fill(slot: Slot<'_>) -> Result<&Engine, StepError> {
        let engine = Engine::of(slot.engine_parts()?)?;
        Ok(slot.keep(engine))
    }
}
