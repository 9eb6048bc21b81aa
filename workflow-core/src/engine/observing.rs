//! Observers that join a running engine.

use std::sync::Arc;

use super::Engine;
use crate::observe::{Observer, ObserverGuard};

impl Engine {
    /// Adds an observer that sees all runs of the engine from now on, until the guard is dropped.
    ///
    /// It is for viewers that come and go, such as the connections of an inspector. An observer that the engine needs as long
    /// as it lives goes to [`EngineBuilder::observer`](crate::EngineBuilder::observer). A
    /// [`TracingObserver`](crate::observe::TracingObserver) makes spans for runs that begin while it is there.
    ///
    /// ```
    /// use std::sync::mpsc::{Sender, channel};
    /// use workflow_core::observe::{Observation, Observed, Observer};
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet { name: String }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(format!("Hello, {}!", greet.name)) }
    /// # }
    ///
    /// struct Ends(Sender<String>);
    ///
    /// impl Observer for Ends {
    ///     fn observe(&self, observation: &Observation) {
    ///         if let Observed::RunEnded { status } = &observation.what {
    ///             let _ = self.0.send(format!("{} {status}", observation.run));
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).build()?;
    /// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
    /// let (sender, ends) = channel();
    /// let guard = engine.observe(Ends(sender));
    /// run.outcome().await?;
    /// assert_eq!(ends.recv()?, format!("{} completed", run.id()));
    ///
    /// drop(guard);
    /// engine.start::<Greeter>(Greet { name: "Bob".into() }).await?.outcome().await?;
    /// assert!(ends.recv().is_err(), "the observer has left");
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self, observer: impl Observer) -> ObserverGuard {
        self.inner.common.observers.added.add(Arc::new(observer))
    }
}
