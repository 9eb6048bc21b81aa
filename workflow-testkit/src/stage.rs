//! The thread on which one scenario runs: a runtime on virtual time, which goes on for as long as the test may send
//! something to the run.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use workflow_core::{Explanation, OpenRequest, RunHandle, RunReport, RunStatus, Workflow};

use crate::script::{GivenUp, Performance, Script};
use crate::start::Failure;

/// The test's end of a scenario's thread. Dropping it ends the thread, and a run that has not ended with it.
pub(crate) struct Stage {
    asks: mpsc::UnboundedSender<oneshot::Sender<Settled>>,
    thread: Option<JoinHandle<()>>,
}

/// How a run stands after everything was done that can be.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) status: RunStatus,
    /// Virtual time since the start.
    pub(crate) elapsed: Duration,
    /// For a run that waits, and for one that was given up, how it stood.
    pub(crate) explanation: Option<Arc<Explanation>>,
    /// For a run that waits, what it did.
    pub(crate) report: Option<Arc<RunReport>>,
    /// For a run that waits, what may be replied to.
    pub(crate) open: Vec<OpenRequest>,
    pub(crate) given_up: Option<GivenUp>,
}

impl Settled {
    /// How the run stands now that nothing in it goes on.
    pub(crate) async fn of<W: Workflow>(run: &RunHandle<W>, elapsed: Duration) -> Self {
        let status = run.status();
        let mut settled =
            Self { status, elapsed, explanation: None, report: None, open: Vec::new(), given_up: None };
        if !status.is_ended() {
            settled.explanation = run.explain().await.ok();
            settled.report = run.report_so_far().await.ok();
            settled.open = run.requests().await.unwrap_or_default();
        }
        settled
    }
}

impl Stage {
    /// Starts a run on a thread of its own.
    ///
    /// # Errors
    /// What the start says, or that there is no thread or no runtime to be had.
    pub(crate) async fn open<W: Workflow>(
        script: Script<W>,
        started: impl Future<Output = Result<RunHandle<W>, Failure>> + Send + 'static,
    ) -> Result<(Self, RunHandle<W>), Failure> {
        let (asks, asked) = mpsc::unbounded_channel();
        let (tell, told) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("scenario of {}", W::TABLE.name()));
        let play = move || match on_virtual_time(async move { play(script, started, tell, asked).await }) {
            Ok(()) => (),
            Err(failure) => panic!("{failure}"),
        };
        let thread =
            thread.spawn(play).map_err(|error| Failure(format!("no thread for a scenario: {error}")))?;
        let mut stage = Self { asks, thread: Some(thread) };
        match told.await {
            Ok(handle) => handle.map(|handle| (stage, handle)),
            Err(_) => stage.panicked(),
        }
    }

    /// Waits until the run has ended, or waits and the script has nothing for it.
    pub(crate) async fn settle(&mut self) -> Settled {
        let (ask, answer) = oneshot::channel();
        // An error says that the thread is gone, as the answer does.
        let _ = self.asks.send(ask);
        match answer.await {
            Ok(settled) => settled,
            Err(_) => self.panicked(),
        }
    }

    /// Goes on with the panic that ended the thread: a script is the test's own code.
    fn panicked(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => panic!("the thread of the scenario is gone"),
        }
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

/// Runs a future on a runtime whose clock jumps to the next timer when nothing else can go on.
fn on_virtual_time(scenario: impl Future<Output = ()>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| Failure(format!("no runtime for a scenario: {error}")))?;
    runtime.block_on(scenario);
    // What a step still computes on a thread is left to itself.
    runtime.shutdown_background();
    Ok(())
}

async fn play<W: Workflow>(
    script: Script<W>,
    started: impl Future<Output = Result<RunHandle<W>, Failure>>,
    tell: oneshot::Sender<Result<RunHandle<W>, Failure>>,
    mut asked: mpsc::UnboundedReceiver<oneshot::Sender<Settled>>,
) {
    let since = Instant::now();
    let run = match started.await {
        Ok(run) => run,
        Err(failure) => return drop(tell.send(Err(failure))),
    };
    let mut performance = Performance::of(script, run.clone(), since);
    if tell.send(Ok(run.clone())).is_err() {
        return;
    }
    // Nobody has to ask for the first time: while this waited for another thread, the clock would not stand still.
    let mut first = Some(settled(&run, &mut performance, since).await);
    while let Some(ask) = asked.recv().await {
        let settled =
            if let Some(first) = first.take() { first } else { settled(&run, &mut performance, since).await };
        let has_ended = settled.status.is_ended();
        // An error says that nobody wants to know any more.
        if ask.send(settled).is_err() || has_ended {
            return;
        }
    }
}

/// Goes on until the run is settled; one that was given up is ended, so that it can be reported on.
async fn settled<W: Workflow>(
    run: &RunHandle<W>,
    performance: &mut Performance<W>,
    since: Instant,
) -> Settled {
    let result = performance.settle().await;
    let mut settled = Settled::of(run, since.elapsed()).await;
    settled.given_up = result.err();
    if settled.given_up.is_some() {
        // An error says that it has ended.
        let _ = run.cancel("the scenario was given up").await;
        settled.status = run.status();
    }
    settled
}
