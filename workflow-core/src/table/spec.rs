//! The static table as the macros write it: constant data, with references into the program's image.

use std::time::Duration;

use crate::check::Findings;
use crate::event::EventType;
use crate::input::InputSpec;
use crate::output::OutputSpec;
use crate::retry::RetryPolicy;

/// What a workflow declares: its name and a row per step, in declaration order.
#[derive(Debug, Clone, Copy)]
pub struct TableSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The event types that the workflow's output can be made of; empty if that is not known.
    pub(crate) output: &'static [EventType],
    pub(crate) steps: &'static [StepSpec],
    /// What the compiler has to say of the steps, found once for all places that it can stand at.
    pub(crate) findings: Findings,
}

impl TableSpec {
    /// A table of these rows, for a workflow whose output is made of one of these events. O(rows): their
    /// graph is explored.
    pub const fn new(
        name: &'static str,
        description: &'static str,
        output: &'static [EventType],
        steps: &'static [StepSpec],
    ) -> Self {
        Self { name, description, output, steps, findings: Findings::of(steps, output) }
    }

    /// The name of the workflow.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The workflow's doc comment.
    pub const fn description(&self) -> &'static str {
        self.description
    }

    /// Whether the compiler has checked the graph: it is not larger than 512 steps, 1,024 parameters, as many
    /// outputs, and 128 fan-outs. A larger one is checked when an engine is built.
    pub const fn is_checked(&self) -> bool {
        self.findings.complete
    }

    /// A row per step, in declaration order.
    pub const fn steps(&self) -> &'static [StepSpec] {
        self.steps
    }
}

/// One step: name, inputs, outputs, precondition and policy.
#[derive(Debug, Clone, Copy)]
pub struct StepSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) inputs: &'static [InputSpec],
    pub(crate) output: OutputSpec,
    pub(crate) precondition: Option<PreconditionSpec>,
    pub(crate) policy: StepPolicy,
    /// The rows of the steps whose failures it takes; without any, those that the rule leaves it.
    pub(crate) catches: &'static [usize],
    /// Makes its own retry policy; without one it has the engine's.
    pub(crate) retry: Option<fn() -> RetryPolicy>,
    /// Whether something compacts for it when what it works with is too large.
    pub(crate) compacts: bool,
}

impl StepSpec {
    /// A step with the default policy and no precondition.
    pub const fn new(name: &'static str, inputs: &'static [InputSpec], output: OutputSpec) -> Self {
        let (precondition, policy, retry) = (None, StepPolicy::DEFAULT, None);
        Self {
            name,
            description: "",
            inputs,
            output,
            precondition,
            policy,
            catches: &[],
            retry,
            compacts: false,
        }
    }

    /// Sets the description: the step's doc comment.
    pub const fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Sets the precondition.
    pub const fn precondition(self, precondition: PreconditionSpec) -> Self {
        Self { precondition: Some(precondition), ..self }
    }

    /// Sets the policy.
    pub const fn policy(self, policy: StepPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Names the steps whose failures it takes, by their rows.
    pub const fn catches(self, steps: &'static [usize]) -> Self {
        Self { catches: steps, ..self }
    }

    /// Has a compaction: a failure of class `context_limit` is followed by another attempt.
    pub const fn compacts(self) -> Self {
        Self { compacts: true, ..self }
    }

    /// Sets a retry policy of its own, which is made when an engine is built.
    pub const fn retry(self, policy: fn() -> RetryPolicy) -> Self {
        Self { retry: Some(policy), ..self }
    }

    /// The step's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What its parameters take, in their order and without `&self`.
    pub const fn inputs(&self) -> &'static [InputSpec] {
        self.inputs
    }

    /// What it returns. What it emits through an [`Emitter`](crate::Emitter) is among its inputs.
    pub const fn output(&self) -> OutputSpec {
        self.output
    }
}

/// A precondition: its name and its parameters.
#[derive(Debug, Clone, Copy)]
pub struct PreconditionSpec {
    pub(crate) name: &'static str,
    pub(crate) inputs: &'static [InputSpec],
}

impl PreconditionSpec {
    /// A precondition of this name with these parameters.
    pub const fn new(name: &'static str, inputs: &'static [InputSpec]) -> Self {
        Self { name, inputs }
    }
}

/// How a step may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is one key of `#[step]`, independent of the others"
)]
pub struct StepPolicy {
    pub(crate) max_executions: Option<u32>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) continue_on_error: bool,
    pub(crate) spawn: bool,
    pub(crate) reruns: bool,
    pub(crate) loops: bool,
}

impl StepPolicy {
    /// Any number of executions, all at once; a failure ends the run.
    pub const DEFAULT: Self = Self {
        max_executions: None,
        concurrency: None,
        timeout: None,
        continue_on_error: false,
        spawn: false,
        reruns: false,
        loops: false,
    };

    /// At most so many executions per scope.
    pub const fn max_executions(self, most: u32) -> Self {
        Self { max_executions: Some(most), ..self }
    }

    /// At most so many executions at a time; the surplus waits in order.
    pub const fn concurrency(self, most: u32) -> Self {
        Self { concurrency: Some(most), ..self }
    }

    /// No attempt takes longer; what does fails, as transient.
    pub const fn timeout(self, after: Duration) -> Self {
        Self { timeout: Some(after), ..self }
    }

    /// A failure is recorded and the run goes on.
    pub const fn continue_on_error(self) -> Self {
        Self { continue_on_error: true, ..self }
    }

    /// Every execution is a task of its own.
    pub const fn spawn(self) -> Self {
        Self { spawn: true, ..self }
    }

    /// The step is meant to run again for later arrivals.
    pub const fn reruns(self) -> Self {
        Self { reruns: true, ..self }
    }

    /// The step may emit what it takes.
    pub const fn loops(self) -> Self {
        Self { loops: true, ..self }
    }
}
