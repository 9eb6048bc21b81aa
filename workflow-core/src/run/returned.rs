//! The batch of an execution that succeeded: its step's declared outputs, checked, in the terms of the scheduler.

use super::clock::RunClock;
use super::state::{DueEvent, Returned, ReturnedBatch, RunState};
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::event::{AnyEvent, EventCheck};
use crate::output::{Emitted, EmittedItem, MAX_TIMERS, SetTimer, TimerError};
use crate::scheduler::Emission;
use crate::table::{DependencyTable, EventIndex, OutputRow, StepIndex};

/// The display items of the execution that returned a batch.
pub(super) type Shown = Option<Box<Display>>;

impl Returned {
    /// Every event of it: those for the log, and those that timers bring.
    pub(super) fn all_events(&self) -> impl Iterator<Item = &AnyEvent> {
        self.events().iter().chain(self.timers().iter().map(|timer| &timer.event))
    }
}

/// What an execution of a step returned, if a run in this state may take it.
#[inline]
pub(super) fn returned(
    state: &RunState,
    step: StepIndex,
    mut emitted: Emitted,
    check: EventCheck,
    clock: &RunClock,
) -> Result<(Returned, Shown), StepError> {
    let outputs = &state.table().step(step).outputs;
    if emitted.items().is_empty() {
        return Ok((Returned::Nothing, emitted.stand()));
    }
    let Some(mut event) = emitted.take_only() else {
        return returned_batch(state, outputs, emitted, check, clock);
    };
    let index = plain_output(state.table(), outputs, &event)?;
    check.check(&mut event, 1)?;
    Ok((Returned::Event(index, event), emitted.stand()))
}

fn returned_batch(
    state: &RunState,
    outputs: &[OutputRow],
    mut emitted: Emitted,
    check: EventCheck,
    clock: &RunClock,
) -> Result<(Returned, Shown), StepError> {
    let emissions = emissions(state.table(), outputs, &emitted)?;
    emitted.check_events(check)?;
    let timers = emitted.timers();
    if timers > 0 && state.scheduler.timers().len() + timers > MAX_TIMERS {
        return Err(TimerError::TooMany { limit: MAX_TIMERS }.into());
    }
    let (shown, now) = (emitted.stand(), clock.wall());
    let (events, timers) = emitted.into_parts();
    let due = |SetTimer { when, event }: SetTimer| DueEvent { due: when.due(now), event };
    let timers = timers.into_iter().map(due).collect();
    Ok((Returned::Many(Box::new(ReturnedBatch { emissions, events, timers })), shown))
}

/// The event type that a step declares, if it is what it emitted.
fn plain_output(
    table: &DependencyTable,
    outputs: &[OutputRow],
    event: &AnyEvent,
) -> Result<EventIndex, Internal> {
    let known = event.known_type();
    let is_it = |row: &&OutputRow| {
        row.fan_out.is_none() && !row.timed && table.event(row.event).type_id == Some(known.type_id)
    };
    let declared = outputs.iter().find(is_it);
    declared.map(|row| row.event).ok_or(Internal::UndeclaredOutput { event: known.name })
}

/// What an execution emitted, as its step declares it.
fn emissions(
    table: &DependencyTable,
    outputs: &[OutputRow],
    emitted: &Emitted,
) -> Result<Vec<Emission>, Internal> {
    let mut emissions = Vec::with_capacity(emitted.items().len());
    for item in emitted.items() {
        let event = item.event_type();
        let declares = |row: &&OutputRow| table.event(row.event).type_id == Some(event.type_id);
        let emission = outputs.iter().filter(declares).find_map(|row| emission_of(item, row));
        // A request can expire only where that is declared too.
        let emission = emission.filter(|emission| match emission {
            Emission::Expiring(request) => table.event(*request).expired.is_some(),
            _ => true,
        });
        emissions.push(emission.ok_or(Internal::UndeclaredOutput { event: event.name })?);
    }
    Ok(emissions)
}

/// The item in the scheduler's terms; `None` if `output` does not declare it.
fn emission_of(item: &EmittedItem, output: &OutputRow) -> Option<Emission> {
    match (item, output.fan_out) {
        (EmittedItem::Event(_), None) if !output.timed => Some(Emission::Event(output.event)),
        (EmittedItem::Timer(_), None) if output.timed => Some(Emission::Timer(output.event)),
        (EmittedItem::Expiring(_), None) if !output.timed => Some(Emission::Expiring(output.event)),
        (EmittedItem::FanOut(opened), Some(fan_out)) => Some(Emission::FanOut {
            fan_out,
            items: u32::try_from(opened.items.len()).ok()?,
            concurrency: opened.concurrency,
            policy: opened.policy,
        }),
        _ => None,
    }
}
