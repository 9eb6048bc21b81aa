//! The rules of S9 and S48 for one step of an explored graph: each function returns the mistake at one place,
//! if there is one.

use super::graph::{Fault, Graph, Input, Step, Stuck};
use super::mistake::Mistake;
use super::names::{Names, near};
use crate::spec::InputKind;

/// The most names that a message suggests.
const SUGGESTED: usize = 3;

impl<'n> Graph<'_, 'n> {
    /// The first mistake of a step, its parameters, its precondition or its outputs.
    pub(crate) const fn first_mistake_of(&self, step: usize) -> Option<Mistake<'n>> {
        let mut input = 0;
        while input < self.steps.get(step).inputs.len() {
            if let Some(mistake) = self.unless_it_follows(self.mistake_of_input(step, input)) {
                return Some(mistake);
            }
            input += 1;
        }
        let mut input = 0;
        while input < self.asked(step) {
            if let Some(mistake) = self.mistake_of_precondition(step, input) {
                return Some(mistake);
            }
            input += 1;
        }
        let of_step = match self.mistake_of_catches(step) {
            Some(mistake) => Some(mistake),
            None => self.mistake_of_step(step),
        };
        match of_step {
            Some(mistake) => Some(mistake),
            None => self.unless_it_follows(self.mistake_of_output(step)),
        }
    }

    /// Whether any step has a mistake.
    pub(super) const fn has_faulty(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            if self.is_faulty(step) {
                return true;
            }
            step += 1;
        }
        false
    }

    /// Whether the step has a mistake. Cheaper than making the message.
    pub(crate) const fn is_faulty(&self, step: usize) -> bool {
        let Step { inputs, outputs, stuck, parted, begins_loop, .. } = self.steps.get(step);
        let (mut input, mut takes) = (inputs.start, false);
        while input < inputs.end {
            let row = self.inputs.get(input);
            if row.fault.is_some() || self.mistake_of_emitter(step, input).is_some() {
                return true;
            }
            takes = takes || row.kind.takes_events();
            input += 1;
        }
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            let is_failure = self.events.get(row.event).roles.is_failure();
            let is_suspect = is_failure || row.fan_out.is_some() || self.is_unexpected(row.event);
            if is_suspect && self.mistake_of_output(step).is_some() {
                return true;
            }
            output += 1;
        }
        *begins_loop
            || !takes && !self.steps.get(step).unclear
            || stuck.is_some()
            || parted.is_some()
            || self.has_unfilled(step)
            || self.mistake_of_catches(step).is_some()
    }

    /// The mistake of one parameter of a step.
    pub(crate) const fn mistake_of_input(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let Step { name: step_name, inputs, .. } = self.steps.get(step);
        let (step_name, input) = (*step_name, inputs.start + input);
        match self.inputs.get(input).fault {
            None => self.mistake_of_emitter(step, input),
            Some(Fault::Empty) => Some(Mistake::EmptyFixedList { step: step_name }),
            Some(Fault::Stop(event)) => Some(Mistake::StopTaken { step: step_name, event: self.name(event) }),
            Some(Fault::Own(event)) => {
                Some(Mistake::TakesItsOwn { step: step_name, event: self.name(event) })
            }
            Some(Fault::Failure(event)) => Some(self.failure_taken(step_name, input, event)),
            Some(Fault::Short(most)) => self.short(step_name, input, most),
            Some(Fault::Unproduced) => self.unproduced(step_name, input),
        }
    }

    pub(super) const fn name(&self, event: usize) -> &'n str {
        self.events.get(event).name
    }

    /// The mistake of a fixed list that no run can fill.
    const fn short(&self, step: &'n str, input: usize, most: u64) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let InputKind::Fixed(count) = row.kind else { return None };
        Some(Mistake::ListNeverFull { step, events: self.names_of(row), count, most })
    }

    /// The mistake of a parameter without a producer, by its kind.
    const fn unproduced(&self, step: &'n str, input: usize) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let Some(event) = self.only_event(row) else { return None };
        match (row.kind, self.events.get(event).request) {
            (InputKind::Gather, _) => {
                Some(Mistake::GatherFitsNothing { step, event: self.name(event), items: self.items() })
            }
            (InputKind::Reply, Some(request)) => {
                Some(Mistake::NoRequest { step, request: self.name(request) })
            }
            _ => {
                let (events, similar) = (self.names_of(row), self.similar_to(row));
                Some(Mistake::NothingProduces { step, events, similar })
            }
        }
    }

    const fn names_of(&self, input: &Input) -> Names<'n> {
        let (mut names, mut member) = (Names::NONE, input.members.start);
        while member < input.members.end {
            names.push(self.name(self.members.get(member).event));
            member += 1;
        }
        names
    }

    /// The item types of all fan-outs, each once.
    const fn items(&self) -> Names<'n> {
        let (mut names, mut fan_out) = (Names::NONE, 0);
        while fan_out < self.fan_outs.len() {
            let item = self.name(self.fan_outs.get(fan_out).item);
            if !names.has(item) {
                names.push(item);
            }
            fan_out += 1;
        }
        names
    }

    /// Produced events whose names resemble those of the parameter.
    const fn similar_to(&self, input: &Input) -> Names<'n> {
        let (mut similar, mut event) = (Names::NONE, 0);
        while event < self.events.len() && similar.count() < SUGGESTED {
            let row = self.events.get(event);
            let is_candidate = self.is_produced(event) && !row.stops && !row.roles.is_reply();
            if is_candidate && self.is_near(row.name, input) {
                similar.push(row.name);
            }
            event += 1;
        }
        similar
    }

    const fn is_near(&self, name: &str, input: &Input) -> bool {
        let mut member = input.members.start;
        while member < input.members.end {
            if near(name, self.name(self.members.get(member).event)) {
                return true;
            }
            member += 1;
        }
        false
    }

    /// The mistake of a step as a whole.
    pub(crate) const fn mistake_of_step(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, inputs, unclear, stuck, .. } = self.steps.get(step);
        let mut input = inputs.start;
        while input < inputs.end && !self.inputs.get(input).kind.takes_events() {
            input += 1;
        }
        if input == inputs.end && !*unclear {
            return Some(Mistake::NoEventInput { step: name, such_as: self.first_start() });
        }
        match stuck {
            Some(Stuck::Behind { event, emitter }) => {
                let (event, emitter) = (self.name(*event), self.steps.get(*emitter).name);
                Some(Mistake::Unreachable { step: name, event, emitter })
            }
            Some(Stuck::Idle) => Some(Mistake::NeverTriggered { step: name }),
            None if self.steps.get(step).begins_loop => {
                Some(Mistake::EndlessLoop { steps: self.loop_from(step) })
            }
            None => self.parted(step),
        }
    }

    const fn first_start(&self) -> &'n str {
        let mut event = 0;
        while event < self.events.len() {
            if self.events.get(event).roles.is_start() {
                return self.name(event);
            }
            event += 1;
        }
        ""
    }

    /// The mistake of a step's outputs.
    pub(crate) const fn mistake_of_output(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, outputs, .. } = self.steps.get(step);
        if let Some(mistake) = self.failure_returned(step) {
            return Some(mistake);
        }
        let mut output = outputs.start;
        while output < outputs.end {
            // Where a gather fits nothing, it is the gather that was meant to end them.
            if let Some(fan_out) = self.outputs.get(output).fan_out
                && !self.ends(fan_out)
                && !self.has_stray_gather()
            {
                let item = self.name(self.fan_outs.get(fan_out).item);
                return Some(Mistake::FanOutNeverEnds { step: name, item });
            }
            output += 1;
        }
        self.unexpected_return(step)
    }

    /// Whether some gather fits no fan-out.
    const fn has_stray_gather(&self) -> bool {
        let mut step = 0;
        while step < self.steps.len() {
            let inputs = self.steps.get(step).inputs;
            let mut input = inputs.start;
            while input < inputs.end {
                if matches!(self.inputs.get(input).kind, InputKind::Gather) && !self.fits(input) {
                    return true;
                }
                input += 1;
            }
            step += 1;
        }
        false
    }
}
