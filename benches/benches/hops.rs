//! What one hop costs: an event arrives, the step that takes it runs and emits the next one.
//!
//! `cargo bench -p workflow-benches --bench hops`

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use workflow_benches::{Contender, compare};
use workflow_core::prelude::*;

const LAPS: u64 = 10_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tock(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

#[derive(Debug, EventSet)]
enum Next {
    Tick(Tick),
    Done(Done),
}

struct Clock;

#[workflow]
impl Clock {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Tick {
        Tick(0)
    }

    #[step]
    async fn tick(&self, tick: &Tick) -> Tock {
        Tock(tick.0 + 1)
    }

    #[step]
    async fn tock(&self, tock: &Tock) -> Next {
        if tock.0 == LAPS { Next::Done(Done(tock.0)) } else { Next::Tick(Tick(tock.0)) }
    }
}

type Erased = Arc<dyn Any + Send + Sync>;
type Boxed = Pin<Box<dyn Future<Output = Erased> + Send>>;

fn boxed(event: Erased) -> Boxed {
    Box::pin(async move {
        if let Some(tick) = event.downcast_ref::<Tick>() {
            return Arc::new(Tock(tick.0 + 1)) as Erased;
        }
        let tock = event.downcast_ref::<Tock>().map_or(0, |tock| tock.0);
        if tock == LAPS { Arc::new(Done(tock)) as Erased } else { Arc::new(Tick(tock)) as Erased }
    })
}

/// The same shape by hand: erased events in a log, one boxed future per step, one task.
async fn by_hand() -> u64 {
    let mut log: Vec<Erased> = vec![Arc::new(Tick(0))];
    loop {
        let event = boxed(Arc::clone(&log[log.len() - 1])).await;
        if let Some(done) = event.downcast_ref::<Done>() {
            return done.0;
        }
        log.push(event);
    }
}

/// A task per step, and a channel that brings its event back.
async fn task_per_step() -> u64 {
    let (sender, mut events) = mpsc::channel::<Erased>(64);
    let mut event: Erased = Arc::new(Tick(0));
    loop {
        let (sender, taken) = (sender.clone(), event);
        tokio::spawn(async move {
            // The receiver lives until the last event.
            let _ = sender.send(boxed(taken).await).await;
        });
        let Some(next) = events.recv().await else { return 0 };
        if let Some(done) = next.downcast_ref::<Done>() {
            return done.0;
        }
        event = next;
    }
}

fn main() {
    let runtime = Runtime::new().expect("a runtime starts");
    let hops = u32::try_from(2 * LAPS).expect("fits");
    compare(
        "one hop: an event in, a step run, an event out",
        hops,
        vec![
            Contender::new("boxed futures and a log, by hand", || runtime.block_on(by_hand())),
            Contender::new("a task per step and mpsc, by hand", || runtime.block_on(task_per_step())),
            Contender::new("workflow", || runtime.block_on(Clock.run(Begin)).map_or(0, |done| done.0)),
        ],
    );
}
