//! Replay of a successful execution: rebuilds its emissions from the records of its batch.
//!
//! The journal has a batch as `ExecutionSucceeded`, then its events, then its timers. The scheduler needs the
//! emissions in an order that a step could have returned:
//!
//! ```text
//! records                                  emissions
//! ExecutionSucceeded fan_outs: [Pages x2]  Event Note
//! EventLogged 5 Note    scope of the run   FanOut Pages x2     (6 and 7 are in new scopes)
//! EventLogged 6, 7 Page new scopes         Expiring Ask        (its timer names the request)
//! EventLogged 8 Ask     scope of the run   Timer Remind
//! TimerSet request: 8
//! TimerSet Remind
//! ```
//!
//! Invariant: the emissions lead to the positions, the scopes and the timers of the records, or the batch is a
//! contradiction. An event in a known scope is plain. An event in a new scope is an item, and the record of the success
//! says of which fan-out.
//!
//! Example, with the picture: the step may have returned `Remind` before `Note`. That order is lost, and does not
//! matter, since both orders lead to the same records.

use std::time::SystemTime;

use super::{Replay, ReplayResult};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::run::state::{Applied, Batch, DueEvent, Returned};
use crate::scheduler::{Cause, Emission, Entry, FanOutTerms};
use crate::store::{OpenedFanOut, Record, RecordedEvent};

/// The events and timers in an execution's batch.
struct Committed<'a> {
    /// In order of position.
    events: Vec<Logged<'a>>,
    /// In order of number.
    timers: Vec<TimerSet<'a>>,
}

/// An event of the batch, from its record.
struct Logged<'a> {
    /// The position that the state must give the event again.
    seq: Seq,
    /// The scope of the execution, or a new one for an item.
    scope: ScopeId,
    /// Still encoded: nothing is decoded before the emissions are known to fit.
    event: &'a RecordedEvent,
}

/// A timer of the batch, from its record.
struct TimerSet<'a> {
    /// The request of the same batch that the timer expires.
    request: Option<Seq>,
    /// The recorded time, which is not computed again (S36).
    due: SystemTime,
    /// The event for when the timer fires, still encoded.
    event: &'a RecordedEvent,
}

impl<'a> Committed<'a> {
    /// Collects the records behind `ExecutionSucceeded` that belong to this execution.
    fn of(execution: ExecutionId, behind: &'a [Record]) -> Self {
        let (mut events, mut timers) = (Vec::new(), Vec::new());
        for record in behind {
            match record {
                Record::EventLogged { seq, scope, cause: Cause::Execution(by), event, .. }
                    if *by == execution =>
                {
                    events.push(Logged { seq: *seq, scope: *scope, event });
                }
                Record::TimerSet { execution: by, request, due, event, .. } if *by == execution => {
                    timers.push(TimerSet { request: *request, due: *due, event });
                }
                // The batch of an execution is contiguous in the journal.
                _ => break,
            }
        }
        Self { events, timers }
    }
}

impl Replay {
    /// Applies the batch of an execution. `behind` are the records after `ExecutionSucceeded`. Returns how
    /// many records the batch has.
    ///
    /// The order: emissions first, since they need the state before the batch, in which the new scopes do not
    /// exist. Then events are decoded, and timers after them, since an expiry is decoded with its request. At
    /// last the state applies the batch, and its places are compared with the records.
    pub(super) fn succeeded(
        &mut self,
        execution: ExecutionId,
        fan_outs: &[OpenedFanOut],
        behind: &[Record],
        at: SystemTime,
    ) -> ReplayResult<usize> {
        let Committed { events: logged, timers: set } = Committed::of(execution, behind);
        let emissions = self.emissions(fan_outs, &logged, &set)?;
        // Only types of the present table are decoded (S43).
        let mut events = Vec::with_capacity(logged.len());
        let mut types = Vec::with_capacity(logged.len());
        for Logged { event, .. } in &logged {
            let index = self.event_named(event.name())?;
            events.push(self.decoded(event, index, None)?);
            types.push(index);
        }
        let (mut timers, mut timed) = (Vec::with_capacity(set.len()), Vec::with_capacity(set.len()));
        for TimerSet { request, due, event } in &set {
            let index = self.event_named(event.name())?;
            timed.push(index);
            // An expiry is decoded with the request that expires, which is in the same batch.
            let asked = request.and_then(|seq| logged.iter().position(|logged| logged.seq == seq));
            let asked = asked.and_then(|place| events.get(place));
            let decoded = self.host.read(event, index, asked);
            let unreadable = |error| {
                let name = event.name();
                format!("a timer has event `{name}`, which cannot be read as what it is now: {error}")
            };
            timers.push(DueEvent { due: *due, event: decoded.map_err(unreadable)? });
        }
        let returned = Returned::of(emissions, events, timers);
        let applied = self.apply(Batch::Succeeded { execution, returned }, at)?;
        let Applied::Logged(entered) = applied else { return Ok(1) };
        // The state must have given each event the place that the journal has.
        let mut places = entered.events().iter().zip(logged.iter().zip(types));
        let agree = places.all(|(entry, (Logged { seq, scope, .. }, event))| {
            *entry == Entry { seq: *seq, scope: *scope, event }
        });
        if !agree || entered.events().len() != logged.len() {
            return Err("it would be logged elsewhere now".into());
        }
        if !entered.timers().iter().map(|timer| timer.event).eq(timed) {
            return Err("it would set other timers now".into());
        }
        Ok(1 + logged.len() + set.len())
    }

    /// The emissions in an order that leads to the same records. Events and timers have separate numbers, so
    /// the order between the two is free, except that a request comes before the timer that expires it.
    fn emissions(
        &self,
        fan_outs: &[OpenedFanOut],
        events: &[Logged<'_>],
        timers: &[TimerSet<'_>],
    ) -> ReplayResult<Vec<Emission>> {
        let mut emissions = Vec::new();
        // `next`: the first event that has no emission yet.
        let (mut next, mut fan_outs) = (0, fan_outs.iter());
        for TimerSet { request, event, .. } in timers {
            match request {
                None => emissions.push(Emission::Timer(self.event_named(event.name())?)),
                Some(request) => {
                    let place = events.iter().position(|logged| logged.seq == *request);
                    let place = place
                        .filter(|place| *place >= next)
                        .ok_or("a timer expires no request of its batch")?;
                    self.emit(&events[next..place], &mut fan_outs, &mut emissions)?;
                    emissions.push(Emission::Expiring(self.event_named(events[place].event.name())?));
                    next = place + 1;
                }
            }
        }
        self.emit(&events[next..], &mut fan_outs, &mut emissions)?;
        // The fan-outs that are left have no items.
        for fan_out in fan_outs {
            if fan_out.items > 0 {
                return Err("a fan-out lacks items".into());
            }
            emissions.push(self.fan_out(fan_out)?);
        }
        Ok(emissions)
    }

    /// Adds the emissions of these events: plain events, and fan-outs where a new scope begins.
    fn emit<'a>(
        &self,
        events: &[Logged<'_>],
        fan_outs: &mut impl Iterator<Item = &'a OpenedFanOut>,
        emissions: &mut Vec<Emission>,
    ) -> ReplayResult {
        // A scope beyond those that exist so far is opened by this very batch.
        let known = self.state.log.branched();
        let mut rest = events;
        while let Some((logged, behind)) = rest.split_first() {
            if logged.scope.0 <= known {
                emissions.push(Emission::Event(self.event_named(logged.event.name())?));
                rest = behind;
                continue;
            }
            // The scope is new, so the items of a fan-out begin here. Fan-outs without items may come before
            // it.
            let items = loop {
                let opened = fan_outs.next().ok_or("an event belongs to a scope that no fan-out opened")?;
                emissions.push(self.fan_out(opened)?);
                if opened.items > 0 {
                    break opened.items as usize;
                }
            };
            rest = rest.get(items..).ok_or("a fan-out lacks items")?;
        }
        Ok(())
    }

    /// The emission that opens a fan-out, if the present table still has it.
    fn fan_out(&self, opened: &OpenedFanOut) -> ReplayResult<Emission> {
        let OpenedFanOut { fan_out: ref name, items, concurrency, only_busy, until, tolerated, policy } =
            *opened;
        let terms = FanOutTerms { concurrency, only_busy, until, tolerated, policy };
        let gathers = self.host.table.event(self.event_named(name)?).gathers;
        let fan_out = gathers.ok_or_else(|| format!("`{name}` is no fan-out any more"))?;
        Ok(Emission::FanOut { fan_out, items, terms })
    }
}
