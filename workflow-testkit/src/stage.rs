//! The thread of one scenario: a runtime on virtual time, which lives as long as the test may send something to the
//! run.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use workflow_core::explain::Explanation;
use workflow_core::report::{OpenRequest, RunReport};
use workflow_core::{AnyRun, RunStatus, SendError};

use crate::patience::Patience;
use crate::recording::Recording;
use crate::script::{Act, GivenUp, Performance, Script};
use crate::start::Failure;
use crate::subject::Tested;

/// The test's handle on a scenario's thread. Dropping it ends the thread and an open run.
pub(crate) struct Stage {
    asks: mpsc::Sender<Ask>,
    thread: Option<JoinHandle<()>>,
}

/// A request of the test to the scenario's thread. Nothing happens there without one.
enum Ask {
    /// Continue until this much time has passed and the run is settled.
    Settle(Duration, oneshot::Sender<Settled>),
    /// Perform this action on the run, and nothing else.
    Act(Act, oneshot::Sender<Result<(), SendError>>),
    /// From now on, continue between requests, but with the clock stopped: the test has a handle and awaits its calls.
    Continue,
}

/// The state of a settled run.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) status: RunStatus,
    /// Virtual time since the start.
    pub(crate) elapsed: Duration,
    /// The explanation of a waiting run, or of one that was given up.
    pub(crate) explanation: Option<Arc<Explanation>>,
    /// The report of a waiting run.
    pub(crate) report: Option<Arc<RunReport>>,
    /// The open requests of a waiting run.
    pub(crate) open: Vec<OpenRequest>,
    /// The number of its observations.
    pub(crate) observed: usize,
    pub(crate) given_up: Option<GivenUp>,
}

impl Settled {
    /// Takes the state of the idle run.
    pub(crate) async fn of(run: &AnyRun, recording: &Recording, elapsed: Duration) -> Self {
        let (status, observed) = (run.status(), recording.len());
        let (explanation, report, open) = (None, None, Vec::new());
        let mut settled = Self { status, elapsed, explanation, report, open, observed, given_up: None };
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
    /// Returns the error of the start, or of creating the thread or the runtime.
    pub(crate) async fn open<T: Tested>(
        workflow: &str,
        script: Script,
        recording: Recording,
        started: impl Future<Output = Result<T::Handle, Failure>> + Send + 'static,
    ) -> Result<(Self, T::Handle), Failure> {
        let (asks, asked) = mpsc::channel();
        let (tell, told) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("scenario of {workflow}"));
        let patience = Arc::new(Patience::with(recording.clone()));
        let play = play::<T>(script, recording, Arc::clone(&patience), started, tell, asked);
        let play = move || on_virtual_time(patience, play).unwrap_or_else(|failure| panic!("{failure}"));
        let thread =
            thread.spawn(play).map_err(|error| Failure(format!("no thread for a scenario: {error}")))?;
        let mut stage = Self { asks, thread: Some(thread) };
        match told.await {
            Ok(handle) => handle.map(|handle| (stage, handle)),
            Err(_) => stage.panicked(),
        }
    }

    /// Waits until the run has ended, or until this much virtual time has passed and the run waits without an action of
    /// the script.
    pub(crate) async fn settle(&mut self, time: Duration) -> Settled {
        let (settle, answer) = oneshot::channel();
        self.ask(Ask::Settle(time, settle), answer).await
    }

    /// Performs an action on the run's thread, and returns when the run has taken it.
    ///
    /// # Errors
    /// Returns the run's error.
    pub(crate) async fn act(&mut self, act: Act) -> Result<(), SendError> {
        let (done, answer) = oneshot::channel();
        self.ask(Ask::Act(act, done), answer).await
    }

    /// Lets the run answer calls of its handle.
    pub(crate) fn go_on(&self) {
        // An error means that the run has ended.
        let _ = self.asks.send(Ask::Continue);
    }

    async fn ask<T>(&mut self, ask: Ask, answer: oneshot::Receiver<T>) -> T {
        // The send fails only if the thread is gone; the answer reports that too.
        let _ = self.asks.send(ask);
        match answer.await {
            Ok(answer) => answer,
            Err(_) => self.panicked(),
        }
    }

    /// Resumes the panic that ended the thread: a script is the test's own code.
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

/// Runs a future on a runtime whose clock jumps to the next timer when idle.
fn on_virtual_time(patience: Arc<Patience>, scenario: impl Future<Output = ()>) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).on_thread_park(move || patience.parked());
    let runtime = builder.build().map_err(|error| Failure(format!("no runtime for a scenario: {error}")))?;
    runtime.block_on(scenario);
    // Computations of steps on other threads are abandoned.
    runtime.shutdown_background();
    Ok(())
}

async fn play<T: Tested>(
    script: Script,
    recording: Recording,
    patience: Arc<Patience>,
    started: impl Future<Output = Result<T::Handle, Failure>>,
    tell: oneshot::Sender<Result<T::Handle, Failure>>,
    asked: mpsc::Receiver<Ask>,
) {
    let since = Instant::now();
    let handle = match started.await {
        Ok(handle) => handle,
        Err(failure) => return drop(tell.send(Err(failure))),
    };
    let run = T::any(&handle).clone();
    let performance = Performance::of(script, run.clone(), since, patience);
    if tell.send(Ok(handle)).is_err() {
        return;
    }
    Playing { run, performance, recording, since }.play(Asked { asks: Some(asked), continues: false }).await;
}

/// A run on the scenario's thread, and the rest of the script.
struct Playing {
    run: AnyRun,
    performance: Performance,
    recording: Recording,
    since: Instant,
}

impl Playing {
    /// Serves requests until the run has ended or the test is gone.
    async fn play(&mut self, mut asked: Asked) {
        // The first settling needs no request.
        let mut first = Some(self.settled(Duration::ZERO).await);
        while let Some(ask) = asked.next().await {
            let (time, settle) = match ask {
                Ask::Continue => continue,
                Ask::Act(act, done) => {
                    // The send fails only if the test is gone.
                    let _ = done.send(act(&self.run).await);
                    continue;
                }
                Ask::Settle(time, settle) => (time, settle),
            };
            let settled = if let Some(first) = first.take() { first } else { self.settled(time).await };
            let has_ended = settled.status.is_ended();
            if settle.send(settled).is_err() || has_ended {
                return;
            }
        }
    }

    /// Continues until this much time has passed and the run is settled; ends a run that was given up, so that it has a
    /// report.
    async fn settled(&mut self, time: Duration) -> Settled {
        let given_up = self.performance.settle(time).await.err();
        let mut settled = Settled::of(&self.run, &self.recording, self.since.elapsed()).await;
        if given_up.is_some() {
            // An error means that the run has ended.
            let _ = self.run.cancel("the scenario was given up").await;
            (settled.status, settled.observed) = (self.run.status(), self.recording.len());
        }
        settled.given_up = given_up;
        settled
    }
}

/// The requests of the test, in order.
struct Asked {
    /// The receiver; `None` while a receive is in progress.
    asks: Option<mpsc::Receiver<Ask>>,
    /// Whether the run continues without requests.
    continues: bool,
}

impl Asked {
    /// The next request. Its time depends on the test's thread, and the run must not depend on that. So until then this
    /// thread blocks. If a handle needs the run, at least the clock stands still, because a blocking thread of the
    /// runtime is busy.
    async fn next(&mut self) -> Option<Ask> {
        let asks = self.asks.take()?;
        let (asks, ask) = if self.continues {
            let next = tokio::task::spawn_blocking(move || {
                let ask = asks.recv().ok();
                (asks, ask)
            });
            next.await.ok()?
        } else {
            let ask = asks.recv().ok();
            (asks, ask)
        };
        self.asks = Some(asks);
        self.continues |= matches!(ask, Some(Ask::Continue));
        ask
    }
}
