//! Timers and expiries enter the log before every message that was sent after they fell due (S32).

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::MemoryStore;
use workflow_core::{Clock, RunOptions, RunStatus, SendError};

use crate::fixtures::{Begin, Close, Done, Item};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

/// A clock whose sleeps end late: only a reading tells that a time has come. Clones are one clock.
#[derive(Clone, Default)]
struct LateAlarms(Arc<Mutex<Duration>>);

impl LateAlarms {
    fn pass(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

impl Clock for LateAlarms {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + *self.0.lock().unwrap()
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        if at <= self.now() { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
}

/// Sets a timer, makes a request that expires, and ends when it is closed.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn wait(&self, begin: &Begin) -> (Timer<Item>, Expiring<Ask>) {
        let minute = Duration::from_mins(1);
        (Timer::after(minute, Item(begin.0)), Ask(begin.0).expires_in(minute))
    }

    #[step]
    async fn replied(&self, reply: &Reply<Ask>) -> Done {
        Done(**reply)
    }

    #[step]
    async fn expired(&self, _expired: &Expired<Ask>) {}

    #[step]
    async fn end(&self, item: &Item, _close: &Close) -> Done {
        Done(item.0)
    }
}

fn engine(clock: &LateAlarms, store: &Arc<MemoryStore>) -> Engine {
    let builder = Engine::builder().workflow(Waits).clock(clock.clone());
    builder.store(Arc::clone(store)).build().unwrap()
}

// S32
#[tokio::test]
async fn a_message_that_was_sent_after_a_timer_fell_due_enters_the_log_behind_it() {
    let clock = LateAlarms::default();
    let engine = Engine::builder().workflow(Waits).clock(clock.clone()).build().unwrap();
    let run = engine.start::<Waits>(Begin(7)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    clock.pass(Duration::from_mins(2));
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    let report = run.report().await.unwrap();
    let triggers = report.trace.iter().map(|execution| (&*execution.step, execution.trigger.0));
    assert_eq!(triggers.collect::<Vec<_>>(), [("wait", 1), ("expired", 4), ("end", 5)]);
}

// S32, S33
#[tokio::test]
async fn a_reply_that_was_sent_after_its_request_fell_due_is_refused() {
    let clock = LateAlarms::default();
    let engine = Engine::builder().workflow(Waits).clock(clock.clone()).build().unwrap();
    let run = engine.start::<Waits>(Begin(7)).await.unwrap();
    run.settled().await;
    let request: RequestId<Ask> = run.requests().await.unwrap()[0].id().unwrap();
    clock.pass(Duration::from_secs(61));
    let late = run.reply(request, 1).await.unwrap_err();
    let SendError::Expired { at, .. } = late else { panic!("{late}") };
    assert_eq!(at, clock.now());
}

// S32, S42
#[tokio::test]
async fn nothing_that_is_sent_to_a_run_just_attached_comes_before_what_fell_due_meanwhile() {
    let (clock, store) = (LateAlarms::default(), Arc::new(MemoryStore::default()));
    let first = engine(&clock, &store);
    let run = first.start_with::<Waits>(Begin(7), RunOptions::new().id("late")).await.unwrap();
    run.settled().await;
    let request: RequestId<Ask> = run.requests().await.unwrap()[0].id().unwrap();
    first.shut_down(Duration::from_secs(5)).await;

    clock.pass(Duration::from_mins(2));
    let next = engine(&clock, &store);
    let run = next.attach::<Waits>("late").await.unwrap();
    let late = run.reply(request, 1).await.unwrap_err();
    assert!(matches!(late, SendError::Expired { .. }), "{late}");
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
}
