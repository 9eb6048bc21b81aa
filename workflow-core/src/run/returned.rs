//! From what a step returned to its batch: checks the events against the declared outputs, and translates
//! them for the scheduler.

use super::clock::RunClock;
use super::state::{DueEvent, Returned, ReturnedBatch, RunState};
use crate::display::Display;
use crate::error::{Internal, StepError};
use crate::event::{AnyEvent, EventCheck, EventKind};
use crate::output::{Emitted, EmittedItem, FanOutPolicy, MAX_TIMERS, SetTimer, TimerError};
use crate::scheduler::{Emission, FanOutTerms};
use crate::table::{DependencyTable, EventIndex, OutputRow, StepIndex};

/// The display of an execution that returned, if it has shown something.
pub(super) type PendingDisplay = Option<Box<Display>>;

impl Returned {
    /// All its events: those for the log, and those of timers.
    pub(super) fn all_events(&self) -> impl Iterator<Item = &AnyEvent> {
        self.events().iter().chain(self.timers().iter().map(|timer| &timer.event))
    }
}

/// The batch of a returned execution, if the step declares its events and their sizes and timers are within
/// bounds.
#[inline]
pub(super) fn returned(
    state: &RunState,
    step: StepIndex,
    mut emitted: Emitted,
    check: EventCheck,
    clock: &RunClock,
) -> Result<(Returned, PendingDisplay), StepError> {
    let outputs = &state.table().step(step).outputs;
    if state.table().edges.accept.is_some() {
        state.table().check_outputs(outputs, &emitted)?;
    }
    if emitted.items().is_empty() {
        return Ok((Returned::Nothing, emitted.commit_display()));
    }
    let Some(mut event) = emitted.take_only() else {
        return returned_batch(state, outputs, emitted, check, clock);
    };
    let index = plain_output(state.table(), outputs, &event)?;
    check.check(&mut event, 1)?;
    Ok((Returned::Event(index, event), emitted.commit_display()))
}

fn returned_batch(
    state: &RunState,
    outputs: &[OutputRow],
    mut emitted: Emitted,
    check: EventCheck,
    clock: &RunClock,
) -> Result<(Returned, PendingDisplay), StepError> {
    let emissions = emissions(state.table(), outputs, &emitted)?;
    emitted.check_events(check)?;
    let timers = emitted.timers();
    if timers > 0 && state.scheduler.timers().len() + timers > MAX_TIMERS {
        return Err(TimerError::TooMany { limit: MAX_TIMERS }.into());
    }
    let (shown, now) = (emitted.commit_display(), clock.wall());
    let (events, timers) = emitted.into_parts();
    let due = |SetTimer { when, event }: SetTimer| DueEvent { due: when.due(now), event };
    let timers = timers.into_iter().map(due).collect();
    Ok((Returned::Many(Box::new(ReturnedBatch { emissions, events, timers })), shown))
}

/// The event's type, if the step declares it as a plain output.
#[inline]
fn plain_output(
    table: &DependencyTable,
    outputs: &[OutputRow],
    event: &AnyEvent,
) -> Result<EventIndex, Internal> {
    let known = event.kind();
    let is_it = |row: &&OutputRow| row.fan_out.is_none() && !row.timed && table.is_of(row.event, known);
    let declared = outputs.iter().find(is_it);
    declared.map(|row| row.event).ok_or_else(|| undeclared(known))
}

/// The emissions of an execution, as its step declares them.
fn emissions(
    table: &DependencyTable,
    outputs: &[OutputRow],
    emitted: &Emitted,
) -> Result<Vec<Emission>, StepError> {
    let mut emissions = Vec::with_capacity(emitted.items().len());
    for item in emitted.items() {
        item.check_terms()?;
        let known = item.kind();
        let declares = |row: &&OutputRow| table.is_of(row.event, known);
        let emission = outputs.iter().filter(declares).find_map(|row| emission_of(item, row, table));
        // A request can expire only where its type declares an expiry event.
        let emission = emission.filter(|emission| match emission {
            Emission::Expiring(request) => table.event(*request).expired.is_some(),
            _ => true,
        });
        emissions.push(emission.ok_or_else(|| undeclared(known))?);
    }
    Ok(emissions)
}

#[cold]
pub(super) fn undeclared(known: EventKind<'_>) -> Internal {
    Internal::UndeclaredOutput { event: known.name().into() }
}

/// The item in the scheduler's terms; `None` if `output` does not declare it.
fn emission_of(item: &EmittedItem, output: &OutputRow, table: &DependencyTable) -> Option<Emission> {
    match (item, output.fan_out) {
        (EmittedItem::Event(_), None) if !output.timed => Some(Emission::Event(output.event)),
        (EmittedItem::Timer(_), None) if output.timed => Some(Emission::Timer(output.event)),
        (EmittedItem::Expiring(_), None) if !output.timed => Some(Emission::Expiring(output.event)),
        (EmittedItem::FanOut(opened), Some(fan_out)) => Some(Emission::FanOut {
            fan_out,
            items: u32::try_from(opened.items.len()).ok()?,
            terms: FanOutTerms {
                concurrency: opened.concurrency,
                // Journaled with the fan-out, so it is set only where it can make a difference.
                only_busy: opened.concurrency.is_some() && table.can_wait(),
                until: opened.until,
                // A policy under which nothing fails has nothing to tolerate.
                tolerated: match (opened.policy, &opened.tolerated) {
                    (FanOutPolicy::FailAll | FanOutPolicy::WaitAll, Ok(tolerated)) => *tolerated,
                    _ => 0,
                },
                policy: opened.policy,
            },
        }),
        _ => None,
    }
}
