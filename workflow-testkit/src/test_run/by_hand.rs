//! Going on by hand with a run that waits: what the test does to it is done on the scenario's thread, one after the
//! other, so that nothing depends on how the test's thread and that one take turns.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::{ExternalEvent, OpenRequest, Request, RequestId, RunStatus, SendError, Workflow};

use super::TestRun;
use crate::script::Act;

impl<W: Workflow> TestRun<W> {
    /// What could be replied to when the run was last settled, oldest first.
    pub fn requests(&self) -> &[OpenRequest] {
        &self.settled.open
    }

    /// Sends an event to a run that waits, and comes back when it is in the log. Nothing else goes on before the next
    /// such call, or [`settled`](Self::settled); so what is sent one after the other arrives at the same time.
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
        self.act(Box::new(move |run| run.send(event))).await
    }

    /// Replies to an open request of a run that waits, which [`requests`](Self::requests) lists; else as
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

    /// Cancels a run that waits, and comes back when it has ended; [`settled`](Self::settled) takes in how.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run had ended before.
    pub async fn cancel(&mut self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        let reason = reason.into();
        self.act(Box::new(move |run| Box::pin(run.cancel(reason)))).await
    }

    /// Lets so much virtual time pass for a run that waits, and then waits until it is [`settled`](Self::settled); says
    /// how it stands.
    ///
    /// What is due in that time happens at its time, the last moment included: timers fire and requests expire in their
    /// order, steps that run for it go on, and the script sends and replies. What was done by hand before comes first. A
    /// step that is still at work when the time has passed is waited for, so that more time may pass. If the run ends, no
    /// time passes after that, and for a run that has ended none does.
    ///
    /// A scenario that does not go on [until it waits](crate::ScenarioOf::until_it_waits) has let pass by itself what
    /// there was to wait for. There only the time changes at which comes what is done by hand next.
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
    /// As [`Start`](crate::Start), if the run does not end, and if it is more time than a clock can show.
    pub async fn advance(&mut self, time: Duration) -> RunStatus {
        self.settle_after(time).await
    }

    async fn act(&mut self, act: Act<W>) -> Result<(), SendError> {
        match &mut self.stage {
            Some(stage) if self.ended.is_none() => stage.act(act).await,
            // It says that the run has ended.
            _ => act(&self.handle).await,
        }
    }
}
