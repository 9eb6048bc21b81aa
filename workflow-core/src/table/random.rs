//! Random tables for tests that compare two ways to derive the same from a table. Most have mistakes; `build_unchecked`
//! accepts about a third.

use crate::event::Roles;
use crate::spec::{OnEnd, StepPolicy};
use crate::table::{DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, StepDef, TableBuilder};

/// A source of numbers that depend on the seed only.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        // Xorshift, whose state is never 0.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// True in one of so many cases.
    fn one_in(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }
}

/// The choices of which a random table consists.
struct Parts {
    numbers: Numbers,
    /// The events that steps pass to each other.
    passed: u64,
    /// Whether there are fan-outs, requests, failures, and external events.
    has: [bool; 4],
}

const FAN_OUTS: usize = 0;
const REQUESTS: usize = 1;
const FAILURES: usize = 2;
const EXTERNAL: usize = 3;

/// A table with up to this many steps.
pub(crate) fn table(seed: u64, most_steps: u64) -> TableBuilder {
    let mut numbers = Numbers(seed | 1);
    // The first numbers of similar seeds are similar.
    for _ in 0..8 {
        numbers.below(2);
    }
    let steps = 1 + numbers.below(most_steps);
    let passed = 1 + numbers.below(steps + 2);
    let has = [3, 2, 3, 2].map(|cases| numbers.one_in(cases));
    let mut parts = Parts { numbers, passed, has };
    let table = DependencyTable::builder("random")
        .event(EventDef::new("Start", Roles::NONE.start()))
        .event(EventDef::new("Stop", Roles::NONE.stop()))
        .event(EventDef::new("Again", Roles::NONE.start()))
        .event(EventDef::new("Said", Roles::NONE.external()))
        .event(EventDef::new("Ask", Roles::NONE.request()))
        .event(EventDef::reply_to("Ask.reply", "Ask"))
        .event(EventDef::failure("Failed"));
    let table =
        (0..passed).fold(table, |table, at| table.event(EventDef::new(format!("E{at}"), Roles::NONE)));
    (0..steps).fold(table, |table, at| table.step(parts.step(at, steps)))
}

impl Parts {
    fn event(&mut self) -> String {
        match self.numbers.below(12) {
            0 | 1 => "Start".into(),
            2 if self.numbers.one_in(3) => "Again".into(),
            2 if self.has[EXTERNAL] => "Said".into(),
            _ => format!("E{}", self.numbers.below(self.passed)),
        }
    }

    /// Rarely one of the events that no branch has.
    fn gathered(&mut self) -> String {
        match self.numbers.below(16) {
            0 => "Stop".into(),
            1 => "Failed".into(),
            _ => self.event(),
        }
    }

    fn emitted(&mut self) -> String {
        match self.numbers.below(12) {
            0 | 1 => "Stop".into(),
            2 if self.has[REQUESTS] => "Ask".into(),
            _ => format!("E{}", self.numbers.below(self.passed)),
        }
    }

    fn step(&mut self, at: u64, steps: u64) -> StepDef {
        let mut step = StepDef::new(format!("s{at}"));
        let inputs: Vec<InputDef> = (0..=self.numbers.below(3)).map(|_| self.input()).collect();
        if self.numbers.one_in(8) {
            step = step.precondition(PreconditionDef::new("wanted").input(inputs[0].clone()));
        }
        step = inputs.into_iter().fold(step, StepDef::input);
        if self.numbers.one_in(20) {
            return step.on_end(OnEnd::ANY);
        }
        if self.has[FAILURES] && self.numbers.one_in(4) {
            step = step.input(InputDef::one("Failed"));
            if self.numbers.one_in(2) {
                step = step.catches([format!("s{}", self.numbers.below(steps))]);
            }
        }
        step = (0..self.numbers.below(3)).fold(step, |step, _| step.output(self.output()));
        let mut policy = StepPolicy::DEFAULT;
        if self.numbers.one_in(6) {
            policy = policy.max_executions(1 + u32::try_from(self.numbers.below(4)).unwrap());
        }
        if self.numbers.one_in(3) {
            policy = policy.loops();
        }
        step.policy(policy)
    }

    fn input(&mut self) -> InputDef {
        let input = match self.numbers.below(12) {
            0 => InputDef::list([self.event()]),
            1 => InputDef::fixed(1 + u32::try_from(self.numbers.below(3)).unwrap(), [self.event()]),
            2 | 3 => InputDef::one_of([self.event(), self.event()]),
            4 if self.has[REQUESTS] => InputDef::reply("Ask.reply"),
            5 | 6 if self.has[FAN_OUTS] || self.numbers.one_in(20) => InputDef::gather(self.gathered()),
            7 if self.has[FAN_OUTS] => InputDef::gather_of(self.event(), [self.event()]),
            _ => InputDef::one(self.event()),
        };
        match self.numbers.below(10) {
            0 => input.optional(),
            1 => input.passive(),
            _ => input,
        }
    }

    fn output(&mut self) -> OutputDef {
        let event = self.emitted();
        match self.numbers.below(8) {
            0 => OutputDef::many(event),
            1 | 2 => OutputDef::optional(event),
            3 => OutputDef::timer(event),
            4 if self.has[FAN_OUTS] => OutputDef::fan_out(event),
            5 if self.has[FAN_OUTS] => OutputDef::optional_fan_out(event),
            _ => OutputDef::event(event),
        }
    }
}
