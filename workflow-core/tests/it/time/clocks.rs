//! Every time that is recorded or shown comes from the engine's clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use workflow_core::Clock;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::RunReport;
use workflow_core::signature::{Emitted, StepCall};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Bake;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Dough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Rising;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Bread;

/// Shows the time it was set to, in minutes after midnight. Clones share one clock.
#[derive(Clone, Default)]
struct KitchenClock(Arc<Mutex<u64>>);

impl KitchenClock {
    fn set(&self, minutes: u64) {
        *self.0.lock().unwrap() = minutes;
    }
}

impl Clock for KitchenClock {
    fn now(&self) -> SystemTime {
        at(*self.0.lock().unwrap())
    }

    fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
        panic!("nobody asked the run to wait")
    }
}

fn at(minutes: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + minutes_long(minutes)
}

fn minutes_long(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// Sets the clock as it works.
struct Bakery {
    clock: KitchenClock,
    kneaded_at: u64,
    baked_at: u64,
}

#[workflow]
impl Bakery {
    #[precondition]
    async fn oven_is_hot(&self) -> bool {
        tokio::task::yield_now().await;
        self.clock.set(70);
        true
    }

    #[step(precondition = oven_is_hot)]
    async fn knead(&self, _bake: &Bake) -> Dough {
        self.clock.set(self.kneaded_at);
        Dough
    }

    #[step]
    async fn bake(&self, _dough: &Dough, display: &Display) -> Bread {
        tokio::task::yield_now().await;
        display.show(Rising);
        self.clock.set(self.baked_at);
        tokio::task::yield_now().await;
        Bread
    }
}

/// Records observations with their times.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Vec<(SystemTime, Observed)>>>);

impl Observer for Watch {
    fn observe(&self, observation: &Observation) {
        self.0.lock().unwrap().push((observation.at, observation.what.clone()));
    }
}

impl Watch {
    fn saw(&self, is: impl Fn(&Observed) -> bool) -> SystemTime {
        self.0.lock().unwrap().iter().find(|(_, what)| is(what)).unwrap().0
    }
}

/// Bakes from one o'clock on.
async fn baked(kneaded_at: u64, baked_at: u64) -> (Arc<RunReport>, Watch) {
    let (clock, watch) = (KitchenClock::default(), Watch::default());
    clock.set(60);
    let bakery = Bakery { clock: clock.clone(), kneaded_at, baked_at };
    let engine = Engine::builder().workflow(bakery).clock(clock).observer(watch.clone()).build().unwrap();
    let report = engine.start::<Bakery>(Bake).await.unwrap().report().await.unwrap();
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    (report, watch)
}

#[tokio::test]
async fn the_report_shows_the_times_of_the_engines_clock() {
    let (report, _) = baked(85, 135).await;
    let log: Vec<SystemTime> = report.log.iter().map(|event| event.at).collect();
    assert_eq!(log, [at(60), at(85), at(135)]);
    let [knead, bake] = &report.trace[..] else { panic!("two executions: {report}") };
    assert_eq!((knead.started, knead.took), (minutes_long(10), minutes_long(15)));
    assert_eq!((bake.started, bake.took), (minutes_long(25), minutes_long(50)));
}

#[tokio::test]
async fn observers_see_the_times_of_the_engines_clock() {
    let (_, watch) = baked(85, 135).await;
    assert_eq!(watch.saw(|what| matches!(what, Observed::RunStarted)), at(60));
    assert_eq!(watch.saw(|what| matches!(what, Observed::Displayed(_))), at(85));
    assert_eq!(watch.saw(|what| matches!(what, Observed::RunEnded { .. })), at(135));
    let hour = |what: &Observed| matches!(what, Observed::ExecutionSucceeded { took, .. } if *took == minutes_long(50));
    assert_eq!(watch.saw(hour), at(135));
}

#[tokio::test]
async fn nothing_in_a_report_ends_before_it_started_when_the_clock_is_set_back() {
    let (report, watch) = baked(85, 30).await;
    let log: Vec<SystemTime> = report.log.iter().map(|event| event.at).collect();
    assert_eq!(log, [at(60), at(85), at(85)]);
    assert_eq!(report.trace[1].took, Duration::ZERO);
    let ended = watch.saw(|what| matches!(what, Observed::RunEnded { .. }));
    assert_eq!(ended, at(30), "an observation shows the reading as it is");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Sell;

/// Asks whether to sell, for half an hour.
struct Shop;

#[workflow]
impl Shop {
    #[step]
    async fn ask(&self, _bake: &Bake) -> Expiring<Sell> {
        Sell.expires_in(minutes_long(30))
    }

    #[step]
    async fn sold(&self, _sold: &Reply<Sell>) -> Bread {
        Bread
    }

    #[step]
    async fn stale(&self, _stale: &Expired<Sell>) -> Bread {
        Bread
    }
}

/// A clock that always shows this time.
#[derive(Clone)]
struct Shows(SystemTime);

impl Clock for Shows {
    fn now(&self) -> SystemTime {
        self.0
    }

    fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// The JSON of a report, of the only open request and of the only timer of a run that began at this time.
async fn shown_at(at: SystemTime) -> [serde_json::Value; 3] {
    let engine = Engine::builder().workflow(Shop).clock(Shows(at)).build().unwrap();
    let run = engine.start::<Shop>(Bake).await.unwrap();
    run.settled().await;
    let (requests, timers) = (run.requests().await.unwrap(), run.timers().await.unwrap());
    let report = run.report_so_far().await.unwrap();
    run.cancel("enough").await.unwrap();
    let report = serde_json::to_value(&*report).unwrap();
    [report, serde_json::to_value(&requests[0]).unwrap(), serde_json::to_value(&timers[0]).unwrap()]
}

// S78
#[tokio::test]
async fn times_in_json_are_text_in_utc() {
    let [report, request, timer] = shown_at(at(30) + Duration::from_nanos(7)).await;
    let (now, due) = ("1970-01-01T00:30:00.000000007Z", "1970-01-01T01:00:00.000000007Z");
    assert_eq!((&report["log"][0]["at"], &report["timers"][0]["due"]), (&now.into(), &due.into()));
    assert_eq!((&request["asked_at"], &request["expires_at"]), (&now.into(), &due.into()));
    assert_eq!(timer["due"], due);
    assert!(!report.to_string().contains("secs_since_epoch"));
}

// S78
#[tokio::test]
async fn times_before_the_epoch_and_far_beyond_have_json_too() {
    let [report, request, _] = shown_at(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).await;
    assert_eq!(report["log"][0]["at"], "1969-12-31T23:59:59.000000000Z");
    assert_eq!(request["expires_at"], "1970-01-01T00:29:59.000000000Z");
    let [report, ..] = shown_at(SystemTime::UNIX_EPOCH + Duration::from_hours(70_389_528)).await;
    assert_eq!(report["log"][0]["at"], "+010000-01-01T00:00:00.000000000Z");
}

/// A clock that cannot be cloned. Each reading is a minute after the one before.
#[derive(Default)]
struct WallClock(AtomicU64);

impl Clock for WallClock {
    fn now(&self) -> SystemTime {
        at(self.0.fetch_add(1, Ordering::SeqCst))
    }

    fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
        panic!("nobody asked the run to wait")
    }
}

/// An observer and a middleware that cannot be cloned either.
#[derive(Default)]
struct Counts {
    observations: AtomicU64,
    calls: AtomicU64,
}

impl Observer for Counts {
    fn observe(&self, _: &Observation) {
        self.observations.fetch_add(1, Ordering::SeqCst);
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl Middleware for Counts {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        next.call(call)
    }
}

#[tokio::test]
async fn engines_share_a_clock_an_observer_and_middleware() {
    let (clock, counts) = (Arc::new(WallClock::default()), Arc::new(Counts::default()));
    let mut read = 0;
    for engine in 1..=2 {
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let bakery = Bakery { clock: KitchenClock::default(), kneaded_at: 0, baked_at: 0 };
        let builder = Engine::builder().workflow(bakery).clock(shared);
        let engine_of_two =
            builder.observer(Arc::clone(&counts)).middleware(Arc::clone(&counts)).build().unwrap();
        let report = engine_of_two.start::<Bakery>(Bake).await.unwrap().report().await.unwrap();
        // The second engine reads on where the first one stopped.
        assert!(report.log[0].at >= at(read), "{report}");
        read = clock.0.load(Ordering::SeqCst);
        assert!(report.log[2].at < at(read), "{report}");
        // Nothing waits for the thread of an observer that the engine calls itself.
        assert!(counts.observations.load(Ordering::SeqCst) >= engine * 5);
        assert_eq!(counts.calls.load(Ordering::SeqCst), engine * 2);
    }
}
