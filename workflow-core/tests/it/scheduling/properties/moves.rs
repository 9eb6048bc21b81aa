//! The facts of a random run: possible ones in its present state, and some impossible ones.

use std::num::NonZeroU32;

use workflow_core::report::TimerId;
use workflow_core::scheduler::{Answer, CandidateId, Emission, Fact, FanOutTerms};
use workflow_core::table::{EventIndex, OutputRow};
use workflow_core::{ExecutionId, FanOutPolicy, Seq};
use workflow_testkit::model::PlannedOutput;

use super::play::{Moment, Play, Running};

impl Play<'_> {
    /// The fact that a move stands for, or one that is possible.
    pub(super) fn fact(&self, kind: u8, pick: u8, more: u16) -> Fact {
        let pick = usize::from(pick);
        // Most runs that ended clean up, if they can.
        if self.model.is_to_clean_up() && !kind.is_multiple_of(4) || kind == 255 {
            return if pick % 16 == 3 { Fact::CleanUpStopped } else { Fact::CleanUpStarted };
        }
        if self.model.cleans_up() && kind % 16 == 5 {
            return Fact::CleanUpStopped;
        }
        if self.model.end().is_some() && kind.is_multiple_of(3) || (kind, pick % 64) == (23, 5) {
            return Fact::Redriven;
        }
        // Pauses are short beside the run: another fact in between has an effect all the same.
        if self.model.is_paused() && pick.is_multiple_of(5) {
            return match pick % 35 {
                0 => Fact::Paused,
                5 => Fact::CancelRequested,
                _ => Fact::Unpaused,
            };
        }
        if (kind % 32, pick % 3) == (9, 1) {
            return if kind > 224 { Fact::Unpaused } else { Fact::Paused };
        }
        let wanted = match kind % 26 {
            0..=6 => None,
            7..=12 => self.failed(pick, more),
            13..=15 => self.answer(pick, more),
            16 | 17 => Some(self.received(pick)),
            18 | 19 => self.replied(pick),
            20 | 21 => Some(self.told_before(pick)),
            24 | 25 => self.fired(pick),
            22 => (pick % 16 == 0).then_some(Fact::AppendFailed),
            _ if pick % 16 == 1 => Some(Fact::TimeRanOut),
            _ => (pick % 16 == 0).then_some(Fact::CancelRequested),
        };
        let possible = || match chosen(&self.running, pick) {
            Some(running) => Some(self.succeeded(running, more)),
            None => self.answer(pick, more),
        };
        wanted.or_else(possible).unwrap_or_else(|| self.received(pick))
    }

    pub(super) fn received(&self, event: usize) -> Fact {
        Fact::EventReceived { event: self.index(event % self.plan.events.len()) }
    }

    fn index(&self, event: usize) -> EventIndex {
        let name = self.table.events()[event].name();
        self.table.event_named(name).expect("a name of the table")
    }

    /// Mostly the failure of an execution in a branch or with a catcher; any other at the root ends the run.
    fn failed(&self, pick: usize, more: u16) -> Option<Fact> {
        let may_fail = |running: &&Running| {
            running.scope != 0 || self.plan.failed(running.step).is_some() || more.is_multiple_of(8)
        };
        let running: Vec<Running> = self.running.iter().filter(may_fail).copied().collect();
        let Running { execution, .. } = chosen(&running, pick)?;
        Some(Fact::ExecutionFailed { execution: ExecutionId(execution) })
    }

    fn answer(&self, pick: usize, more: u16) -> Option<Fact> {
        let [byte, _] = more.to_le_bytes();
        Some(answered(chosen(&self.open_questions, pick)?, byte))
    }

    /// A reply to any event in the log, usually one that is no open request.
    fn replied(&self, pick: usize) -> Option<Fact> {
        let open = chosen(&self.model.open_requests(), pick / 4).filter(|_| pick % 4 != 3);
        let request = Seq(open.unwrap_or(pick as u64 / 4));
        (pick % 4 == 3 || open.is_some()).then_some(Fact::ReplyReceived { request })
    }

    /// A pending timer, or occasionally another.
    fn fired(&self, pick: usize) -> Option<Fact> {
        let pending = chosen(&self.model.pending_timers(), pick / 4).filter(|_| pick % 8 != 7);
        let timer = TimerId(pending.unwrap_or(pick as u64 / 8));
        (pick % 8 == 7 || pending.is_some()).then_some(Fact::TimerFired { timer })
    }

    /// A duplicate of an earlier fact.
    fn told_before(&self, pick: usize) -> Fact {
        let told = self.history.iter().filter_map(|moment| match moment {
            Moment::Told(Fact::EventReceived { .. }) | Moment::Said(_) | Moment::Stalled | Moment::Quiet => {
                None
            }
            Moment::Told(fact) => Some(fact.clone()),
        });
        chosen(&told.collect::<Vec<Fact>>(), pick).unwrap_or_else(|| self.received(pick))
    }

    /// The commit of an execution: any number of its declared outputs.
    pub(super) fn succeeded(&self, running: Running, dice: u16) -> Fact {
        let Running { execution, step, scope } = running;
        let mut dice = Dice(u32::from(dice));
        let mut emissions = Vec::new();
        for output in &self.plan.steps[step].outputs {
            let emission = match *output {
                PlannedOutput::Events(event) => Emission::Event(self.index(event)),
                PlannedOutput::Timer(event) => Emission::Timer(self.index(event)),
                PlannedOutput::Expiring(event) => Emission::Expiring(self.index(event)),
                PlannedOutput::FanOut(item) => {
                    emissions.push(self.fan_out(step, item, scope, &mut dice));
                    continue;
                }
            };
            let count = [1, 1, 1, 0, 2, 3][dice.below(6)];
            emissions.extend(std::iter::repeat_n(emission, count));
        }
        let emissions = emissions.into_iter().collect();
        Fact::ExecutionSucceeded { execution: ExecutionId(execution), emissions }
    }

    fn fan_out(&self, step: usize, item: usize, scope: u32, dice: &mut Dice) -> Emission {
        use FanOutPolicy::{ContinueOthers, FailAll, WaitAll};
        // Two levels of branches are enough; deeper fan-outs are empty. A failure that drops its branches tests more
        // the deeper it is: at the root it ends the run.
        let (items, policies) = match self.model.depth_of(scope) {
            1 => ([2, 1, 3, 2, 0, 5], [ContinueOthers, WaitAll, ContinueOthers, FailAll]),
            2 => ([2, 1, 3, 0, 1, 4], [FailAll, ContinueOthers, FailAll, WaitAll]),
            _ => ([0; 6], [FailAll; 4]),
        };
        let outputs = self.table.steps()[step].outputs().iter();
        let fan_out = outputs.filter(|output| output.event().get() == item).find_map(OutputRow::fan_out);
        Emission::FanOut {
            fan_out: fan_out.expect("the step fans out"),
            items: items[dice.below(6)],
            terms: FanOutTerms {
                concurrency: [None, None, NonZeroU32::new(1), NonZeroU32::new(2)][dice.below(4)],
                policy: policies[dice.below(4)],
                until: [None, NonZeroU32::new(1), None, NonZeroU32::new(2), None][dice.below(5)],
                tolerated: [0, 0, 1, 0, 2][dice.below(5)],
                // As most fan-outs; the others are those of earlier releases.
                only_busy: dice.below(4) != 3,
            },
        }
    }
}

/// A few choices out of a small number.
struct Dice(u32);

impl Dice {
    fn below(&mut self, limit: u32) -> usize {
        let drawn = self.0 % limit;
        self.0 = self.0 / limit + self.0 % limit * 977;
        drawn as usize
    }
}

pub(super) fn answered(question: u64, byte: u8) -> Fact {
    let answer = match byte % 64 {
        0..=41 => Answer::Yes,
        42..=61 => Answer::No,
        _ => Answer::Failed,
    };
    Fact::PreconditionAnswered { candidate: CandidateId(question), answer }
}

fn chosen<T: Clone>(of: &[T], pick: usize) -> Option<T> {
    of.get(pick.checked_rem(of.len())?).cloned()
}
