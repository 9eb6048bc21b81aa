//! One random run: the scheduler and the model are told the same facts and are asked for the same number of
//! actions, and every action must be the same.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use workflow_core::scheduler::{Answer, CandidateId, Emission, Fact, Scheduler, SchedulerLimits, Verdict};
use workflow_core::{DependencyTable, ExecutionId, FanOutPolicy, Seq};

use super::reached::Reached;
use super::tape::{Shape, Tape};
use crate::model::{Model, Plan, PlannedOutput};
use crate::transcript::{Line, Reader};

/// A run that goes on and on is stopped here; the model is naive, and its cost grows with the log.
const MOST_EVENTS: usize = 96;

/// Both sides, and what was told and said so far.
struct Play<'a> {
    tape: &'a Tape,
    plan: Rc<Plan>,
    table: Arc<DependencyTable>,
    scheduler: Scheduler,
    model: Model,
    reader: Reader,
    history: Vec<Moment>,
    open_questions: Vec<u64>,
    running: Vec<Running>,
    unconfirmed: usize,
    /// How many executions may still return the moment they start.
    inline: u32,
}

/// An execution that was started and did not return yet.
#[derive(Clone, Copy)]
struct Running {
    execution: u64,
    step: usize,
    scope: u32,
}

enum Moment {
    Told(Fact),
    Said(Line),
}

/// Plays a random run, and says what it came by.
pub(crate) fn play(tape: &Tape, shape: Shape) -> Result<Reached, String> {
    let plan = Rc::new(tape.plan(shape));
    let table = Arc::new(plan.table());
    let limits =
        SchedulerLimits { concurrent_executions: plan.concurrent_executions, ..SchedulerLimits::default() };
    let mut play = Play {
        tape,
        scheduler: Scheduler::with_limits(Arc::clone(&table), limits),
        model: Model::new(Rc::clone(&plan)),
        reader: Reader::new(Arc::clone(&table)),
        plan,
        table,
        history: Vec::new(),
        open_questions: Vec::new(),
        running: Vec::new(),
        unconfirmed: 0,
        inline: 8,
    };
    play.play()?;
    Ok(Reached::of(play.lines(), play.model.depth()))
}

impl Play<'_> {
    fn play(&mut self) -> Result<(), String> {
        self.tell(self.received(0));
        self.drain(usize::MAX)?;
        let mut after_end = 0;
        for [kind, a, b, c] in &self.tape.moves {
            after_end += u32::from(self.model.end().is_some());
            if self.reader.log().len() > MOST_EVENTS || after_end > 3 {
                break;
            }
            let fact = self.fact(*kind, *a, u16::from_le_bytes([*b, *c]));
            self.tell(fact);
            // Now and then the next fact arrives before every action was asked for.
            self.drain(if c % 8 == 7 { usize::from(c / 8 % 4) } else { usize::MAX })?;
        }
        while self.unconfirmed > 0 {
            self.tell(Fact::Appended);
            self.drain(usize::MAX)?;
        }
        self.compare_totals()
    }

    fn tell(&mut self, fact: Fact) {
        match &fact {
            Fact::Appended => self.unconfirmed = self.unconfirmed.saturating_sub(1),
            Fact::PreconditionAnswered { candidate, .. } => {
                self.open_questions.retain(|question| *question != candidate.0);
            }
            Fact::ExecutionSucceeded { execution, .. } | Fact::ExecutionFailed { execution } => {
                self.running.retain(|running| running.execution != execution.0);
            }
            _ => {}
        }
        self.model.apply(&fact);
        self.history.push(Moment::Told(fact.clone()));
        self.scheduler.apply(fact);
    }

    /// Asks both sides for actions, at most so many.
    fn drain(&mut self, most: usize) -> Result<(), String> {
        for _ in 0..most {
            let said = self.scheduler.next_action().map(|action| self.reader.read(&action));
            let expected = self.model.next();
            if said != expected {
                return Err(self.difference(said, expected));
            }
            let Some(line) = said else { break };
            self.history.push(Moment::Said(line.clone()));
            self.react(&line);
        }
        Ok(())
    }

    /// What the run does with an action at once; the rest is left to later moves.
    fn react(&mut self, line: &Line) {
        let Tape { manner, answers, .. } = self.tape;
        match line {
            Line::Asks { question, .. } => {
                self.open_questions.push(*question);
                if manner & 1 != 0 {
                    let at = usize::try_from(*question).unwrap_or(0) % answers.len();
                    self.tell(answered(*question, answers[at]));
                }
            }
            Line::Starts { execution, call } => {
                let running = Running { execution: *execution, step: call.step, scope: call.scope };
                self.running.push(running);
                if manner & 4 != 0 && self.inline > 0 {
                    self.inline -= 1;
                    self.tell(self.succeeded(running, u16::from(*manner) * 7));
                }
            }
            Line::Appends { .. } | Line::Gathers { .. } => {
                self.unconfirmed += 1;
                if manner & 2 == 0 {
                    self.tell(Fact::Appended);
                }
            }
            Line::Drops { execution } => self.running.retain(|running| running.execution != *execution),
            _ => {}
        }
    }

    /// The fact that a move stands for, or one that is possible.
    fn fact(&self, kind: u8, pick: u8, more: u16) -> Fact {
        let pick = usize::from(pick);
        let wanted = match kind % 24 {
            0..=9 => None,
            10..=12 => self.failed(pick, more),
            13..=15 => self.answer(pick, more),
            16 | 17 => Some(self.received(pick)),
            18 | 19 => self.replied(pick),
            20 | 21 => Some(self.told_before(pick)),
            22 => (self.unconfirmed > 0).then_some(Fact::Appended),
            _ => (pick % 16 == 0).then_some(Fact::CancelRequested),
        };
        let possible = || match chosen(&self.running, pick) {
            Some(running) => Some(self.succeeded(running, more)),
            None => self.answer(pick, more).or((self.unconfirmed > 0).then_some(Fact::Appended)),
        };
        wanted.or_else(possible).unwrap_or_else(|| self.received(pick))
    }

    fn received(&self, event: usize) -> Fact {
        let name = self.table.events()[event % self.plan.events.len()].name();
        Fact::EventReceived { event: self.table.event_named(name).expect("a name of the table") }
    }

    /// Mostly the failure of what runs in a branch; one at the root ends the run.
    fn failed(&self, pick: usize, more: u16) -> Option<Fact> {
        let may_fail = |running: &&Running| running.scope != 0 || more % 8 == 0;
        let running: Vec<Running> = self.running.iter().filter(may_fail).copied().collect();
        let Running { execution, .. } = chosen(&running, pick)?;
        Some(Fact::ExecutionFailed { execution: ExecutionId(execution) })
    }

    fn answer(&self, pick: usize, more: u16) -> Option<Fact> {
        let [byte, _] = more.to_le_bytes();
        Some(answered(chosen(&self.open_questions, pick)?, byte))
    }

    /// A reply to anything in the log, more often than not to something that is no open request.
    fn replied(&self, pick: usize) -> Option<Fact> {
        let open = chosen(&self.model.open_requests(), pick / 4).filter(|_| pick % 4 != 3);
        let request = Seq(open.unwrap_or(pick as u64 / 4));
        (pick % 4 == 3 || open.is_some()).then_some(Fact::ReplyReceived { request })
    }

    /// A duplicate of an earlier fact.
    fn told_before(&self, pick: usize) -> Fact {
        let told = self.history.iter().filter_map(|moment| match moment {
            Moment::Told(Fact::EventReceived { .. } | Fact::Appended) | Moment::Said(_) => None,
            Moment::Told(fact) => Some(fact.clone()),
        });
        chosen(&told.collect::<Vec<Fact>>(), pick).unwrap_or(Fact::Appended)
    }

    /// What an execution commits: any number of what its step declares.
    fn succeeded(&self, running: Running, dice: u16) -> Fact {
        let Running { execution, step, scope } = running;
        let mut dice = Dice(u32::from(dice));
        let mut emissions = Vec::new();
        for (number, output) in self.plan.steps[step].outputs.iter().enumerate() {
            match output {
                PlannedOutput::Events(_) => {
                    let count = [1, 1, 1, 0, 2, 3][dice.below(6)];
                    let event = self.table.steps()[step].outputs()[number].event();
                    emissions.extend((0..count).map(|_| Emission::Event(event)));
                }
                PlannedOutput::FanOut(_) => emissions.push(self.fan_out(step, number, scope, &mut dice)),
            }
        }
        let emissions = emissions.into_iter().collect();
        Fact::ExecutionSucceeded { execution: ExecutionId(execution), emissions }
    }

    fn fan_out(&self, step: usize, output: usize, scope: u32, dice: &mut Dice) -> Emission {
        use FanOutPolicy::{ContinueOthers, FailAll, WaitAll};
        // Two levels of branches are full of surprises already; below, fan-outs are empty. A failure that
        // drops its branches is the more telling the further in it is: at the root it ends the run.
        let (items, policies) = match self.model.depth_of(scope) {
            1 => ([2, 1, 3, 2, 0, 5], [ContinueOthers, WaitAll, ContinueOthers, FailAll]),
            2 => ([2, 1, 3, 0, 1, 4], [FailAll, ContinueOthers, FailAll, WaitAll]),
            _ => ([0; 6], [FailAll; 4]),
        };
        Emission::FanOut {
            fan_out: self.table.steps()[step].outputs()[output].fan_out().expect("it is a fan-out"),
            items: items[dice.below(6)],
            concurrency: [None, None, NonZeroU32::new(1), NonZeroU32::new(2)][dice.below(4)],
            policy: policies[dice.below(4)],
        }
    }
}

impl Play<'_> {
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.history.iter().filter_map(|moment| match moment {
            Moment::Said(line) => Some(line),
            Moment::Told(_) => None,
        })
    }

    /// What the report of a run is made of (S34).
    fn compare_totals(&self) -> Result<(), String> {
        let steps = || 0..self.plan.steps.len();
        let (scheduler, model) = (&self.scheduler, &self.model);
        let index = |step: usize| {
            self.table.step_named(self.table.steps()[step].name()).expect("a name of the table")
        };
        let said = (
            scheduler.end().cloned(),
            scheduler.is_degraded(),
            scheduler.open_requests().map(|(seq, _)| seq.0).collect::<Vec<u64>>(),
            steps().map(|step| scheduler.executions_of(index(step))).collect::<Vec<u64>>(),
            steps().map(|step| scheduler.surplus_of(index(step))).collect::<Vec<u64>>(),
            self.executed(),
        );
        let expected = (
            model.end().cloned(),
            model.is_degraded(),
            model.open_requests(),
            steps().map(|step| model.executions_of(step)).collect::<Vec<u64>>(),
            steps().map(|step| model.surplus_of(step)).collect::<Vec<u64>>(),
            model.executed(),
        );
        if said == expected {
            return Ok(());
        }
        Err(format!("{}\nscheduler: {said:?}\nmodel:     {expected:?}", self.story()))
    }

    /// Step, scope and trigger of every execution, as the record of evaluations has them.
    fn executed(&self) -> Vec<(u64, usize, u32, u64)> {
        let decisions = self.scheduler.decisions().iter();
        let executed = decisions.filter_map(|decision| match decision.verdict {
            Verdict::Executed(id) => Some((id.0, decision.step.get(), decision.scope.0, decision.trigger.0)),
            _ => None,
        });
        let mut executed: Vec<_> = executed.collect();
        executed.sort_unstable();
        executed
    }

    fn difference(&mut self, said: Option<Line>, expected: Option<Line>) -> String {
        let mut text = self.story();
        let _ = writeln!(text, "\nThen the scheduler says:");
        let mut next = said;
        for _ in 0..12 {
            let Some(line) = next else { break };
            let _ = writeln!(text, "  {}", line.text(&self.table));
            next = self.scheduler.next_action().map(|action| self.reader.read(&action));
        }
        let _ = writeln!(text, "but the model says:");
        let mut next = expected;
        for _ in 0..12 {
            let Some(line) = next else { break };
            let _ = writeln!(text, "  {}", line.text(&self.table));
            next = self.model.next();
        }
        text
    }

    /// The table, and what both sides agree on.
    fn story(&self) -> String {
        let mut text = format!("the scheduler and the model differ\n\n{}\n", self.plan);
        for moment in &self.history {
            let _ = match moment {
                Moment::Told(fact) => writeln!(text, "* {fact:?}"),
                Moment::Said(line) => writeln!(text, "  {}", line.text(&self.table)),
            };
        }
        text
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

fn answered(question: u64, byte: u8) -> Fact {
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
