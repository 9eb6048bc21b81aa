//! Turns a shape back into a table, through the builder, so that its names are resolved and checked like
//! others.

use std::sync::Arc;

use super::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef};
use crate::spec::{StepPolicy, TableError};
use crate::table::{DependencyTable, EventShape, InputShape, OutputShape, StepShape, TableShape};

impl DependencyTable {
    /// Builds the table of a shape, for example to draw a journal without its program.
    ///
    /// No Rust types belong to its events. The table is enough for drawings, forecasts and the scheduler. Its
    /// [`shape`](Self::shape) equals the argument, and it has nothing that a shape lacks.
    ///
    /// # Errors
    /// [`TableError`] with every problem that [`build_unchecked`](super::TableBuilder::build_unchecked)
    /// finds. The shape of a table that a program recorded has none.
    pub fn from_shape(shape: &TableShape) -> Result<Self, TableError> {
        let table = Self::builder(Arc::clone(&shape.workflow));
        let table = shape.events.iter().map(event).fold(table, super::TableBuilder::event);
        shape.steps.iter().map(step).fold(table, super::TableBuilder::step).build_unchecked()
    }
}

fn event(shape: &EventShape) -> EventDef {
    EventDef {
        replies_to: shape.replies_to.clone(),
        expires: shape.expires.clone(),
        version: shape.version,
        ..EventDef::new(Arc::clone(&shape.name), shape.roles)
    }
}

fn step(shape: &StepShape) -> StepDef {
    let precondition = shape.precondition.as_ref().map(|precondition| PreconditionDef {
        name: Arc::clone(&precondition.name),
        inputs: precondition.inputs.iter().filter_map(|place| shape.inputs.get(*place)).map(input).collect(),
    });
    StepDef {
        inputs: shape.inputs.iter().map(input).collect(),
        outputs: shape.outputs.iter().map(output).collect(),
        precondition,
        policy: StepPolicy {
            max_executions: shape.max_executions,
            concurrency: shape.concurrency,
            continue_on_error: shape.continue_on_error,
            at_most_once: shape.at_most_once,
            ..StepPolicy::DEFAULT
        },
        limit: shape.limit.clone(),
        key: shape.key.clone(),
        catches: (!shape.catches.is_empty()).then(|| shape.catches.clone()),
        on_end: shape.on_end,
        ..StepDef::new(Arc::clone(&shape.name))
    }
}

fn input(shape: &InputShape) -> InputDef {
    InputDef {
        kind: shape.kind,
        optional: shape.optional || shape.passive,
        passive: shape.passive,
        events: shape.events.clone(),
        item: shape.item.clone(),
    }
}

fn output(shape: &OutputShape) -> OutputDef {
    let OutputShape { least, many, fan_out, timed, .. } = *shape;
    OutputDef { event: Arc::clone(&shape.event), least, many, fan_out, timed }
}
