//! The depth of nested children, and the number that execute steps at a time (S21).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{EngineBuilder, RunHandle, RunStatus, StartError};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Alpha, Begin, Done, everyone_else};

/// Counts the active workers, and their maximum. Clones share the counts.
#[derive(Debug, Clone, Default)]
struct Busy {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    ever: Arc<AtomicUsize>,
}

impl Busy {
    async fn work(&self) {
        self.ever.fetch_add(1, Ordering::SeqCst);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn seen(&self) -> (usize, usize) {
        (self.ever.load(Ordering::SeqCst), self.most.load(Ordering::SeqCst))
    }
}

struct Working(Busy);

#[workflow]
impl Working {
    #[step]
    async fn work(&self, begin: &Begin) -> Done {
        self.0.work().await;
        Done(begin.0)
    }
}

/// Runs as many children at once as its input says.
struct Spreading;

#[workflow]
impl Spreading {
    #[step]
    async fn spread(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let children = (0..begin.0).map(|number| children.run::<Working>(Begin(number)));
        let done = futures::future::try_join_all(children).await?;
        Ok(Done(done.iter().map(|done| done.0).sum()))
    }
}

/// On virtual time.
fn engine() -> EngineBuilder {
    Engine::builder().clock(VirtualClock::new())
}

// S21
#[tokio::test(start_paused = true)]
async fn never_more_than_eight_children_of_an_engine_execute_steps_at_a_time() {
    let busy = Busy::default();
    let engine = engine().workflow(Spreading).workflow(Working(busy.clone())).build().unwrap();
    let mut parents = Vec::new();
    for _ in 0..100 {
        parents.push(engine.start::<Spreading>(Begin(3)).await.unwrap());
    }
    for parent in parents {
        assert_eq!(parent.outcome().await.unwrap(), Done(3));
    }
    assert_eq!(busy.seen(), (300, 8));
    assert!(engine.running().is_empty());
}

// S21
#[tokio::test(start_paused = true)]
async fn a_parent_keeps_its_run_permit_and_its_children_need_none() {
    let busy = Busy::default();
    let engine = engine().workflow(Spreading).workflow(Working(busy.clone())).max_concurrent_runs(1);
    let engine = engine.max_concurrent_children(2).build().unwrap();
    let (one, other) = futures::join!(
        async { engine.start::<Spreading>(Begin(5)).await.unwrap().outcome().await.unwrap() },
        async { engine.start::<Spreading>(Begin(5)).await.unwrap().outcome().await.unwrap() },
    );
    assert_eq!((one, other, busy.seen()), (Done(10), Done(10), (10, 2)));
}

/// Runs `width` of itself at once, down to a depth.
struct Nesting {
    width: usize,
    busy: Busy,
}

#[workflow]
impl Nesting {
    #[step]
    async fn nest(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        self.busy.work().await;
        let Some(left) = begin.0.checked_sub(1) else { return Ok(Done(1)) };
        let children = (0..self.width).map(|_| children.run::<Self>(Begin(left)));
        let done = futures::future::try_join_all(children).await?;
        Ok(Done(1 + done.iter().map(|done| done.0).sum::<u32>()))
    }
}

fn nesting(width: usize, busy: &Busy) -> EngineBuilder {
    engine().workflow(Nesting { width, busy: busy.clone() })
}

// S21
#[tokio::test(start_paused = true)]
async fn nested_children_do_not_wait_for_each_other_with_one_permit() {
    let busy = Busy::default();
    let engine = nesting(3, &busy).max_concurrent_children(1).build().unwrap();
    let run = engine.start::<Nesting>(Begin(3)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1 + 3 + 9 + 27));
    // One of them works at a time: a run that waits for its children has lent its permit.
    assert_eq!(busy.seen(), (40, 1));
}

// S21
#[tokio::test(start_paused = true)]
async fn nested_children_of_many_parents_share_the_permits() {
    let busy = Busy::default();
    let engine = nesting(2, &busy).max_concurrent_children(2).max_concurrent_runs(4).build().unwrap();
    let runs = (0..20).map(|_| async { engine.start::<Nesting>(Begin(2)).await.unwrap().outcome().await });
    let done = futures::future::join_all(runs).await;
    assert!(done.iter().all(|done| *done.as_ref().unwrap() == Done(7)));
    // The permits of the runs, and those of the children.
    assert!(busy.seen().1 <= 4 + 2, "{busy:?}");
}

fn too_deep(error: &RunError) -> Option<(u32, u32)> {
    let mut error: &(dyn std::error::Error + 'static) = error;
    loop {
        // Each level fails with the error of the one below.
        if let Some(RunError::StepFailed { source, .. }) = error.downcast_ref() {
            error = source.downcast_ref::<RunError>()?;
        } else if let Some(RunError::Start(StartError::TooDeep { depth, limit })) = error.downcast_ref() {
            return Some((*depth, *limit));
        } else {
            return None;
        }
    }
}

// S31
#[tokio::test(start_paused = true)]
async fn children_nest_three_deep_and_no_deeper() {
    let engine = nesting(1, &Busy::default()).build().unwrap();
    let run = engine.start::<Nesting>(Begin(3)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    let run = engine.start::<Nesting>(Begin(4)).await.unwrap();
    assert_eq!(too_deep(&run.outcome().await.unwrap_err()), Some((4, 3)));
}

// S31
#[tokio::test(start_paused = true)]
async fn an_engine_may_allow_any_depth_or_none() {
    let engine = nesting(1, &Busy::default()).max_child_depth(40).max_concurrent_children(1).build().unwrap();
    let run = engine.start::<Nesting>(Begin(40)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(41));
    let engine = nesting(1, &Busy::default()).max_child_depth(0).build().unwrap();
    let run = engine.start::<Nesting>(Begin(1)).await.unwrap();
    assert_eq!(too_deep(&run.outcome().await.unwrap_err()), Some((1, 0)));
}

/// Waits for an outside event.
struct Waiting(Busy);

#[workflow]
impl Waiting {
    #[step]
    async fn wait(&self, _begin: &Begin, alpha: &Alpha) -> Done {
        self.0.work().await;
        Done(alpha.0)
    }
}

/// Sends out the handles of its children.
struct Starting(tokio::sync::mpsc::UnboundedSender<RunHandle<Waiting>>);

#[workflow]
impl Starting {
    #[step]
    async fn start(&self, begin: &Begin, children: &Children) -> Result<Done, StartError> {
        for number in 0..begin.0 {
            let child = children.start::<Waiting>(Begin(number)).await?;
            assert!(self.0.send(child).is_ok());
        }
        Ok(Done(begin.0))
    }
}

// S30
#[tokio::test(start_paused = true)]
async fn a_waiting_child_holds_no_permit_and_queues_for_one_when_a_message_arrives() {
    let (busy, (sender, mut started)) = (Busy::default(), tokio::sync::mpsc::unbounded_channel());
    let engine = engine().workflow(Starting(sender)).workflow(Waiting(busy.clone()));
    let engine = engine.max_concurrent_children(1).build().unwrap();
    let parent = engine.start::<Starting>(Begin(5)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(5));
    let mut children = Vec::new();
    while let Ok(child) = started.try_recv() {
        assert_eq!(child.settled().await, RunStatus::Waiting);
        children.push(child);
    }
    assert_eq!((children.len(), busy.seen()), (5, (0, 0)));
    for (child, number) in children.iter().zip(0..) {
        child.send(Alpha(number)).await.unwrap();
    }
    everyone_else().await;
    assert_eq!(busy.seen(), (1, 1));
    for (child, number) in children.iter().zip(0..) {
        assert_eq!(child.outcome().await.unwrap(), Done(number));
    }
    assert_eq!(busy.seen(), (5, 1));
}
