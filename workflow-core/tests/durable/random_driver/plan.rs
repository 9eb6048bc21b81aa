//! Random workflows that are built at run time (S57): a table, and for each step what it does beside.
//!
//! A workflow is a chain of blocks from its start event to its stop event. Each block takes the last event of the one before,
//! and is of one of many kinds; a fan-out has a chain in its branches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OnEnd, OutputDef, PreconditionDef, StepDef, StepPolicy, TableBuilder,
};
use workflow_core::{ErrorClass, FanOutPolicy, Retries, RetryPolicy};

const SECOND: Duration = Duration::from_secs(1);

/// The limit of the engines that some steps take part in.
pub(super) const LIMIT: &str = "bank";

/// A workflow.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) name: Arc<str>,
    events: Vec<EventDef>,
    steps: Vec<StepDef>,
    pub(super) manners: BTreeMap<String, Manner>,
    /// The events that may be sent.
    pub(super) externals: Vec<String>,
    /// The stop event that may be sent, if there is one.
    pub(super) closes: Option<String>,
    /// How long a run may be active.
    pub(super) timeout: Option<Duration>,
}

/// What a step does, beside its row in the table.
#[derive(Debug, Clone, Default)]
pub(super) struct Manner {
    pub(super) emits: Vec<Emits>,
    /// The longest time that it takes, in seconds.
    pub(super) rests: u32,
    pub(super) fails: Fails,
    pub(super) child: Option<Child>,
    pub(super) at_most_once: bool,
    pub(super) concurrency: Option<u32>,
    pub(super) limited: bool,
    pub(super) asks: Asks,
}

/// An output of a step.
#[derive(Debug, Clone)]
pub(super) enum Emits {
    One(String),
    Many(String, u32),
    /// One of both: the first at the first few numbers.
    Either(String, String),
    FanOut(String, Fan),
    Timer(String, u32),
    Expiring(String, u32),
}

/// How a fan-out is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fan {
    pub(super) items: u32,
    pub(super) policy: FanOutPolicy,
    pub(super) concurrency: Option<u32>,
    pub(super) until: Option<u32>,
    pub(super) tolerates: Option<u32>,
}

/// When a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Fails {
    #[default]
    Never,
    /// In the first attempts, with an error that is retried.
    First(u32),
    /// One execution in three, until it is mended.
    UntilMended,
    /// As the one before, with a panic.
    PanicsUntilMended,
    /// It takes longer than its timeout, in the first attempt.
    LateAtFirst,
    Always,
}

/// The child that a step runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child {
    pub(super) workflow: usize,
    pub(super) is_awaited: bool,
}

/// What the precondition of a step answers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Asks {
    #[default]
    Nothing,
    /// Whether the list has so many.
    IsLong(u32),
    /// No, one time in eight.
    Mostly,
    /// Nothing but an error, one time in eight, until it is mended.
    MostlyAtAll,
}

impl Plan {
    pub(super) fn table(&self) -> DependencyTable {
        let table = DependencyTable::builder(Arc::clone(&self.name));
        let table = self.events.iter().cloned().fold(table, TableBuilder::event);
        let table = self.steps.iter().cloned().fold(table, TableBuilder::step);
        table.build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The rows of the table, and what the steps do beside.
    pub(super) fn told(&self) -> Vec<String> {
        let shape = self.table().shape();
        let steps = shape.steps.iter().map(|step| format!("{}: {step:?}", self.name));
        let manners = self.manners.iter().map(|(step, manner)| format!("{}: {step} {manner:?}", self.name));
        steps.chain(manners).chain([format!("{}: {:?}", self.name, self.timeout)]).collect()
    }

    /// A random workflow, which may run those of later places.
    pub(super) fn random(rng: &mut fastrand::Rng, place: usize, workflows: usize) -> Self {
        let later = (place + 1..workflows).collect();
        let mut weaver = Weaver {
            rng,
            later,
            next: 0,
            has_failures: false,
            plan: Self {
                name: format!("w{place}").into(),
                events: vec![
                    EventDef::new("Begin", Roles::NONE.start()),
                    EventDef::new("Done", Roles::NONE.stop()),
                ],
                steps: Vec::new(),
                manners: BTreeMap::new(),
                externals: Vec::new(),
                closes: None,
                timeout: None,
            },
        };
        if weaver.one_in(8) {
            weaver.plan.timeout = Some(SECOND * weaver.rng.u32(30..300));
        }
        if weaver.one_in(4) {
            let closes = weaver.event(Roles::NONE.stop().external());
            weaver.plan.closes = Some(closes);
        }
        let blocks = if place == 0 { weaver.rng.u32(2..6) } else { weaver.rng.u32(1..3) };
        let last = weaver.chain("Begin".into(), blocks, 0);
        let end = weaver.bare(InputDef::one(last), 3);
        weaver.leads_to(end, "Done");
        weaver.plan
    }
}

/// Builds a workflow.
struct Weaver<'a> {
    rng: &'a mut fastrand::Rng,
    plan: Plan,
    /// The workflows that it may run.
    later: Vec<usize>,
    next: u32,
    has_failures: bool,
}

/// A step to be added.
struct Step {
    name: String,
    def: StepDef,
    policy: StepPolicy,
    most: Option<u32>,
    manner: Manner,
}

impl Step {
    fn input(self, input: InputDef) -> Self {
        Self { def: self.def.input(input), ..self }
    }

    fn emits(mut self, output: OutputDef, emits: Emits) -> Self {
        self.manner.emits.push(emits);
        self.outputs(output)
    }

    fn outputs(self, output: OutputDef) -> Self {
        Self { def: self.def.output(output), ..self }
    }

    fn fails(mut self, fails: Fails) -> Self {
        self.manner.fails = fails;
        self
    }
}

impl Weaver<'_> {
    fn chain(&mut self, from: String, blocks: u32, depth: u32) -> String {
        (0..blocks).fold(from, |from, _| self.block(&from, depth))
    }

    fn named(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}{}", self.next)
    }

    fn event(&mut self, roles: Roles) -> String {
        let name = self.named("e");
        self.plan.events.push(EventDef::new(name.as_str(), roles));
        name
    }

    /// A control event.
    fn plain(&mut self) -> String {
        self.event(Roles::NONE)
    }

    fn external(&mut self) -> String {
        if let Some(known) = self.plan.externals.first().filter(|_| self.rng.bool()) {
            return known.clone();
        }
        let name = self.event(Roles::NONE.external());
        self.plan.externals.push(name.clone());
        name
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.rng.u32(..count) == 0
    }

    /// A step without policies, which takes at most so many seconds.
    fn bare(&mut self, input: InputDef, rests: u32) -> Step {
        let name = self.named("s");
        let def = StepDef::new(name.as_str()).input(input);
        Step {
            name,
            def,
            policy: StepPolicy::DEFAULT,
            most: None,
            manner: Manner { rests, ..Manner::default() },
        }
    }

    /// A step that takes this event and has random policies.
    fn step(&mut self, from: &str) -> Step {
        let rests = self.rng.u32(1..12);
        let mut step = self.bare(InputDef::one(from), rests);
        step.manner.fails = match self.rng.u32(..14) {
            0..3 => Fails::First(self.rng.u32(1..3)),
            3 => Fails::UntilMended,
            4 if self.one_in(2) => Fails::PanicsUntilMended,
            5 => Fails::LateAtFirst,
            _ => Fails::Never,
        };
        if step.manner.fails == Fails::LateAtFirst || self.one_in(8) {
            step.policy = step.policy.timeout(SECOND * 15);
        }
        if self.one_in(4) {
            step.manner.at_most_once = true;
            step.policy = step.policy.at_most_once();
        }
        if self.one_in(5) {
            let most = self.rng.u32(1..3);
            step.manner.concurrency = Some(most);
            step.policy = step.policy.concurrency(most);
        }
        if self.one_in(12) {
            step.most = Some(self.rng.u32(1..5));
        }
        if self.one_in(6) {
            step.manner.limited = true;
        }
        if step.manner.fails != Fails::Never {
            let soon = Retries::fixed(self.rng.u32(1..4), SECOND * self.rng.u32(0..20));
            step.def = step.def.retry(RetryPolicy::none().on(ErrorClass::Transient, soon));
        }
        step
    }

    fn adds(&mut self, step: Step) {
        let Step { name, def, policy, most, manner } = step;
        let policy = most.map_or(policy, |most| policy.max_executions(most));
        let def = if manner.limited { def.limit(LIMIT) } else { def };
        self.plan.steps.push(def.policy(policy));
        self.plan.manners.insert(name, manner);
    }

    /// Adds a step that emits one event, which is new.
    fn leads(&mut self, step: Step) -> String {
        let to = self.plain();
        self.leads_to(step, &to);
        to
    }

    fn leads_to(&mut self, step: Step, to: &str) {
        self.adds(step.emits(OutputDef::event(to), Emits::One(to.to_owned())));
    }

    /// A block behind this event. Returns the event that it leads to.
    fn block(&mut self, from: &str, depth: u32) -> String {
        match self.rng.u32(..19) {
            0 => self.joined(from),
            1 => self.listed(from),
            2 => self.counted(from),
            3 => self.beside(from),
            4 => self.passive(from),
            5..8 if depth < 2 => self.fanned_out(from, depth),
            8 => self.timed(from),
            9 | 10 => self.asked(from),
            11 => self.awaited(from),
            12 => self.caught(from),
            13 | 14 if !self.later.is_empty() => self.with_child(from),
            15 => self.looped(from),
            16 => self.either(from),
            17 if depth == 0 => self.cleaned_up(from),
            18 => self.aside(from),
            _ => {
                let mut step = self.step(from);
                if self.one_in(3) {
                    step.manner.asks = if self.one_in(4) { Asks::MostlyAtAll } else { Asks::Mostly };
                    let precondition = PreconditionDef::new(self.named("p")).input(InputDef::one(from));
                    step.def = step.def.precondition(precondition);
                }
                self.leads(step)
            }
        }
    }

    fn joined(&mut self, from: &str) -> String {
        let (one, other) = (self.step(from), self.step(from));
        let (one, other) = (self.leads(one), self.leads(other));
        let step = self.step(&one).input(InputDef::one(other));
        self.leads(step)
    }

    /// A step that emits several, and a step for each of them.
    fn several(&mut self, from: &str, count: u32) -> String {
        let each = self.plain();
        let step = self.step(from);
        self.adds(step.emits(OutputDef::many(each.as_str()), Emits::Many(each.clone(), count)));
        let step = self.step(&each);
        // A list of a fixed length waits for each of them.
        self.leads(Step { most: None, ..step })
    }

    fn listed(&mut self, from: &str) -> String {
        let count = self.rng.u32(1..4);
        let done = self.several(from, count);
        let list = || InputDef::list([done.as_str()]);
        let mut step = self.bare(list(), 3);
        step.manner.asks = Asks::IsLong(count);
        step.def = step.def.precondition(PreconditionDef::new(self.named("p")).input(list()));
        self.leads(step)
    }

    fn counted(&mut self, from: &str) -> String {
        let (count, surplus) = (self.rng.u32(1..4), self.rng.u32(..2));
        let done = self.several(from, count + surplus);
        let step = self.bare(InputDef::fixed(count, [done]), 3);
        self.leads(step)
    }

    /// An event from outside may come, and makes the step run again.
    fn beside(&mut self, from: &str) -> String {
        let external = self.external();
        let step = self.step(from).input(InputDef::one(external).optional());
        self.leads(step)
    }

    fn passive(&mut self, from: &str) -> String {
        let external = self.external();
        let read = if self.rng.bool() { InputDef::one(external) } else { InputDef::list([external]) };
        let step = self.step(from).input(read.passive());
        self.leads(step)
    }

    fn fanned_out(&mut self, from: &str, depth: u32) -> String {
        let item = self.plain();
        let policies = [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll];
        let fan = Fan {
            items: self.rng.u32(..5),
            policy: policies[self.rng.usize(..3)],
            concurrency: if self.one_in(2) { Some(self.rng.u32(1..3)) } else { None },
            until: if self.one_in(4) { Some(self.rng.u32(1..4)) } else { None },
            tolerates: if self.one_in(3) { Some(self.rng.u32(1..3)) } else { None },
        };
        let step = self.step(from);
        self.adds(step.emits(OutputDef::fan_out(item.as_str()), Emits::FanOut(item.clone(), fan)));
        let blocks = self.rng.u32(1..3);
        let part = self.chain(item.clone(), blocks, depth + 1);
        let step = self.bare(InputDef::gather_of(item, [part]), 3);
        self.leads(step)
    }

    fn timed(&mut self, from: &str) -> String {
        let timer = self.plain();
        let step = self.step(from);
        let after = self.rng.u32(..60);
        self.adds(step.emits(OutputDef::timer(timer.as_str()), Emits::Timer(timer.clone(), after)));
        let step = self.step(&timer);
        self.leads(step)
    }

    fn asked(&mut self, from: &str) -> String {
        let request = self.event(Roles::NONE.request());
        let (reply, to, expires) = (self.named("r"), self.plain(), self.one_in(2));
        self.plan.events.push(EventDef::reply_to(reply.as_str(), request.as_str()));
        let step = self.step(from).outputs(OutputDef::event(request.as_str()));
        if expires {
            let late = self.named("x");
            self.plan.events.push(EventDef::expiry_of(late.as_str(), request.as_str()));
            let after = self.rng.u32(1..90);
            self.adds(step.emits(OutputDef::timer(late.as_str()), Emits::Expiring(request, after)));
            let step = self.step(&late);
            self.leads_to(step, &to);
        } else {
            let mut step = step;
            step.manner.emits.push(Emits::One(request));
            self.adds(step);
        }
        let step = self.bare(InputDef::reply(reply), 4);
        self.leads_to(step, &to);
        to
    }

    /// An event from outside has to come.
    fn awaited(&mut self, from: &str) -> String {
        let external = self.external();
        let step = self.step(from).input(InputDef::one(external));
        self.leads(step)
    }

    fn failure(&mut self) -> &'static str {
        if !std::mem::replace(&mut self.has_failures, true) {
            self.plan.events.push(EventDef::failure("StepFailed"));
        }
        "StepFailed"
    }

    fn caught(&mut self, from: &str) -> String {
        let (failure, to, mut step) = (self.failure(), self.plain(), self.step(from));
        if self.rng.bool() {
            step = step.fails(Fails::Always);
        }
        let name = step.name.clone();
        self.leads_to(step, &to);
        let mut step = self.bare(InputDef::one(failure), 3);
        step.def = step.def.catches([name]);
        self.leads_to(step, &to);
        to
    }

    fn with_child(&mut self, from: &str) -> String {
        let workflow = self.later[self.rng.usize(..self.later.len())];
        let mut step = self.step(from);
        step.manner.child = Some(Child { workflow, is_awaited: self.rng.u32(..4) > 0 });
        // Children that wait for a permit of their parent would never have it.
        step.manner.limited = false;
        self.leads(step)
    }

    fn looped(&mut self, from: &str) -> String {
        let (round, to) = (self.plain(), self.plain());
        let step = self.step(from);
        self.leads_to(step, &round);
        let mut step = self.step(&round).outputs(OutputDef::optional(round.as_str()));
        step.policy = step.policy.loops();
        let either = Emits::Either(round, to.clone());
        self.adds(step.emits(OutputDef::optional(to.as_str()), either));
        to
    }

    fn either(&mut self, from: &str) -> String {
        let (one, other) = (self.plain(), self.plain());
        let step = self.step(from).outputs(OutputDef::optional(one.as_str()));
        let either = Emits::Either(one.clone(), other.clone());
        self.adds(step.emits(OutputDef::optional(other.as_str()), either));
        let step = self.bare(InputDef::one_of([one, other]), 4);
        self.leads(step)
    }

    /// A step that undoes at the end of the run.
    fn cleaned_up(&mut self, from: &str) -> String {
        let step = self.step(from);
        let to = self.leads(step);
        let mut step = self.bare(InputDef::one(to.as_str()), 10);
        step.def = step.def.on_end(OnEnd::ANY);
        if self.one_in(3) {
            step.manner.at_most_once = true;
            step.policy = step.policy.at_most_once();
        }
        if self.one_in(3) {
            step = step.fails(Fails::UntilMended);
        }
        self.adds(step);
        to
    }

    /// A step whose failures change nothing.
    fn aside(&mut self, from: &str) -> String {
        let mut step = self.bare(InputDef::one(from), 9).fails(Fails::UntilMended);
        step.policy = step.policy.continue_on_error();
        self.adds(step);
        let step = self.step(from);
        self.leads(step)
    }
}
