//! Runs whose journals are in a file survive a crash at every append (S38, S39, S42): joins and retries, requests and
//! timers, children.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};
use workflow_redb::RedbStore;
use workflow_testkit::{CrashStore, Crashes, Scenario, Start, crash_everywhere};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Left(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Right(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u32);

/// Two sides, of which one fails at first, and a join.
struct Joins;

fn once_more() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::from_secs(10)))
}

#[workflow]
impl Joins {
    #[step(retry = once_more())]
    async fn left(&self, begin: &Begin, info: &RunInfo) -> Result<Left, StepError> {
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Left(begin.0)) }
    }

    #[step]
    async fn right(&self, begin: &Begin) -> Right {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Right(2 * begin.0)
    }

    #[step]
    async fn join(&self, left: &Left, right: &Right) -> Done {
        Done(left.0 + right.0)
    }
}

/// A request, a timer, and a join of the two.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn ask(&self, begin: &Begin) -> (Ask, Timer<Right>) {
        (Ask(begin.0), Timer::after(Duration::from_secs(30), Right(begin.0)))
    }

    #[step]
    async fn join(&self, reply: &Reply<Ask>, right: &Right) -> Done {
        Done(**reply + right.0)
    }
}

/// Runs a child in each branch.
struct Parents;

#[workflow]
impl Parents {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Left> {
        (0..begin.0).map(Left).collect()
    }

    #[step]
    async fn work(&self, left: &Left, children: &Children) -> Result<Right, RunError> {
        Ok(Right(children.run::<Joins>(Begin(left.0)).await?.0))
    }

    #[step]
    async fn end(&self, all: &Gather<Right>) -> Done {
        Done(all.ok().map(|right| right.0).sum())
    }
}

/// Crashes runs that are stored in files, a new one for each.
async fn survives<W: Workflow>(scenario: impl Fn(CrashStore) -> Start<W> + Send + 'static) -> Crashes {
    let (folder, number) = (TempDir::new().unwrap(), AtomicU32::new(0));
    let open = move || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        RedbStore::open(folder.path().join(format!("{number}.redb"))).unwrap()
    };
    let survived = crash_everywhere(scenario).on(open).pairs(20).await;
    assert!(survived.once() > survived.appends() && survived.twice() > 10, "{survived}");
    survived
}

#[tokio::test]
async fn joins_and_retries() {
    let joins = |store| Scenario::new(Joins).engine(|engine| engine.store(store)).start(Begin(4));
    assert!(survives(joins).await.appends() > 3);
}

#[tokio::test]
async fn requests_and_timers() {
    let waits = |store| {
        let scenario = Scenario::new(Waits).engine(|engine| engine.store(store));
        scenario.reply(|ask: &Ask| ask.0 + 1).start(Begin(4))
    };
    assert!(survives(waits).await.appends() > 3);
}

#[tokio::test]
async fn children_in_branches() {
    let parents = |store| {
        let scenario = Scenario::new(Parents).host(Joins).engine(|engine| engine.store(store));
        scenario.start(Begin(2))
    };
    assert!(survives(parents).await.appends() > 6);
}
