//! The times of a scenario's run come from its virtual clock, exact to the nanosecond, and are the same each time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use expect_test::expect;
use workflow_core::Clock;
use workflow_core::observe::{Observation, Observer};
use workflow_core::prelude::*;
use workflow_core::report::RunReport;
use workflow_testkit::{Scenario, ScenarioOf, VirtualClock, explore};

use crate::support::{Research, question};

/// This long after the beginning of virtual time.
fn after(time: Duration) -> SystemTime {
    VirtualClock::beginning() + time
}

fn logged(report: &RunReport) -> Vec<(&str, SystemTime)> {
    report.log.iter().map(|event| (&*event.event, event.at)).collect()
}

#[tokio::test]
async fn a_step_that_sleeps_for_an_hour_took_an_hour() {
    let run = Scenario::new(Research).start(question()).await;
    let an_hour = Duration::from_hours(1);
    let log = [
        ("Question", after(Duration::ZERO)),
        ("Fact", after(an_hour)),
        ("Outline", after(an_hour)),
        ("Answer", after(2 * an_hour)),
    ];
    assert_eq!(logged(run.report()), log);
    let trace: Vec<_> =
        run.report().trace.iter().map(|trace| (&*trace.step, trace.started, trace.took)).collect();
    let executions = [
        ("look_up", Duration::ZERO, an_hour),
        ("outline", Duration::ZERO, an_hour),
        ("answer", an_hour, an_hour),
    ];
    assert_eq!(trace, executions);
}

#[tokio::test]
async fn a_timeline_can_be_compared_as_text() {
    let run = Scenario::new(Research).start(question()).await;
    expect![[r"
        look_up |=========================                       | 3600000.000 ms
        outline |=========================                       | 3600000.000 ms
        answer  |                        ========================| 3600000.000 ms
    "]]
    .assert_eq(&run.report().timeline().to_string());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Listen;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Rang(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Heard(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Woke(u32);

/// Has a timer after a millisecond and a half, and ends at the second one.
struct Sleeper;

#[workflow]
impl Sleeper {
    #[step]
    async fn lie_down(&self, _: &Listen) {}

    #[step]
    async fn hear(&self, rang: &Rang) -> Heard {
        tokio::time::sleep(Duration::from_micros(1_500)).await;
        Heard(rang.0)
    }

    #[step]
    async fn wake(&self, heard: &Heard) -> Option<Woke> {
        (heard.0 == 2).then_some(Woke(2))
    }
}

fn two_bells() -> ScenarioOf<Sleeper> {
    let scenario = Scenario::new(Sleeper).send_after(Duration::from_secs(30), Rang(1));
    scenario.send_after(Duration::from_hours(24), Rang(2))
}

#[tokio::test]
async fn what_is_sent_after_a_time_is_in_the_log_at_that_time() {
    let run = two_bells().start(Listen).await;
    let (half_a_minute, a_day) = (Duration::from_secs(30), Duration::from_hours(24));
    // tokio's timers have a grain of a millisecond.
    let heard = Duration::from_millis(2);
    let log = [
        ("Listen", after(Duration::ZERO)),
        ("Rang", after(half_a_minute)),
        ("Heard", after(half_a_minute + heard)),
        ("Rang", after(a_day)),
        ("Heard", after(a_day + heard)),
        ("Woke", after(a_day + heard)),
    ];
    assert_eq!(logged(run.report()), log);
}

#[tokio::test]
async fn a_report_is_the_same_each_time() {
    let first = two_bells().start(Listen).await;
    for _ in 0..10 {
        let again = two_bells().start(Listen).await;
        assert_eq!(logged(again.report()), logged(first.report()));
        assert_eq!(again.report().trace, first.report().trace);
    }
}

#[test]
fn explored_runs_have_virtual_times() {
    let explored = explore(|| Scenario::new(Research).start(question())).assert(|run| {
        assert_eq!(run.report().log[0].at, after(Duration::ZERO));
        assert_eq!(run.report().log[3].at, after(Duration::from_hours(2)));
    });
    assert!(explored.is_exhaustive());
}

/// Records the times of its observations.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Vec<SystemTime>>>);

impl Observer for Watch {
    fn observe(&self, observation: &Observation) {
        self.0.lock().unwrap().push(observation.at);
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_of_ones_own_can_go_by_virtual_time() {
    let (clock, watch) = (VirtualClock::new(), Watch::default());
    let engine = Engine::builder().workflow(Research).clock(clock.clone()).observer(watch.clone());
    let engine = engine.build().unwrap();
    let run = engine.start::<Research>(question()).await.unwrap();
    assert_eq!(run.report().await.unwrap().log[3].at, after(Duration::from_hours(2)));
    assert_eq!(clock.now(), after(Duration::from_hours(2)));
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    let seen = watch.0.lock().unwrap();
    assert_eq!(seen.first(), Some(&after(Duration::ZERO)));
    assert!(seen.contains(&after(Duration::from_hours(1))));
    assert_eq!(seen.last(), Some(&after(Duration::from_hours(2))));
}

#[tokio::test(start_paused = true)]
async fn a_virtual_clock_shows_the_same_time_to_a_thread_of_its_own() {
    let clock = VirtualClock::new();
    clock.sleep_until(after(Duration::from_hours(1))).await;
    let elsewhere = clock.clone();
    let seen = std::thread::spawn(move || elsewhere.now()).join().unwrap();
    assert_eq!(seen, after(Duration::from_hours(1)));
}

#[tokio::test(start_paused = true)]
async fn a_virtual_century_passes_at_once() {
    let clock = VirtualClock::new();
    let then = after(100 * Duration::from_hours(365 * 24));
    clock.sleep_until(then).await;
    assert_eq!(clock.now(), then);
}
