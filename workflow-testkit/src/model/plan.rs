//! A plain description of a workflow. The table under test and the model are both made from it, so neither depends on
//! the other.

use workflow_core::table::OnEnd;

use super::{failures, gathers};

/// A workflow: its event types and its steps, by number.
///
/// A plan is not checked by itself. [`table`](Self::table) checks its numbers, and [`problems`](Self::problems) the
/// graph.
///
/// ```
/// use workflow_testkit::model::{Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep, Take};
///
/// let plan = Plan {
///     events: vec![
///         PlannedEvent { start: true, ..PlannedEvent::default() },
///         PlannedEvent { stop: true, ..PlannedEvent::default() },
///     ],
///     steps: vec![PlannedStep {
///         inputs: vec![PlannedInput { events: vec![0], ..PlannedInput::default() }],
///         outputs: vec![PlannedOutput::Events(1)],
///         ..PlannedStep::default()
///     }],
///     ..Plan::default()
/// };
/// assert!(plan.problems().is_empty());
/// assert_eq!(plan.to_string(), "\
/// E0 (start)
/// E1 (stop)
/// s0(E0) -> E1
/// ");
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    /// The event types, by number.
    ///
    /// Tables, texts and facts name them `E0`, `E1` and so on, the reply to `E3` `E3.reply`, and its expiry
    /// `E3.expired`.
    pub events: Vec<PlannedEvent>,
    /// The steps in declaration order, named `s0`, `s1` and so on.
    pub steps: Vec<PlannedStep>,
    /// The most executions of the run; by default 100,000.
    pub executions: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { events: Vec::new(), steps: Vec::new(), executions: 100_000 }
    }
}

/// One event type, with its roles. Without roles it is passed between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a role of its own")]
pub struct PlannedEvent {
    /// Opens a run.
    pub start: bool,
    /// Ends a run.
    pub stop: bool,
    /// May be sent in from outside.
    pub external: bool,
    /// Is a failure of a step.
    ///
    /// An input that names it takes the failures of the steps that its step catches.
    pub failure: bool,
    /// For a request: the event that replies to it.
    pub reply: Option<usize>,
    /// For a reply: the request.
    pub replies_to: Option<usize>,
    /// For a request that can expire: its expiry event.
    pub expired: Option<usize>,
    /// For an expiry event: the request.
    pub expires: Option<usize>,
}

/// One step: its signature and its policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedStep {
    /// Its parameters that take events, in order.
    pub inputs: Vec<PlannedInput>,
    /// The events that the step may emit.
    pub outputs: Vec<PlannedOutput>,
    /// Whether the step has a precondition.
    pub has_precondition: bool,
    /// The maximum number of executions in one scope, if limited.
    pub max_executions: Option<u32>,
    /// The maximum number of concurrent executions, if limited.
    pub concurrency: Option<u32>,
    /// Whether the step has a named limit, so that the run bounds its concurrency and the scheduler does not.
    pub limited: bool,
    /// Whether the run continues when the step fails.
    pub continue_on_error: bool,
    /// The steps whose failures it catches; empty for all steps that take none.
    pub catches: Vec<usize>,
    /// For a clean-up step: the ends at which it runs.
    pub on_end: Option<OnEnd>,
}

/// One parameter; by default one required event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedInput {
    /// How it takes its events.
    pub take: Take,
    /// Whether the input is optional.
    pub optional: bool,
    /// Whether the step only reads the input, when another one triggers it. It runs without the input too.
    pub passive: bool,
    /// The event types of the input: one, or several for an event set.
    ///
    /// For a gather, the collected types: several, or none, only if it names its item.
    pub events: Vec<usize>,
    /// For a gather that names its fan-out, the item.
    pub item: Option<usize>,
}

impl PlannedInput {
    /// Whether the step runs without an event here.
    pub(super) fn can_lack(&self) -> bool {
        self.optional || self.passive
    }
}

/// How a parameter takes its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// The triggering event, or the latest.
    #[default]
    One,
    /// All events so far.
    List,
    /// The first N.
    Fixed(u32),
    /// The reply to a request; the event is the reply.
    Reply,
    /// The settled branches of a fan-out, with their events of these types.
    Gather,
}

/// One thing a step may emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedOutput {
    /// Any number of events of this type.
    Events(usize),
    /// Any number of branches, each with an item of this type.
    FanOut(usize),
    /// Any number of delayed events of this type.
    Timer(usize),
    /// Any number of expiring requests of this type.
    Expiring(usize),
}

/// A fan-out of a step.
///
/// Fan-outs are numbered in the order of the steps and their outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FanOutPlace {
    /// The step that fans out.
    pub step: usize,
    /// The event type of its items.
    pub item: usize,
}

impl Plan {
    /// Every fan-out, by number.
    pub fn fan_outs(&self) -> Vec<FanOutPlace> {
        let steps = self.steps.iter().enumerate();
        let outputs =
            steps.flat_map(|(step, planned)| planned.outputs.iter().map(move |output| (step, *output)));
        let fan_outs = outputs.filter_map(|(step, output)| match output {
            PlannedOutput::FanOut(item) => Some(FanOutPlace { step, item }),
            PlannedOutput::Events(_) | PlannedOutput::Timer(_) | PlannedOutput::Expiring(_) => None,
        });
        fan_outs.collect()
    }

    /// The number of a fan-out's completion event.
    ///
    /// Completion events are numbered after all others, as in a table.
    pub fn gathered(&self, fan_out: usize) -> usize {
        self.events.len() + fan_out
    }

    /// The number of a step's failure event, if another step catches it.
    ///
    /// Failure events are numbered after completion events, as in a table.
    pub fn failed(&self, step: usize) -> Option<usize> {
        let caught = failures::caught(self);
        let place = caught.iter().position(|other| *other == step)?;
        Some(self.events.len() + self.fan_outs().len() + place)
    }

    /// Per fan-out, the event types that can occur in the branches' own scope.
    ///
    /// These are the item and all events that steps can emit there. A gather takes the fan-outs whose branches can
    /// contain what it collects.
    ///
    /// # Panics
    /// If there are more event types and fan-outs than [a model can take](super::Model::new).
    pub fn branch_events(&self) -> Vec<Vec<usize>> {
        gathers::own_events(self).into_iter().map(|events| events.iter().collect()).collect()
    }
}
