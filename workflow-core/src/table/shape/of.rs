//! Derives the shape of a compiled table, and the JSON of a shape.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};

use super::{EventShape, InputShape, OutputShape, PreconditionShape, RecordedTable, StepShape, TableShape};
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, EventRow, InputRow, OutputRow, StepRow};

impl DependencyTable {
    /// The table as data. O(rows × events).
    pub fn shape(&self) -> TableShape {
        TableShape {
            workflow: Arc::clone(&self.name),
            events: self.event_shapes(),
            steps: self.steps.iter().map(|step| self.step_shape(step)).collect(),
        }
    }

    /// The table in the form that journals store, made at the first call.
    pub(crate) fn recorded(&self) -> &RecordedTable {
        self.recorded.get_or_init(|| RecordedTable::new(&self.shape()))
    }

    /// The declared events, without the internal ones.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (EventIndex, &EventRow)> {
        let rows = self.events.iter().enumerate();
        let rows = rows.filter(|(_, row)| row.gathers.is_none() && row.fails.is_none());
        rows.map(|(place, row)| (EventIndex::at(place), row))
    }

    fn event_shapes(&self) -> Vec<EventShape> {
        let plain = self.declared().map(|(_, row)| EventShape {
            name: Arc::clone(&row.name),
            roles: row.roles,
            version: row.version,
            replies_to: None,
            expires: None,
        });
        // The declared events are the first ones of the table.
        let mut shapes: Vec<EventShape> = plain.collect();
        for request in &self.events {
            let name = || Arc::clone(&request.name);
            if let Some(reply) = request.reply {
                shapes[reply.get()].replies_to.get_or_insert_with(name);
            }
            if let Some(expired) = request.expired {
                shapes[expired.get()].expires.get_or_insert_with(name);
            }
        }
        shapes
    }

    fn step_shape(&self, step: &StepRow) -> StepShape {
        let taking = |input: &&InputRow| input.kind.takes_events();
        StepShape {
            name: Arc::clone(&step.name),
            inputs: step.inputs.iter().filter(taking).map(|input| self.input_shape(input)).collect(),
            outputs: step.outputs.iter().map(|output| self.output_shape(output)).collect(),
            precondition: step.precondition.as_ref().map(|row| {
                // Counts only the inputs that take events.
                let place = |slot: &usize| step.inputs[..*slot].iter().filter(taking).count();
                let inputs = row.slots.iter().flatten().map(place).collect();
                PreconditionShape { name: Arc::clone(&row.name), inputs }
            }),
            catches: self.caught_by(step),
            max_executions: step.policy.max_executions,
            concurrency: step.policy.concurrency,
            continue_on_error: step.policy.continue_on_error,
            at_most_once: step.policy.at_most_once,
            on_end: step.on_end,
            limit: step.limit.as_deref().cloned(),
            key: step.key.as_deref().cloned(),
        }
    }

    /// The shape of an input. Caught failures appear under the name of the library's failure event.
    fn input_shape(&self, input: &InputRow) -> InputShape {
        let (mut events, mut known): (Vec<Arc<str>>, HashSet<&str>) = (Vec::new(), HashSet::new());
        let named = if input.kind == InputKind::Gather { &input.gathered[..] } else { &input.events };
        for event in named {
            let name = &self.named(self.event(*event)).name;
            if known.insert(name) {
                events.push(Arc::clone(name));
            }
        }
        let item = input.item.map(|item| Arc::clone(&self.event(item).name));
        let InputRow { kind, optional, passive, .. } = *input;
        InputShape { kind, optional, passive, events, item }
    }

    /// The event that an input names in the source to take this one.
    fn named<'a>(&'a self, event: &'a EventRow) -> &'a EventRow {
        let failure = || self.events.iter().find(|row| row.roles.is_failure());
        event.fails.and_then(|_| failure()).unwrap_or(event)
    }

    fn output_shape(&self, output: &OutputRow) -> OutputShape {
        OutputShape {
            event: Arc::clone(&self.event(output.event).name),
            least: output.least,
            many: output.many,
            fan_out: output.fan_out.is_some(),
            timed: output.timed,
        }
    }

    fn caught_by(&self, step: &StepRow) -> Vec<Arc<str>> {
        let (mut caught, mut known): (Vec<Arc<str>>, HashSet<&str>) = (Vec::new(), HashSet::new());
        for event in step.inputs.iter().flat_map(|input| &input.events) {
            let failing = self.event(*event).fails.map(|failing| &self.step(failing).name);
            caught.extend(failing.filter(|name| known.insert(name)).cloned());
        }
        caught
    }
}

impl TableShape {
    /// The JSON that journals store.
    pub(crate) fn json(&self) -> Box<RawValue> {
        // Names, numbers and flags always have a JSON.
        to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}
