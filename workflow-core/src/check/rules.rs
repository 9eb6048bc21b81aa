//! The rules of S9 and S48, each for one place of a graph that was explored.

use super::graph::{Graph, Input, Step, Stuck};
use super::mistake::Mistake;
use super::names::{Names, near};
use crate::input::InputKind;

/// How many names a message suggests at most.
const SUGGESTED: usize = 3;

impl<'n> Graph<'_, 'n> {
    /// What is wrong with a step, its parameters, its precondition or what it returns; the first of it.
    pub(crate) const fn first_mistake_of(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { inputs, .. } = self.steps.get(step);
        let mut input = 0;
        while input < inputs.end - inputs.start {
            if let Some(mistake) = self.mistake_of_input(step, input) {
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
        match self.mistake_of_step(step) {
            Some(mistake) => Some(mistake),
            None => self.mistake_of_output(step),
        }
    }

    /// What is wrong with a parameter of a step.
    pub(crate) const fn mistake_of_input(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let row = self.steps.get(step);
        let input = row.inputs.start + input;
        if matches!(self.inputs.get(input).kind, InputKind::Fixed(0)) {
            return Some(Mistake::EmptyFixedList { step: row.name });
        }
        if let Some(event) = self.stop_of(input) {
            return Some(Mistake::StopTaken { step: row.name, event: self.name(event) });
        }
        if let Some(event) = self.own_event_of(step, input) {
            return Some(Mistake::TakesItsOwn { step: row.name, event: self.name(event) });
        }
        if self.is_unproduced(input) { self.unproduced(row.name, input) } else { None }
    }

    pub(super) const fn name(&self, event: usize) -> &'n str {
        self.events.get(event).name
    }

    /// The first event of the parameter that the step itself emits, unless a parameter before it takes it
    /// too.
    const fn own_event_of(&self, step: usize, input: usize) -> Option<usize> {
        let (row, taken) = (self.steps.get(step), self.inputs.get(input));
        if row.loops || !taken.kind.takes_events() || matches!(taken.kind, InputKind::Gather) {
            return None;
        }
        let mut member = taken.members.start;
        while member < taken.members.end {
            let event = self.members.get(member).event;
            if self.emits(step, event) && !self.is_taken_before(row, input, event) {
                return Some(event);
            }
            member += 1;
        }
        None
    }

    const fn is_taken_before(&self, step: Step<'_>, input: usize, event: usize) -> bool {
        let mut before = step.inputs.start;
        while before < input {
            let row = self.inputs.get(before);
            if row.kind.takes_events() && self.names(row, event) {
                return true;
            }
            before += 1;
        }
        false
    }

    const fn unproduced(&self, step: &'n str, input: usize) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let Some(event) = self.only_event(row) else { return None };
        match (row.kind, self.events.get(event).request) {
            (InputKind::Gather, _) => {
                Some(Mistake::GatherFitsNothing { step, event: self.name(event), items: self.items() })
            }
            _ if row.optional => None,
            (InputKind::Reply, Some(request)) => {
                Some(Mistake::NoRequest { step, request: self.name(request) })
            }
            _ => {
                let (events, similar) = (self.names_of(row), self.similar_to(row));
                Some(Mistake::NothingProduces { step, events, similar })
            }
        }
    }

    const fn names_of(&self, input: Input) -> Names<'n> {
        let (mut names, mut member) = (Names::NONE, input.members.start);
        while member < input.members.end {
            names.push(self.name(self.members.get(member).event));
            member += 1;
        }
        names
    }

    /// The items of all fan-outs.
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

    /// Events that something produces and whose names are nearly those of the parameter.
    const fn similar_to(&self, input: Input) -> Names<'n> {
        let (mut similar, mut event) = (Names::NONE, 0);
        while event < self.events.len() && similar.count() < SUGGESTED {
            let row = self.events.get(event);
            let is_candidate = self.is_produced(event) && !row.roles.is_stop() && !row.roles.is_reply();
            if is_candidate && self.is_near(row.name, input) {
                similar.push(row.name);
            }
            event += 1;
        }
        similar
    }

    const fn is_near(&self, name: &str, input: Input) -> bool {
        let mut member = input.members.start;
        while member < input.members.end {
            if near(name, self.name(self.members.get(member).event)) {
                return true;
            }
            member += 1;
        }
        false
    }

    /// What is wrong with a step as a whole.
    pub(crate) const fn mistake_of_step(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, inputs, unclear, stuck, .. } = self.steps.get(step);
        let mut input = inputs.start;
        while input < inputs.end && !self.inputs.get(input).kind.takes_events() {
            input += 1;
        }
        if input == inputs.end && !unclear {
            return Some(Mistake::NoEventInput { step: name, such_as: self.first_start() });
        }
        match stuck {
            Some(Stuck::Behind { event, emitter }) => {
                let (event, emitter) = (self.name(event), self.steps.get(emitter).name);
                Some(Mistake::Unreachable { step: name, event, emitter })
            }
            Some(Stuck::Idle) => Some(Mistake::NeverTriggered { step: name }),
            None => None,
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

    /// What is wrong with what a step returns.
    pub(crate) const fn mistake_of_output(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, outputs, .. } = self.steps.get(step);
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
        None
    }

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
