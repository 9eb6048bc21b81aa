//! Blocking work on its own threads. Neither this work nor a crowd of executions delays other runs (S27, S31).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use futures::FutureExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use workflow_core::errors::{BlockingError, Cancelled};
use workflow_core::observe::TracingObserver;
use workflow_core::prelude::*;
use workflow_core::{ErrorClass, RunStatus, blocking};

use crate::fixtures::{Alive, Begin, Done, Item, Part, Patience, log_of, started, until};

struct Adding;

#[workflow]
impl Adding {
    #[step]
    async fn add(&self, begin: &Begin) -> Result<Done, StepError> {
        let up_to = begin.0;
        let sum = blocking(move |_| match up_to {
            0 => Err(StepError::rejected("nothing to add")),
            13 => panic!("not thirteen"),
            _ => Ok((1..=up_to).sum()),
        });
        Ok(Done(sum.await??))
    }
}

#[tokio::test]
async fn a_step_awaits_its_result() {
    assert_eq!(Adding.run(Begin(4)).await.unwrap(), Done(10));
    let Err(RunError::StepFailed { class, .. }) = Adding.run(Begin(0)).await else { panic!() };
    assert_eq!(class, ErrorClass::Rejected);
}

// S27
#[tokio::test]
async fn a_panic_in_blocking_work_is_the_failure_of_the_step() {
    let error = Adding.run(Begin(13)).await.unwrap_err().to_string();
    assert!(error.contains("it panicked: not thirteen"), "{error}");
}

#[test]
fn without_a_runtime_it_says_so() {
    let error = blocking(|_| 1).now_or_never().unwrap().unwrap_err();
    assert_eq!(error, BlockingError::NoRuntime);
    let failed = Adding.run(Begin(4)).now_or_never().unwrap().unwrap_err();
    assert!(failed.to_string().contains("no tokio runtime"), "{failed}");
}

struct Spans;

#[workflow]
impl Spans {
    #[step]
    async fn look(&self, begin: &Begin) -> Result<Done, StepError> {
        let name = blocking(|_| tracing::Span::current().metadata().map(tracing::Metadata::name)).await?;
        assert_eq!(name, Some("workflow.execution"));
        Ok(Done(begin.0))
    }
}

#[tokio::test]
async fn middleware_is_in_the_span_of_its_step() {
    let _subscribed = tracing::subscriber::set_default(
        tracing_subscriber::registry().with(tracing_subscriber::filter::LevelFilter::TRACE),
    );
    let engine = Engine::builder().workflow(Spans).observer(TracingObserver::new()).build().unwrap();
    let run = engine.start::<Spans>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

/// Works until it is cancelled.
struct Listening(Alive);

#[workflow]
impl Listening {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        let guard = self.0.guard();
        let work = blocking(move |cancellation| {
            let _guard = guard;
            let patience = Patience::new();
            while cancellation.check().is_ok() {
                patience.check();
                std::thread::yield_now();
            }
            Err::<u32, _>(Cancelled)
        });
        Ok(Done(begin.0 + work.await??))
    }
}

// S31
#[tokio::test]
async fn work_that_checks_learns_that_its_execution_was_dropped() {
    let alive = Alive::default();
    let run = started(Listening(alive.clone()), 1).await;
    until(|| alive.count() == 1).await;
    run.cancel("enough").await.unwrap();
    until(|| alive.count() == 0).await;
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}

/// Computes until the test releases it, cancelled or not.
struct Deaf {
    release: Mutex<Option<Receiver<()>>>,
    begun: Sender<()>,
    alive: Alive,
}

#[workflow]
impl Deaf {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        let (release, guard) = (self.release.lock().unwrap().take().unwrap(), self.alive.guard());
        let (number, begins) = (begin.0, self.begun.clone());
        let work = blocking(move |_| {
            begins.send(()).unwrap();
            let patience = Patience::new();
            // Also ends when the test is gone.
            while release.try_recv() == Err(TryRecvError::Empty) {
                patience.check();
                std::thread::yield_now();
            }
            (number, guard)
        });
        Ok(Done(work.await?.0))
    }
}

fn deaf() -> (Sender<()>, Receiver<()>, Alive, Deaf) {
    let ((release, released), (begun, begins)) = (channel(), channel());
    let alive = Alive::default();
    let workflow = Deaf { release: Mutex::new(Some(released)), begun, alive: alive.clone() };
    (release, begins, alive, workflow)
}

// S31
#[tokio::test]
async fn work_that_never_checks_continues_and_its_result_is_dropped() {
    let (release, begins, alive, workflow) = deaf();
    let run = started(workflow, 1).await;
    until(|| begins.try_recv().is_ok()).await;
    run.cancel("enough").await.unwrap();
    assert_eq!((run.status(), alive.count()), (RunStatus::Cancelled, 1));
    release.send(()).unwrap();
    until(|| alive.count() == 0).await;
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
}

#[test]
fn queued_work_without_a_waiter_never_begins() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (release, begins, _alive, workflow) = deaf();
        let run = started(workflow, 1).await;
        until(|| begins.try_recv().is_ok()).await;
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&begun);
        let mut queued = Box::pin(blocking(move |_| counted.fetch_add(1, Ordering::SeqCst)));
        assert!(futures::poll!(&mut queued).is_pending());
        drop(queued);
        release.send(()).unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1));
        // The pool has one thread and a queue: earlier work would have run before this.
        blocking(|_| ()).await.unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), 0);
    });
}

/// Wakes all waiters together, once every one has had a turn. Clones share the waiters.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<(usize, Vec<Waker>)>>);

impl Turns {
    async fn next(&self) {
        let now = self.0.lock().unwrap().0;
        poll_fn(|cx| {
            let (turn, waiting) = &mut *self.0.lock().unwrap();
            if *turn > now {
                return Poll::Ready(());
            }
            waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn go_on(&self) {
        let mut turns = self.0.lock().unwrap();
        turns.0 += 1;
        let waiting = std::mem::take(&mut turns.1);
        drop(turns);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The number of polls of a run, of all its steps, and of its steps in one poll at most.
#[derive(Default)]
struct Polls {
    of_run: AtomicUsize,
    of_steps: AtomicUsize,
    most: AtomicUsize,
}

impl Polls {
    /// Polls the run to its end, and returns the number of polls.
    async fn count(&self, run: impl Future, mut after_each: impl FnMut()) -> usize {
        let mut run = pin!(run);
        poll_fn(|cx| {
            self.of_run.fetch_add(1, Ordering::SeqCst);
            let before = self.of_steps.load(Ordering::SeqCst);
            let polled = run.as_mut().poll(cx).map(drop);
            self.most.fetch_max(self.of_steps.load(Ordering::SeqCst) - before, Ordering::SeqCst);
            after_each();
            polled
        })
        .await;
        self.of_run.load(Ordering::SeqCst)
    }
}

/// Three steps, each of which takes its turns.
struct Three(Turns);

#[workflow]
impl Three {
    #[step]
    async fn one(&self, begin: &Begin) -> Item {
        self.take(begin.0).await;
        Item(begin.0)
    }

    #[step]
    async fn two(&self, item: &Item) -> Part {
        self.take(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn three(&self, part: &Part) -> Done {
        self.take(part.0).await;
        Done(part.0)
    }
}

impl Three {
    async fn take(&self, turns: u32) {
        for _ in 0..turns {
            self.0.next().await;
        }
    }
}

/// Ten thousand executions that are ready at once, and may then wait for their turns.
struct Crowd {
    turns: Option<Turns>,
    polls: Arc<Polls>,
}

#[workflow]
impl Crowd {
    #[step]
    async fn open(&self, _begin: &Begin) -> Vec<Item> {
        (0..10_000).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Option<Done> {
        self.polls.of_steps.fetch_add(1, Ordering::SeqCst);
        while let Some(turns) = &self.turns {
            turns.next().await;
            self.polls.of_steps.fetch_add(1, Ordering::SeqCst);
        }
        (item.0 == u32::MAX).then_some(Done(0))
    }
}

/// The polls of a run of three steps, alone and beside a crowd and constant blocking work; and the crowd's polls until
/// then.
async fn alone_and_beside(crowd_waits: bool) -> ([usize; 2], Arc<Polls>) {
    let turns = Turns::default();
    let alone = Polls::default().count(Three(turns.clone()).run(Begin(20)), || turns.go_on()).await;
    let (release, begins, _alive, workflow) = deaf();
    let blocked = tokio::spawn(workflow.run(Begin(1)));
    until(|| begins.try_recv().is_ok()).await;
    let polls = Arc::<Polls>::default();
    let crowd = Crowd { turns: crowd_waits.then(|| turns.clone()), polls: Arc::clone(&polls) };
    let counted = Arc::clone(&polls);
    let crowd = tokio::spawn(async move { counted.count(crowd.run(Begin(0)), || ()).await });
    let three = tokio::spawn(async move {
        Polls::default().count(Three(turns.clone()).run(Begin(20)), || turns.go_on()).await
    });
    let beside = three.await.unwrap();
    assert!(!blocked.is_finished(), "it blocked all the time");
    release.send(()).unwrap();
    assert_eq!(blocked.await.unwrap().unwrap(), Done(1));
    crowd.abort();
    ([alone, beside], polls)
}

/// The maximum number of executions that a run starts in one poll, plus those it continues there.
const MOST: usize = 256 + 128;

// S21
#[tokio::test]
async fn blocking_work_and_a_crowd_of_ready_executions_delay_another_run_by_a_slice_per_poll() {
    let ([alone, beside], crowd) = alone_and_beside(false).await;
    assert_eq!((alone, beside), (61, 61));
    assert!(crowd.of_steps.load(Ordering::SeqCst) > 1_000, "the crowd was at work");
    assert!(crowd.most.load(Ordering::SeqCst) <= MOST, "{:?}", crowd.most);
}

// S21
#[tokio::test]
async fn a_crowd_of_executions_that_are_woken_together_does_so_too() {
    let ([alone, beside], crowd) = alone_and_beside(true).await;
    assert_eq!((alone, beside), (61, 61));
    assert!(crowd.of_steps.load(Ordering::SeqCst) > MOST);
    assert!(crowd.most.load(Ordering::SeqCst) <= MOST, "{:?}", crowd.most);
}

// S21: a run handles each execution at least twice, at its begin and at its return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_threads_a_poll_handles_four_slices_at_most() {
    let polls = Arc::<Polls>::default();
    let crowd = Crowd { turns: None, polls: Arc::clone(&polls) };
    let polled = polls.count(crowd.run(Begin(0)), || ()).await;
    assert_eq!(polls.of_steps.load(Ordering::SeqCst), 10_000);
    assert!(polled >= 2 * 10_000 / (4 * 256), "{polled}");
}
