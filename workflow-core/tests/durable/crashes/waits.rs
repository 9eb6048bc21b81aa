//! Waits survive crashes: timers, expiring requests, slow replies, and timed outside events (S32, S36, S42).

use std::time::Duration;

use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

/// Makes several requests with time limits.
struct Deadlines;

#[workflow]
impl Deadlines {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Expiring<Ask>> {
        (1..=begin.0).map(|n| Ask(n).expires_in(seconds(10 * u64::from(n)))).collect()
    }

    #[step]
    async fn answered(&self, reply: &Reply<Ask>) -> Item {
        Item(**reply)
    }

    #[step]
    async fn unanswered(&self, expired: &Expired<Ask>) -> Item {
        Item(100 * expired.request().0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 3>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

/// Sets its timer repeatedly.
struct Ticks;

#[workflow]
impl Ticks {
    #[step]
    async fn begin(&self, begin: &Begin) -> Timer<Item> {
        Timer::after(seconds(10), Item(begin.0))
    }

    #[step(loops)]
    async fn tick(&self, item: &Item) -> (Option<Timer<Item>>, Option<Done>) {
        match item.0 {
            0 => (None, Some(Done(0))),
            left => (Some(Timer::after(seconds(10), Item(left - 1))), None),
        }
    }
}

/// Timers that are due together, in branches.
struct TimersInBranches;

#[workflow]
impl TimersInBranches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn set(&self, item: &Item) -> Timer<Part> {
        Timer::after(seconds(u64::from(item.0 / 2)), Part(item.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// Outside events, in sequence and at their times.
struct Notes;

#[workflow]
impl Notes {
    #[step]
    async fn take(&self, _begin: &Begin, note: &Note) -> Item {
        Item(note.0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 4>) -> Done {
        Done(items.iter().fold(0, |all, item| 10 * all + item.0))
    }
}

/// Runs longer than its timeout.
struct Slow;

#[workflow]
impl Slow {
    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        tokio::time::sleep(seconds(10)).await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, _item: &Item) -> Done {
        std::future::pending().await
    }
}

/// Repeats its request after a no.
struct Insists;

#[workflow]
impl Insists {
    #[step]
    async fn ask(&self, begin: &Begin) -> Ask {
        Ask(begin.0)
    }

    #[step(loops)]
    async fn answered(&self, reply: &Reply<Ask>) -> (Option<Ask>, Option<Done>) {
        match **reply {
            0 => (None, Some(Done(reply.request().0))),
            left => (Some(Ask(left - 1)), None),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, external)]
struct Closed(u32);

/// Ends when it is closed, whatever its steps do.
struct Tap;

#[workflow(output = Closed)]
impl Tap {
    #[step]
    async fn pour(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn taste(&self, items: &Gather<Item>) {
        assert_eq!(items.len(), 3);
    }
}

/// Undoes at its end what it did.
struct Undoes;

#[workflow]
impl Undoes {
    #[step]
    async fn act(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, _note: &Note) -> Done {
        Done(item.0)
    }

    #[step(on_end = "timed_out")]
    async fn undo(&self, _item: &Item) {}
}

fn until(after: u64) -> RunOptions {
    RunOptions::new().deadline(VirtualClock::beginning() + seconds(after))
}

// S73
survive! {
    a_deadline_while_a_step_runs: Scenario::new(Slow).options(until(45)), 1;
    a_deadline_while_the_run_waits: Scenario::new(Notes)
        .options(until(15))
        .send(Note(1))
        .send_after(seconds(10), Note(2)), 0;
    a_deadline_among_timers: Scenario::new(Ticks).options(until(25)), 3;
    a_deadline_at_the_time_of_a_timer: Scenario::new(Ticks).options(until(20)), 3;
    a_deadline_and_a_clean_up: Scenario::new(Undoes).options(until(5)), 1;
}

survive! {
    a_stop_event_from_outside: Scenario::new(Tap).send(Closed(7)), 3;
    deadlines: Scenario::new(Deadlines).reply_after(seconds(15), |ask: &Ask| ask.0), 3;
    ticks: Scenario::new(Ticks), 3;
    timers_in_branches: Scenario::new(TimersInBranches), 4;
    notes: Scenario::new(Notes)
        .send(Note(1))
        .send_after(seconds(20), Note(2))
        .send(Note(3))
        .send_after(seconds(10), Note(4)), 0;
    time_that_runs_out: Scenario::new(Slow).options(RunOptions::new().timeout(seconds(30))), 1;
    time_that_passes_while_a_run_waits: Scenario::new(Insists)
        .options(RunOptions::new().timeout(seconds(30)))
        .reply_after(seconds(100), |ask: &Ask| ask.0), 2;
    time_that_passes_before_something_comes: Scenario::new(Notes)
        .options(RunOptions::new().timeout(seconds(5)))
        .send_after(seconds(10), Note(1))
        .send_after(seconds(20), Note(2))
        .send_after(seconds(30), Note(3))
        .send_after(seconds(40), Note(4)), 0;
    replies_that_ask_again: Scenario::new(Insists).reply(|ask: &Ask| ask.0), 3;
}
