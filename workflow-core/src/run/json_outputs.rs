//! Outputs of run-time steps against their table (S57): the declared types of an output, and how many of it a step emits.

use std::sync::Arc;

use super::returned::undeclared;
use crate::error::Internal;
use crate::input::EmitError;
use crate::output::{Emitted, EmittedItem, JsonOutputTypes, OutputForm};
use crate::table::{DependencyTable, OutputRow, StepIndex};

impl OutputRow {
    /// The form in which the step emits it.
    fn form(&self) -> OutputForm {
        match self {
            Self { fan_out: Some(_), .. } => OutputForm::FanOut,
            Self { timed: true, .. } => OutputForm::Timer,
            Self { .. } => OutputForm::Event,
        }
    }
}

/// The form of the output that declares an emission of this form: a request that expires is an event.
fn declared(form: OutputForm) -> OutputForm {
    if form == OutputForm::Expiring { OutputForm::Event } else { form }
}

impl DependencyTable {
    /// The types of an output of a step, by the name of its event and its form.
    pub(super) fn json_output(
        &self,
        step: usize,
        event: &str,
        form: OutputForm,
    ) -> Result<JsonOutputTypes, EmitError> {
        let outputs = &self.step(StepIndex::at(step)).outputs;
        let name = |row: &OutputRow| Arc::clone(&self.event(row.event).name);
        let mut named = outputs.iter().filter(|row| *self.event(row.event).name == *event).peekable();
        if named.peek().is_none() {
            let mut known: Vec<_> = outputs.iter().map(name).collect();
            known.sort_unstable();
            known.dedup();
            return Err(EmitError::Undeclared { event: event.into(), declared: known });
        }
        let other = || EmitError::OtherForm { event: event.into(), form };
        let row = named.find(|row| row.form() == declared(form)).ok_or_else(other)?;
        let types = self.json_type(row.event).ok_or_else(|| EmitError::RustType { event: event.into() })?;
        let expired = self.event(row.event).expired.and_then(|expired| self.json_type(expired));
        if form == OutputForm::Expiring && expired.is_none() {
            return Err(other());
        }
        Ok(JsonOutputTypes { event: Arc::clone(types), expired: expired.cloned() })
    }

    /// Whether a step of a run-time workflow has emitted declared outputs only, and as many of each as it declares. The
    /// type of a typed step guarantees both.
    pub(super) fn check_outputs(&self, outputs: &[OutputRow], emitted: &Emitted) -> Result<(), Internal> {
        let declares = |output: &OutputRow, item: &EmittedItem| {
            declared(item.form()) == output.form() && self.is_of(output.event, item.kind())
        };
        for item in emitted.items() {
            if !outputs.iter().any(|output| declares(output, item)) {
                return Err(undeclared(item.kind()));
            }
        }
        for (place, output) in outputs.iter().enumerate() {
            let alike = |other: &&OutputRow| (other.event, other.form()) == (output.event, output.form());
            if outputs[..place].iter().any(|other| alike(&other)) {
                continue;
            }
            let count = emitted.items().iter().filter(|item| declares(output, item)).count();
            let all = || outputs.iter().filter(alike);
            let least = all().map(|row| row.least as usize).sum();
            let most = if all().any(|row| row.many) { usize::MAX } else { all().count() };
            if count < least || count > most {
                let event = Box::from(&*self.event(output.event).name);
                return Err(Internal::OutputCount { event, count, least, most });
            }
        }
        Ok(())
    }
}
