//! One run of a session at a time: numbers of runs, and the order of messages in a process.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::store::{RunQuery, StoreError};
use workflow_core::{ResumeError, RunId, RunStatus, SendError, StartError};

use super::cache::{self, Waiting};
use super::head::{self, Head};
use super::{Session, SessionError, WhenBusy};
use crate::agent::{Agent, Prompt, SessionPlace};
use crate::run::AgentRun;

/// The time between looks at a run that another engine drives.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the next run of the session, or does with the message as the session says.
pub(super) async fn say(session: &Session, prompt: Prompt) -> Result<AgentRun, SessionError> {
    let when_busy = match session.when_busy {
        // Only a text steers: everything else would be lost.
        WhenBusy::Steer if prompt != Prompt::new(Arc::clone(&prompt.text)) => WhenBusy::Wait,
        when_busy => when_busy,
    };
    let context = session.context();
    // A message that steers passes those that wait for the run's end.
    if when_busy == WhenBusy::Steer {
        let last = started(session).await?;
        if let Some(open) = open(session, last).await?
            && let Some(run) = steer(session, &open, &prompt).await?
        {
            return Ok(run);
        }
    }
    let busy = || SessionError::Busy { session: Arc::clone(&session.id) };
    let queue = cache::queue(session);
    let _waiting = Waiting::enter(&queue).ok_or_else(busy)?;
    let _turn = match when_busy {
        WhenBusy::Refuse => queue.turn.try_lock().map_err(|_| busy())?,
        WhenBusy::Wait | WhenBusy::Steer => queue.turn.lock().await,
    };
    loop {
        let last = started(session).await?;
        let status = match last {
            0 => None,
            _ => status(session, &session.run_id(last)).await?,
        };
        if status.is_some_and(|status| !status.is_ended()) {
            let open = session.run_id(last);
            match when_busy {
                WhenBusy::Wait => ended(session, &open).await?,
                WhenBusy::Refuse => return Err(busy()),
                WhenBusy::Steer => match steer(session, &open, &prompt).await? {
                    Some(run) => return Ok(run),
                    None => ended(session, &open).await?,
                },
            }
            continue;
        }
        let number = last.saturating_add(1);
        // The run before may have been cancelled between the entry of its exchange and its end.
        let takes_back = status.is_some_and(|status| status != RunStatus::Completed);
        let place = SessionPlace { takes_back, ..session.place(number) };
        let mut prompt = prompt.clone();
        prompt.session = Some(place.clone());
        let starting = session.engine.start_with::<Agent>(prompt, session.options(number));
        match starting.await {
            Ok(run) => {
                // The run notes its start too, so a failure here must not look as if nothing was said.
                if let Err(error) = head::start(&context, &place).await {
                    tracing::warn!(run = %run.id(), %error, "the start of a session's run was not noted");
                }
                return Ok(AgentRun::new(session.engine.clone(), session.agent.clone(), run));
            }
            // Another process said something at the same time.
            Err(StartError::DuplicateRun { .. } | StartError::Elsewhere { .. }) => {
                let head = head::start(&context, &place).await?;
                if head.started < number {
                    return Err(busy());
                }
            }
            Err(StartError::UnknownWorkflow { .. }) => {
                return Err(SessionError::NotHosted { agent: session.agent.name().into() });
            }
            Err(error) => return Err(SessionError::Start(error)),
        }
    }
}

/// Sends the text to an open run; `None` if that has ended meanwhile, or another engine drives it.
async fn steer(session: &Session, open: &RunId, prompt: &Prompt) -> Result<Option<AgentRun>, SessionError> {
    let run = match attach(session, open).await {
        Ok(run) => run,
        Err(SessionError::Resume(
            ResumeError::Elsewhere { .. } | ResumeError::Contended { .. } | ResumeError::UnknownRun { .. },
        )) => return Ok(None),
        Err(error) => return Err(error),
    };
    match run.steer(Arc::clone(&prompt.text)).await {
        Ok(()) => Ok(Some(run)),
        Err(SendError::Ended { .. } | SendError::Stopped { .. }) => Ok(None),
        Err(error) => Err(SessionError::Send(error)),
    }
}

/// The number of the run that started last. A session that is being copied is busy.
async fn started(session: &Session) -> Result<u64, SessionError> {
    Ok(head::read_complete(&session.context(), &session.key()).await?.started)
}

/// The head without an exchange whose run has not completed yet, and may be cancelled.
pub(super) async fn settled(session: &Session) -> Result<Head, SessionError> {
    let head = head::read_complete(&session.context(), &session.key()).await?;
    match status(session, &session.run_id(head.last)).await? {
        Some(status) if !status.is_ended() => Ok(head.without_last()),
        Some(status) if status != RunStatus::Completed => Ok(head.before_last()),
        _ => Ok(head),
    }
}

/// The run of this number, if it has not ended.
async fn open(session: &Session, number: u64) -> Result<Option<RunId>, SessionError> {
    if number == 0 {
        return Ok(None);
    }
    let id = session.run_id(number);
    Ok(is_open(session, &id).await?.then_some(id))
}

async fn is_open(session: &Session, id: &RunId) -> Result<bool, SessionError> {
    Ok(status(session, id).await?.is_some_and(|status| !status.is_ended()))
}

/// The status of a run. `None`: nobody knows the run, or how it ended.
async fn status(session: &Session, id: &RunId) -> Result<Option<RunStatus>, SessionError> {
    let here = session.engine.find(id).map(|run| run.status());
    if here.is_some_and(|status| !status.is_ended() || status == RunStatus::Completed) {
        return Ok(here);
    }
    match session.engine.runs(&RunQuery::new().run(id.clone())).await {
        // A run whose store failed has ended here, and is open there.
        Ok(found) => Ok(found
            .first()
            .map(|found| found.run.status)
            .filter(|status| here.is_none() || status.is_ended())),
        // Without a store, a run that the engine does not have has ended.
        Err(StoreError::NoStore) => Ok(here),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the end of a run, wherever it is driven.
async fn ended(session: &Session, id: &RunId) -> Result<(), SessionError> {
    loop {
        match session.engine.attach::<Agent>(id.clone()).await {
            // However it ends, the next message has its turn, unless its store failed and it stays open.
            Ok(run) => drop(run.outcome().await),
            Err(ResumeError::UnknownRun { .. }) => return Ok(()),
            // Its engine may end, and then this one takes the run.
            Err(ResumeError::Elsewhere { .. } | ResumeError::Contended { .. }) => {}
            Err(error) => return Err(SessionError::Resume(error)),
        }
        if !is_open(session, id).await? {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn attach(session: &Session, id: &RunId) -> Result<AgentRun, SessionError> {
    let run = session.engine.attach::<Agent>(id.clone()).await.map_err(SessionError::Resume)?;
    Ok(AgentRun::new(session.engine.clone(), session.agent.clone(), run))
}

/// The run that works or waits now.
pub(super) async fn open_run(session: &Session) -> Result<Option<AgentRun>, SessionError> {
    let last = started(session).await?;
    // A process that died between a start and its note left one more.
    for number in [last.saturating_add(1), last] {
        if let Some(id) = open(session, number).await? {
            return attach(session, &id).await.map(Some);
        }
    }
    Ok(None)
}
