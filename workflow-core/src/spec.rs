//! The constant table of a typed workflow, as the macros write it.

use std::time::Duration;

use crate::event::EventType;
use crate::retry::RetryPolicy;

pub mod check;
mod input;
mod on_end;
mod output;
mod table_error;

pub use input::{InputKind, InputSpec};
pub use on_end::OnEnd;
pub use output::OutputSpec;
pub use table_error::{TableError, TableProblem};

use check::Findings;

/// The declaration of a workflow: its name, and a row per step in declaration order.
#[derive(Debug, Clone, Copy)]
pub struct TableSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The event types that the declared output can hold; empty without a declared output.
    pub(crate) output: &'static [EventType],
    pub(crate) steps: &'static [StepSpec],
    /// The mistakes that the compiler found in the steps, stored so that it searches only once.
    pub(crate) findings: Findings,
}

impl TableSpec {
    /// Creates the table of a workflow whose output holds one of these events.
    ///
    /// Explores the graph of the rows, in O(rows).
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

    /// The description of the workflow: its doc comment.
    pub const fn description(&self) -> &'static str {
        self.description
    }

    /// Whether the compiler has checked the graph.
    ///
    /// The compiler checks graphs of up to 512 steps, 1,024 parameters, 1,024 outputs and 128 fan-outs, with up to 7,000
    /// events in all branches together. A larger graph is checked when an engine is built.
    pub const fn is_checked(&self) -> bool {
        self.findings.complete
    }

    /// The rows of the steps, in declaration order.
    pub const fn steps(&self) -> &'static [StepSpec] {
        self.steps
    }
}

/// The declaration of one step: name, inputs, output, precondition and policy.
#[derive(Debug, Clone, Copy)]
pub struct StepSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) inputs: &'static [InputSpec],
    pub(crate) output: OutputSpec,
    pub(crate) precondition: Option<PreconditionSpec>,
    pub(crate) policy: StepPolicy,
    /// The rows of the steps whose failures it catches; empty for the default rule.
    pub(crate) catches: &'static [usize],
    /// Makes the retry policy of the step; `None` for the engine's policy.
    pub(crate) retry: Option<fn() -> RetryPolicy>,
    /// Whether the step has a compaction, which reduces its input after a `context_limit` failure.
    pub(crate) compacts: bool,
    /// The ends of a run at which the step runs, of a clean-up step.
    pub(crate) on_end: Option<OnEnd>,
    /// The named limit of the engine that the step's attempts take part in.
    pub(crate) limit: Option<&'static str>,
    /// The method that makes the idempotency key of an execution.
    pub(crate) key: Option<&'static str>,
}

impl StepSpec {
    /// Declares a step with the default policy and no precondition.
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
            on_end: None,
            limit: None,
            key: None,
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

    /// Names the steps whose failures it catches, by row.
    pub const fn catches(self, steps: &'static [usize]) -> Self {
        Self { catches: steps, ..self }
    }

    /// Declares that the step has a compaction: after a failure of class `context_limit` it gets another
    /// attempt.
    pub const fn compacts(self) -> Self {
        Self { compacts: true, ..self }
    }

    /// Declares a clean-up step: it runs at these ends of a run, and at no other time.
    pub const fn on_end(self, ends: OnEnd) -> Self {
        Self { on_end: Some(ends), ..self }
    }

    /// Names the engine's [limit](crate::Limit) of the step's attempts.
    pub const fn limit(self, name: &'static str) -> Self {
        Self { limit: Some(name), ..self }
    }

    /// Names the method that makes the [idempotency key](crate::RunInfo::idempotency_key) of an execution.
    pub const fn key(self, method: &'static str) -> Self {
        Self { key: Some(method), ..self }
    }

    /// Sets a retry policy for the step. The engine calls the function when it is built.
    pub const fn retry(self, policy: fn() -> RetryPolicy) -> Self {
        Self { retry: Some(policy), ..self }
    }

    /// The name of the step.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The parameters of the step in order, without `&self`.
    pub const fn inputs(&self) -> &'static [InputSpec] {
        self.inputs
    }

    /// The outputs that the step returns. Events of an [`Emitter`](crate::Emitter) are among the inputs.
    pub const fn output(&self) -> OutputSpec {
        self.output
    }
}

/// The declaration of a precondition: its name and its parameters.
#[derive(Debug, Clone, Copy)]
pub struct PreconditionSpec {
    pub(crate) name: &'static str,
    pub(crate) inputs: &'static [InputSpec],
}

impl PreconditionSpec {
    /// Declares a precondition of this name with these parameters.
    pub const fn new(name: &'static str, inputs: &'static [InputSpec]) -> Self {
        Self { name, inputs }
    }
}

/// The policy of a step: limits, and how it runs.
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
    pub(crate) at_most_once: bool,
    /// Whether executions have tasks of their own; `None` where that follows from how long they compute.
    pub(crate) spawn: Option<bool>,
    pub(crate) reruns: bool,
    pub(crate) loops: bool,
}

impl StepPolicy {
    /// No limits, no timeout, and a failure ends the run.
    pub const DEFAULT: Self = Self {
        max_executions: None,
        concurrency: None,
        timeout: None,
        continue_on_error: false,
        at_most_once: false,
        spawn: None,
        reruns: false,
        loops: false,
    };

    /// Limits the executions per scope.
    pub const fn max_executions(self, most: u32) -> Self {
        Self { max_executions: Some(most), ..self }
    }

    /// Limits the concurrent executions. Others wait in order.
    pub const fn concurrency(self, most: u32) -> Self {
        Self { concurrency: Some(most), ..self }
    }

    /// Limits the duration of an attempt. A longer attempt fails with class `transient`. A table refuses 0.
    pub const fn timeout(self, after: Duration) -> Self {
        Self { timeout: Some(after), ..self }
    }

    /// Lets the run continue when the step fails. The failure is recorded.
    pub const fn continue_on_error(self) -> Self {
        Self { continue_on_error: true, ..self }
    }

    /// Makes no attempt again that may have begun: for an effect that must never happen twice.
    pub const fn at_most_once(self) -> Self {
        Self { at_most_once: true, ..self }
    }

    /// Says whether every execution runs as a task of its own, or none does. Default: the engine gives tasks to executions of
    /// steps that compute for long, on a runtime with several threads.
    ///
    /// It changes which thread polls an execution, and no result.
    pub const fn spawn(self, own_task: bool) -> Self {
        Self { spawn: Some(own_task), ..self }
    }

    /// Declares that the step should run again for later arrivals, which silences the compiler's warning.
    pub const fn reruns(self) -> Self {
        Self { reruns: true, ..self }
    }

    /// Allows the step to emit an event that it takes.
    pub const fn loops(self) -> Self {
        Self { loops: true, ..self }
    }
}
