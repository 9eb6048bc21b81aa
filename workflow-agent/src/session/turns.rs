//! One run of a session at a time: numbers of runs, and the order of messages in a process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use workflow_core::store::{EngineId, RunQuery, StoreError};
use workflow_core::{ResumeError, RunId, SendError, StartError};

use super::{Session, SessionError, WhenBusy, exchanges};
use crate::agent::{Agent, Prompt};
use crate::run::AgentRun;

/// Messages of a session that may wait in a process.
const WAITING: usize = 64;
/// The time between looks at a run that another engine drives.
const LOOK: Duration = Duration::from_millis(500);

/// The queue of a session in this process.
#[derive(Debug, Default)]
struct Queue {
    /// The holder says something; tokio's mutex is fair, so messages are said in order.
    turn: tokio::sync::Mutex<()>,
    waiting: std::sync::atomic::AtomicUsize,
}

/// A place in the queue, until it is dropped.
struct Waiting(Arc<Queue>);

impl Waiting {
    fn enter(queue: &Arc<Queue>) -> Option<Self> {
        use std::sync::atomic::Ordering::SeqCst;
        let enter = |waiting: usize| (waiting < WAITING).then_some(waiting + 1);
        queue.waiting.fetch_update(SeqCst, SeqCst, enter).ok()?;
        Some(Self(Arc::clone(queue)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// The queue of a session in an engine. Queues that nobody uses are dropped.
fn queue(session: &Session) -> Arc<Queue> {
    type Queues = HashMap<(EngineId, RunId), Weak<Queue>>;
    static QUEUES: OnceLock<Mutex<Queues>> = OnceLock::new();
    let key = (session.engine.id().clone(), session.run_id(0));
    let mut queues = QUEUES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = queues.get(&key).and_then(Weak::upgrade) {
        return queue;
    }
    if queues.len() >= 1_024 {
        queues.retain(|_, queue| queue.strong_count() > 0);
    }
    let queue = Arc::<Queue>::default();
    queues.insert(key, Arc::downgrade(&queue));
    queue
}

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
        let last = exchanges::started(&context, &session.key()).await?;
        if let Some(open) = open(session, last).await?
            && let Some(run) = steer(session, &open, &prompt).await?
        {
            return Ok(run);
        }
    }
    let busy = || SessionError::Busy { session: Arc::clone(&session.id) };
    let queue = queue(session);
    let _waiting = Waiting::enter(&queue).ok_or_else(busy)?;
    let _turn = match when_busy {
        WhenBusy::Refuse => queue.turn.try_lock().map_err(|_| busy())?,
        WhenBusy::Wait | WhenBusy::Steer => queue.turn.lock().await,
    };
    loop {
        let last = exchanges::started(&context, &session.key()).await?;
        if let Some(open) = open(session, last).await? {
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
        let mut prompt = prompt.clone();
        prompt.session = Some(session.place(number));
        let starting = session.engine.start_with::<Agent>(prompt, session.options(number));
        match starting.await {
            Ok(run) => {
                // The run notes its start too, so a failure here must not look as if nothing was said.
                if let Err(error) = exchanges::start(&context, &session.key(), number).await {
                    tracing::warn!(run = %run.id(), %error, "the start of a session's run was not noted");
                }
                return Ok(AgentRun::new(session.engine.clone(), session.agent.clone(), run));
            }
            // Another process said something at the same time.
            Err(StartError::DuplicateRun { .. } | StartError::Elsewhere { .. }) => {
                exchanges::start(&context, &session.key(), number).await?;
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
        Err(SendError::Ended { .. }) => Ok(None),
        Err(error) => Err(SessionError::Send(error)),
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
    if let Some(run) = session.engine.find(id) {
        return Ok(!run.status().is_ended());
    }
    match session.engine.runs(&RunQuery::new().run(id.clone())).await {
        Ok(found) => Ok(found.first().is_some_and(|found| !found.run.status.is_ended())),
        // Without a store, a run that the engine does not have has ended.
        Err(StoreError::NoStore) => Ok(false),
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
    let last = exchanges::started(&session.context(), &session.key()).await?;
    // A process that died between a start and its note left one more.
    for number in [last.saturating_add(1), last] {
        if let Some(id) = open(session, number).await? {
            return attach(session, &id).await.map(Some);
        }
    }
    Ok(None)
}
