//! The parts of a call that a run-time workflow uses: its inputs and outputs as JSON, and the injectables (S57).

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use super::super::emitter::MAX_EMITTED;
use super::super::{EmitError, RunInfo, StartedChildren};
use super::{SlotValue, StepCall};
use crate::cancel::Cancellation;
use crate::context::{RunContext, ThreadContext};
use crate::display::Display;
use crate::error::{BranchFailure, StepError};
use crate::event::{AnyEvent, Gathered, GatheredBranch, JsonEvent};
use crate::id::ScopeId;
use crate::output::JsonOutput;

/// The value of a parameter of a run-time step, or of its precondition.
///
/// [`StepCall::input`] returns it. [`AnyEvent::as_json`] has the data of an event, and [`AnyEvent::name`] says which of
/// several types it has.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputValue<'a> {
    /// No event: of an optional or a passive input, or of a parameter that the step does not declare.
    None,
    /// One event. A failure that the step catches is a [`StepFailed`](crate::StepFailed). An expiry has the data of the
    /// request that expired.
    Event(&'a AnyEvent),
    /// The events of a list, in the order of the log.
    Events(Vec<&'a AnyEvent>),
    /// A reply.
    Reply {
        /// The request that it answers.
        request: &'a AnyEvent,
        /// Its data.
        reply: &'a Value,
    },
    /// The settled branches of a fan-out, in the order of its items.
    Gather(Vec<JsonBranch<'a>>),
}

/// A settled branch, as a step of a run-time workflow gathers it.
#[derive(Debug)]
pub struct JsonBranch<'a> {
    gathered: &'a Gathered,
    branch: &'a GatheredBranch,
    events: Vec<&'a AnyEvent>,
}

impl<'a> JsonBranch<'a> {
    /// The item that opened the branch.
    pub fn item(&self) -> &'a AnyEvent {
        &self.branch.item
    }

    /// The events of the gathered types that were emitted in the branch's own scope, in log order. For a branch that was
    /// dropped, those until then.
    pub fn events(&self) -> &[&'a AnyEvent] {
        &self.events
    }

    /// The failure of the branch, if it failed.
    pub fn failure(&self) -> Option<&'a BranchFailure> {
        self.branch.failure.as_deref()
    }

    /// Whether the branch was dropped, since enough others had settled ([`FanOut::until`](crate::FanOut::until)). False for
    /// a branch that had failed by then.
    pub fn is_dropped(&self) -> bool {
        self.branch.is_dropped()
    }

    /// The number of branches of the fan-out that settled before this one. [`Branch::settled`](crate::Branch::settled)
    /// says more.
    pub fn settled(&self) -> u32 {
        self.gathered.settled(self.branch)
    }

    /// The scope of the branch, under which explanations and traces show it.
    pub fn scope(&self) -> ScopeId {
        self.branch.scope
    }
}

impl<'a> InputValue<'a> {
    fn of(event: &'a AnyEvent) -> Self {
        let json: Option<&JsonEvent> = event.payload_ref().filter(|_| event.roles().is_reply());
        match json.and_then(|json| Some((json.request()?, json.value()?))) {
            Some((request, reply)) => Self::Reply { request, reply },
            None => Self::Event(event),
        }
    }

    /// The data of the one event or the reply, as JSON.
    ///
    /// `None` for no event, for several, and for an event that is not JSON: a [`StepFailed`](crate::StepFailed), or a
    /// [typed output](crate::JsonOutput::typed) whose `Serialize` fails.
    pub fn json(&self) -> Option<&'a Value> {
        match self {
            Self::Event(event) => event.as_json(),
            Self::Reply { reply, .. } => Some(reply),
            Self::None | Self::Events(_) | Self::Gather(_) => None,
        }
    }
}

impl StepCall {
    /// The value of a parameter, by its place among the step's inputs, from 0; in a precondition, among its own.
    ///
    /// A list costs O(its events).
    pub fn input(&self, index: usize) -> InputValue<'_> {
        match self.frame.slots.get(index) {
            None | Some(SlotValue::Injected | SlotValue::Empty) => InputValue::None,
            Some(SlotValue::One(_, event)) => match event.payload_ref() {
                Some(gathered) => InputValue::Gather(self.branches(index, gathered)),
                None => InputValue::of(event),
            },
            Some(SlotValue::List(prefix)) => InputValue::Events(prefix.events().collect()),
        }
    }

    fn branches<'a>(&self, index: usize, gathered: &'a Gathered) -> Vec<JsonBranch<'a>> {
        let context = &self.frame.context;
        let branches = gathered.branches.iter().map(|branch| {
            let taken = branch.events.iter().filter(|event| context.run.gathers(context, index, event));
            JsonBranch { gathered, branch, events: taken.collect() }
        });
        branches.collect()
    }

    /// Emits an output of a run-time step, by the name of its event, at most 65,536 per execution.
    ///
    /// The outputs enter the log when the execution commits, in the order of these calls, all in one batch:
    /// [`commit`](Self::commit) the call with `()` behind the last. A failed attempt emits nothing. An execution that emits
    /// an output more or less often than its step declares fails.
    ///
    /// # Errors
    /// [`EmitError::Undeclared`] and [`EmitError::OtherForm`] if the step does not declare such an output,
    /// [`EmitError::Full`] after 65,536 outputs, [`EmitError::RustType`] in a step that is a Rust function,
    /// [`EmitError::OfPrecondition`] in a precondition. After an error the execution fails, also if the step ignores the
    /// error: [`commit`](Self::commit) returns it again.
    pub fn emit(&mut self, event: &str, value: impl Into<JsonOutput>) -> Result<(), EmitError> {
        let emitted = self.try_emit(event, value.into());
        if let Err(refused) = &emitted {
            self.frame.refuse(refused.clone());
        }
        emitted
    }

    fn try_emit(&mut self, event: &str, output: JsonOutput) -> Result<(), EmitError> {
        let context = &self.frame.context;
        if context.is_of_precondition() {
            return Err(EmitError::OfPrecondition { event: event.into() });
        }
        if self.batch.items().len() >= MAX_EMITTED {
            return Err(EmitError::Full { limit: MAX_EMITTED });
        }
        let types = context.run.json_output(context.step, event, output.form())?;
        output.emit(&types, &mut self.batch);
        Ok(())
    }

    /// The run, step, execution and attempt.
    pub fn info(&self) -> RunInfo {
        RunInfo::of(&self.frame)
    }

    /// The display of this attempt.
    pub fn display(&self) -> Display {
        self.frame.display()
    }

    /// The cancellation of this execution.
    pub fn cancellation(&self) -> Cancellation {
        self.frame.cancellation()
    }

    /// The context of the run.
    ///
    /// # Errors
    /// If the step's definition does not declare that it [uses a context](crate::table::StepDef::uses_context).
    pub fn run_context(&self) -> Result<RunContext, StepError> {
        self.frame.context.run_context()
    }

    /// The context that all runs of a thread share.
    ///
    /// # Errors
    /// As [`run_context`](Self::run_context).
    pub fn thread_context(&self) -> Result<ThreadContext, StepError> {
        self.frame.context.declares_context()?;
        Ok(Arc::clone(&self.frame.context.run).thread_context())
    }

    /// The children of the attempt, without their type.
    pub(crate) fn attempt_children(&self) -> Result<Arc<dyn StartedChildren>, StepError> {
        self.frame.attempt_children()
    }

    /// The engine that drives the run, without its type.
    pub(crate) fn engine_parts(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        self.frame.engine_parts()
    }
}
