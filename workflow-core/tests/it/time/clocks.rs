//! Every time that is recorded or shown comes from the engine's clock.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use workflow_core::Clock;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::RunReport;

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
