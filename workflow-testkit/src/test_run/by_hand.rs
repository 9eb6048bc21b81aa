//! Continues a waiting run by hand. Actions of the test happen on the scenario's thread, one after the other, so
//! nothing depends on the scheduling of the two threads.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use workflow_core::report::{OpenRequest, RequestId};
use workflow_core::{ExternalEvent, Request, RunStatus, SendError, Seq, Workflow};

use super::TestRun;
use crate::script::{Act, assert_taken, json_of};
use crate::subject::Tested;

impl<W: Workflow> TestRun<W> {
    /// Sends an event to a waiting run; returns once it is logged.
    ///
    /// Nothing else happens before the next such call or [`settled`](Self::settled). So consecutive sends arrive at the
    /// same virtual time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct Opened;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(external)]
    /// struct Note(u32);
    ///
    /// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Closed(u32);
    ///
    /// struct Desk;
    ///
    /// #[workflow]
    /// impl Desk {
    ///     #[step]
    ///     async fn open(&self, _: &Opened) {}
    ///
    ///     #[step]
    ///     async fn close(&self, notes: &FixedList<Note, 2>) -> Closed {
    ///         tokio::time::sleep(Duration::from_secs(60)).await;
    ///         Closed(notes.iter().map(|note| note.0).sum())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::SendError> {
    /// let mut run = Scenario::new(Desk).start(Opened).await;
    /// run.send(Note(1)).await?;
    /// run.send(Note(2)).await?;
    /// run.settled().await;
    /// run.assert_output(&Closed(3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended. An event type that no step of `W` takes does not compile.
    pub async fn send<E: ExternalEvent>(&mut self, event: E) -> Result<(), SendError> {
        assert_taken::<W, E>();
        self.act(Box::new(move |run| run.send(event))).await
    }

    /// Replies to an open request of a waiting run, from [`requests`](Self::requests); otherwise as
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// [`SendError::NotOpen`] if there is no such request or it was answered, [`SendError::WrongRequest`] if the
    /// request is not an `R`, [`SendError::Ended`] if the run has ended.
    pub async fn reply<R: Request>(
        &mut self,
        request: RequestId<R>,
        reply: R::Reply,
    ) -> Result<(), SendError> {
        self.act(Box::new(move |run| Box::pin(run.reply(request, reply)))).await
    }
}

impl<T: Tested> TestRun<T> {
    /// The open requests at the last settling, oldest first.
    pub fn requests(&self) -> &[OpenRequest] {
        &self.settled.open
    }

    /// Sends an event as JSON, by its name, to a waiting run; otherwise as [`send`](TestRun::send).
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_core::RuntimeWorkflow;
    /// use workflow_core::signature::{Roles, StepCall};
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    /// use workflow_testkit::Scenario;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = DependencyTable::builder("desk")
    ///     .event(EventDef::new("Opened", Roles::NONE.start()))
    ///     .event(EventDef::new("Note", Roles::NONE.external()))
    ///     .event(EventDef::new("Closed", Roles::NONE.stop()))
    ///     .step(
    ///         StepDef::new("close")
    ///             .input(InputDef::one("Opened"))
    ///             .input(InputDef::one("Note"))
    ///             .output(OutputDef::event("Closed")),
    ///     )
    ///     .build()?;
    /// let desk = RuntimeWorkflow::new(table, |mut call: StepCall| async move {
    ///     let note = call.input(1).json().cloned().unwrap_or_default();
    ///     call.emit("Closed", json!({ "note": note }))?;
    ///     call.commit(())
    /// });
    ///
    /// let mut run = Scenario::runtime(desk).start_json("Opened", ()).await;
    /// run.assert_waiting();
    /// run.send_json("Note", "done").await?;
    /// run.settled().await;
    /// run.assert_output(&json!({ "note": "done" }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`AnyRun::send_json`](workflow_core::AnyRun::send_json).
    pub async fn send_json(&mut self, event: &str, data: impl Serialize) -> Result<(), SendError> {
        let (event, data) = (event.to_owned(), json_of(event, data));
        self.act(Box::new(move |run| run.send_json(&event, data))).await
    }

    /// Replies with JSON to an open request, from [`requests`](Self::requests).
    ///
    /// # Errors
    /// Those of [`AnyRun::reply_json`](workflow_core::AnyRun::reply_json).
    pub async fn reply_json(&mut self, request: Seq, reply: Value) -> Result<(), SendError> {
        self.act(Box::new(move |run| Box::pin(run.reply_json(request, reply)))).await
    }

    /// Cancels a waiting run, and returns when it has ended; [`settled`](Self::settled) updates this value.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run had ended before.
    pub async fn cancel(&mut self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        let reason = reason.into();
        self.act(Box::new(move |run| Box::pin(run.cancel(reason)))).await
    }

    /// Lets virtual time pass for a waiting run, and returns its status.
    ///
    /// Then waits until the run is [`settled`](Self::settled).
    ///
    /// Actions in that time happen when due, including the last moment: timers fire and requests expire in order, their
    /// steps run, and the script sends and replies. Earlier actions by hand come first. If a step is still active at
    /// the end, this waits for it, so more time may pass. No time passes for a run that has ended.
    ///
    /// Without [`until_it_waits`](crate::ScenarioOf::until_it_waits), the time of everything the run waited for has
    /// already passed. Then this only changes the time of the next action by hand.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct OrderPlaced;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// struct Reminder;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(external)]
    /// struct Paid;
    ///
    /// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Shipped;
    ///
    /// struct Orders;
    ///
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn place(&self, _: &OrderPlaced) -> Timer<Reminder> {
    ///         Timer::after(Duration::from_hours(24), Reminder)
    ///     }
    ///
    ///     #[step]
    ///     async fn remind(&self, _: &Reminder) {}
    ///
    ///     #[step]
    ///     async fn ship(&self, _: &Paid) -> Shipped { Shipped }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::SendError> {
    /// let mut run = Scenario::new(Orders).until_it_waits().start(OrderPlaced).await;
    /// run.advance(Duration::from_hours(23)).await;
    /// run.assert_executions("remind", 0);
    /// run.advance(Duration::from_hours(1)).await;
    /// run.assert_executions("remind", 1);
    /// run.send(Paid).await?;
    /// run.settled().await;
    /// run.assert_output(&Shipped);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics as [`Start`](crate::Start) does if the run does not end, and if the time exceeds the range of the clock.
    pub async fn advance(&mut self, time: Duration) -> RunStatus {
        self.settle_after(time).await
    }

    async fn act(&mut self, act: Act) -> Result<(), SendError> {
        match &mut self.stage {
            Some(stage) if self.ended.is_none() => stage.act(act).await,
            // The error says that the run has ended.
            _ => act(self.any()).await,
        }
    }
}
