//! Timers: events that enter the log when their time has come (S7, S30, S47).

use std::time::{Duration, SystemTime};

use expect_test::expect;
use workflow_core::draw::EdgeKind;
use workflow_core::errors::TimerError;
use workflow_core::prelude::*;
use workflow_core::report::TimerId;
use workflow_core::store::{MemoryStore, Position, Record};
use workflow_core::{RunError, RunId, RunOptions, RunStatus};
use workflow_testkit::{Outcome, Scenario, TestRun, VirtualClock, explore};

use crate::fixtures::{Alpha, Begin, Close, Done, Item, Part, Saw, log_of, saw};

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Tick(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Tock(u32);

/// The times at which events of this name entered the log, from the first event on.
fn times<W: Workflow>(run: &TestRun<W>, event: &str) -> Vec<Duration> {
    let log = &run.report().log;
    let of_name = log.iter().filter(|logged| &*logged.event == event);
    of_name.map(|logged| logged.at.duration_since(log[0].at).unwrap()).collect()
}

/// The values of the timers, in firing order.
fn ticks<W: Workflow>(run: &TestRun<W>) -> Vec<u32> {
    let log = run.report().log.iter();
    log.filter_map(|logged| logged.value.downcast_ref::<Tick>().map(|tick| tick.0)).collect()
}

struct Alarm;

#[workflow]
impl Alarm {
    #[step]
    async fn set(&self, begin: &Begin) -> Timer<Tick> {
        Timer::after(HOUR, Tick(begin.0))
    }

    #[step]
    async fn ring(&self, tick: &Tick) -> Done {
        Done(tick.0)
    }
}

// S7
#[tokio::test]
async fn the_event_of_a_timer_comes_when_its_time_has_come() {
    let run = Scenario::new(Alarm).start(Begin(7)).await;
    run.assert_output(&Done(7));
    assert_eq!(times(&run, "Tick"), [HOUR]);
    assert_eq!(run.elapsed(), HOUR);
    let tick = &run.report().log[1];
    assert_eq!((tick.timer, tick.execution), (Some(TimerId(1)), Some(run.report().trace[0].execution)));
}

/// Sets timers in each form that an output can have.
struct Forms;

#[workflow]
impl Forms {
    #[step]
    async fn maybe(&self, begin: &Begin) -> Option<Timer<Tick>> {
        (begin.0 > 0).then(|| Timer::after(HOUR, Tick(1)))
    }

    #[step]
    async fn some(&self, begin: &Begin) -> Result<(Item, Vec<Timer<Tick>>), StepError> {
        Ok((Item(0), (0..begin.0).map(|_| Timer::after(HOUR, Tick(2))).collect()))
    }

    #[step]
    async fn end(&self, _: &Begin) -> Timer<Done> {
        Timer::after(2 * HOUR, Done(9))
    }

    #[step]
    async fn take(&self, tick: &Tick, item: &Item) -> Saw {
        Saw(format!("{} {}", tick.0, item.0))
    }
}

// S7, S24
#[tokio::test]
async fn a_timer_stands_wherever_an_output_can() {
    let run = Scenario::new(Forms).start(Begin(2)).await;
    assert_eq!(saw(&run), ["1 0", "2 0", "2 0"]);
    // S28: a timer can end the run too.
    run.assert_output(&Done(9));
    let none = Scenario::new(Forms).start(Begin(0)).await;
    assert_eq!(log_of(none.report()), ["Begin", "Item", "Done"]);
}

/// Sets timers for these times, in this order.
struct Several(Vec<Timed>);

#[derive(Clone, Copy)]
enum Timed {
    Hours(u32),
    /// A day of the year 1999.
    Day(u64),
}

#[workflow]
impl Several {
    #[step]
    async fn set(&self, _: &Begin) -> Vec<Timer<Tick>> {
        let timers = self.0.iter().zip(1..).map(|(time, number)| match time {
            Timed::Hours(hours) => Timer::after(*hours * HOUR, Tick(number)),
            Timed::Day(day) => {
                let before = Duration::from_hours(24 * (365 - day));
                Timer::at(VirtualClock::beginning() - before, Tick(number))
            }
        });
        timers.collect()
    }

    #[step]
    async fn take(&self, _: &Tick) {}

    #[step]
    async fn end(&self, _: &Close) -> Done {
        Done(0)
    }
}

// S4: by due time, then in the order of setting.
#[tokio::test]
async fn timers_fire_in_the_order_of_their_times_and_then_of_their_setting() {
    use Timed::Hours;
    let run = Scenario::new(Several([3, 1, 2, 1, 0].map(Hours).to_vec())).start(Begin(0)).await;
    assert_eq!(ticks(&run), [5, 2, 4, 3, 1]);
    assert_eq!(times(&run, "Tick"), [0, 1, 1, 2, 3].map(|hours| hours * HOUR));
    run.assert_waiting();
}

// S4
#[tokio::test]
async fn a_time_that_has_passed_comes_at_once_and_still_in_order() {
    let run =
        Scenario::new(Several(vec![Timed::Day(2), Timed::Hours(0), Timed::Day(1)])).start(Begin(0)).await;
    assert_eq!(ticks(&run), [3, 1, 2]);
    assert_eq!(run.elapsed(), Duration::ZERO);
}

/// Makes a timer and then fails.
struct Failing;

#[workflow]
impl Failing {
    #[step(on_error = "continue")]
    async fn set(&self, _: &Begin) -> Result<Timer<Tick>, StepError> {
        let _dropped = Timer::after(HOUR, Tick(0));
        Err(StepError::permanent("no"))
    }

    #[step]
    async fn end(&self, tick: &Tick) -> Done {
        Done(tick.0)
    }
}

// S23
#[tokio::test]
async fn an_execution_that_fails_sets_no_timer() {
    let run = Scenario::new(Failing).start(Begin(0)).await;
    run.assert_stalled("`set` failed: no");
    assert_eq!(run.elapsed(), Duration::ZERO);
}

/// Sets as many timers as the run begins with, and as many again later.
struct Many;

#[workflow]
impl Many {
    #[step]
    async fn set(&self, begin: &Begin) -> (Vec<Timer<Tick>>, Item) {
        ((0..begin.0).map(|_| Timer::after(HOUR, Tick(0))).collect(), Item(begin.0))
    }

    #[step]
    async fn again(&self, _: &Item) -> Timer<Tock> {
        Timer::after(HOUR, Tock(0))
    }

    #[step]
    async fn end(&self, _: &Tock) -> Done {
        Done(1)
    }
}

#[tokio::test]
async fn an_execution_that_sets_more_timers_than_a_run_may_have_fails() {
    Scenario::new(Many).start(Begin(9_999)).await.assert_output(&Done(1));
    let run = Scenario::new(Many).start(Begin(10_000)).await;
    let Err(RunError::StepFailed { step, source, .. }) = run.outcome() else { panic!("it did not fail") };
    assert_eq!(&**step, "again");
    assert_eq!(source.downcast_ref(), Some(&TimerError::TooMany { limit: 10_000 }));
}

// S30
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_timer_holds_no_permit() {
    let engine = Engine::builder().workflow(Alarm).clock(VirtualClock::new()).max_concurrent_runs(1);
    let engine = engine.build().unwrap();
    let first = engine.start::<Alarm>(Begin(1)).await.unwrap();
    assert_eq!(first.settled().await, RunStatus::Waiting);
    let timers = first.timers().await.unwrap();
    assert_eq!((timers[0].timer, &*timers[0].step, &*timers[0].event), (TimerId(1), "set", "Tick"));
    assert_eq!((timers[0].due, timers[0].after), (VirtualClock::beginning() + HOUR, HOUR));
    // It can begin only because the first one has given up its permit.
    let second = engine.start::<Alarm>(Begin(2)).await.unwrap();
    assert_eq!(first.outcome().await.unwrap(), Done(1));
    assert_eq!(second.outcome().await.unwrap(), Done(2));
}

// S31
#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_drops_its_timers() {
    let engine = Engine::builder().workflow(Alarm).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Alarm>(Begin(1)).await.unwrap();
    run.settled().await;
    run.cancel("enough").await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(log_of(&report), ["Begin"]);
    assert!(report.timers.is_empty());
}

// S23, S38
#[tokio::test]
async fn a_timer_stands_in_the_journal_with_what_set_it() {
    let store = std::sync::Arc::new(MemoryStore::default());
    let id = RunId::new("alarm");
    let engine = Engine::builder().workflow(Alarm).store(std::sync::Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Alarm>(Begin(1), RunOptions::new().id("alarm")).await.unwrap();
    run.settled().await;
    let mut records = workflow_core::store::EventStore::read(&*store, &id, Position(0), 100).await.unwrap();
    records.retain(|record| !matches!(record, Record::RunWaiting { .. }));
    let [
        ..,
        Record::ExecutionSucceeded { .. },
        Record::TimerSet { timer, execution, request, due, event, at, .. },
    ] = &records[..]
    else {
        panic!("{records:?}")
    };
    assert_eq!((*timer, execution.0, *request), (TimerId(1), 1, None));
    assert_eq!((event.name(), event.to_json().unwrap()), ("Tick", serde_json::json!(1)));
    assert_eq!(due.duration_since(*at).unwrap(), HOUR);
    run.cancel("enough").await.unwrap();
}

/// Each branch waits for a timer of its own.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn set(&self, item: &Item) -> Timer<Tick> {
        Timer::after(item.0 * HOUR, Tick(item.0))
    }

    #[step]
    async fn work(&self, item: &Item, tick: &Tick) -> Part {
        Part(10 * item.0 + tick.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S44, S47
#[test]
fn a_branch_settles_only_after_its_timers() {
    explore(|| Scenario::new(Waits).start(Begin(3))).orders(200).assert(|run| run.assert_output(&Done(66)));
}

/// A race of a step and a timer.
struct Deadline;

#[workflow]
impl Deadline {
    #[step]
    async fn limit(&self, _: &Begin) -> Timer<Tick> {
        Timer::after(HOUR, Tick(0))
    }

    #[step]
    async fn work(&self, _: &Begin) -> Part {
        Part(1)
    }

    #[step]
    async fn in_time(&self, part: &Part) -> Done {
        Done(part.0)
    }

    #[step]
    async fn too_late(&self, tick: &Tick) -> Done {
        Done(tick.0)
    }
}

// S28
#[test]
fn a_timer_may_fire_before_any_other_operation() {
    let explored = explore(|| Scenario::new(Deadline).start(Begin(0))).survey();
    let outputs: Vec<&str> = explored.outcomes().filter_map(Outcome::output).collect();
    assert!(outputs.contains(&"Done 1") && outputs.contains(&"Done 0"), "{outputs:?}");
    assert!(explored.is_exhaustive());
}

/// Sets its timer again until it gets a stop event.
struct Heart;

#[workflow]
impl Heart {
    #[step]
    async fn begin(&self, begin: &Begin) -> Timer<Tick> {
        Timer::after(HOUR, Tick(begin.0))
    }

    #[step(loops)]
    async fn beat(&self, tick: &Tick) -> Option<Timer<Tick>> {
        (tick.0 > 0).then(|| Timer::after(HOUR, Tick(tick.0 - 1)))
    }

    #[step]
    async fn end(&self, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }
}

// S30
#[tokio::test]
async fn a_step_may_set_the_timer_again_that_woke_it() {
    let run = Scenario::new(Heart).send_after(HOUR * 5 / 2, Alpha(3)).start(Begin(9)).await;
    run.assert_output(&Done(3));
    assert_eq!(ticks(&run), [9, 8]);
    let run = Scenario::new(Heart).start(Begin(3)).await;
    assert_eq!(ticks(&run), [3, 2, 1, 0]);
    run.assert_waiting();
}

#[tokio::test(start_paused = true)]
async fn an_explanation_names_the_timers_that_are_pending() {
    let engine = Engine::builder().workflow(Alarm).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Alarm>(Begin(1)).await.unwrap();
    run.settled().await;
    let explanation = run.explain().await.unwrap();
    expect![[r"
        waiting
        - no `Done` has ended the run yet
            `ring` did not run
        - `set` ran once
            x1, triggered by #1 `Begin`
        - `ring` did not run
            it needs `Tick`
                `set` has set a timer for it, which fires 3600s after the run began
        - timer t1 of `set` fires `Tick` 3600s after the run began"]]
    .assert_eq(explanation.to_string().split_once(": ").unwrap().1);
    assert_eq!(explanation.timers.len(), 1);
    run.cancel("enough").await.unwrap();
}

#[tokio::test]
async fn a_transcript_tells_what_came_from_a_timer() {
    let run = Scenario::new(Alarm).start(Begin(1)).await;
    expect![[r"
        #1 Begin from outside: 1
        x1 set by #1: succeeded
        waits
        #2 Tick by t1 of x1: 1
        x2 ring by #2: succeeded
        #3 Done of x2: 1
        completed with #3
    "]]
    .assert_eq(&run.transcript());
}

#[test]
fn a_drawing_marks_what_comes_later() {
    let graph = Alarm::graph();
    let edge = graph.edges.iter().find(|edge| &*edge.event == "Tick").unwrap();
    assert!(edge.timed && edge.kind == EdgeKind::One);
    assert!(graph.to_mermaid().contains("Tick later"));
    assert_eq!(
        graph.nodes.iter().find(|node| &*node.name == "ring").unwrap().forecast.as_ref().unwrap().to_string(),
        "1"
    );
}

// S36
#[tokio::test]
async fn a_time_far_away_is_no_error() {
    struct Never;

    #[workflow]
    impl Never {
        #[step]
        async fn set(&self, _: &Begin) -> (Timer<Tick>, Timer<Tick>) {
            (Timer::after(Duration::MAX, Tick(1)), Timer::at(SystemTime::UNIX_EPOCH, Tick(2)))
        }

        #[step]
        async fn end(&self, tick: &Tick) -> Done {
            Done(tick.0)
        }
    }

    Scenario::new(Never).start(Begin(0)).await.assert_output(&Done(2));
}
