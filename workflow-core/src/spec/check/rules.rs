//! The rules of S9 and S48 for one step of an explored graph: each function returns the mistake at one place,
//! if there is one.
//!
//! ```text
//!  place             rule                                          message at
//!  Input             fault of the parameter, or of its emitter     the parameter
//!  Precondition      not covered by the step                       the parameter of the precondition
//!  Catches           names without a parameter                     `catches`
//!  Step              no event, deadlock, loop, disjoint            the name of the step
//!  Output            wrong emission, endless fan-out               the return type
//!  Whole, End        no start, no stop                             the workflow, its output
//! ```
//!
//! Invariant: the functions only read the explored graph, so places can be asked in any order, and again.
//! `first_mistake_of` asks them in the order of the table, and reports the first.

use super::graph::{FanOut, Fault, Input, RuleGraph, Wanted};
use super::mistake::Mistake;
use super::names::{Names, near};
use super::nodes::{Deadlock, Step};
use crate::spec::InputKind;

/// The most names that a message suggests.
const SUGGESTED: usize = 3;

/// A place of a graph that a message can stand at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SourcePlace {
    /// A parameter: the step, and the place among its parameters.
    Input(usize, usize),
    /// A parameter of a precondition: the step, and the place among the precondition's parameters.
    Precondition(usize, usize),
    /// The `catches` of a step.
    Catches(usize),
    /// A step as a whole.
    Step(usize),
    /// The outputs of a step.
    Output(usize),
    /// The workflow, where its runs cannot begin.
    Whole,
    /// The declared output, where runs cannot complete.
    End,
}

impl<'n> RuleGraph<'_, 'n> {
    /// The places of a step, one after the other; `None` behind the last. `Whole` and `End` belong to no step.
    pub(crate) const fn place(&self, step: usize, at: usize) -> Option<SourcePlace> {
        let &Step { inputs, precondition, .. } = self.steps.get(step);
        let asked = match precondition {
            Some(asked) => asked.inputs.len(),
            None => 0,
        };
        if at < inputs.len() {
            return Some(SourcePlace::Input(step, at));
        }
        if at < inputs.len() + asked {
            return Some(SourcePlace::Precondition(step, at - inputs.len()));
        }
        match at - inputs.len() - asked {
            0 => Some(SourcePlace::Catches(step)),
            1 => Some(SourcePlace::Step(step)),
            2 => Some(SourcePlace::Output(step)),
            _ => None,
        }
    }

    /// The mistake at this place.
    pub(crate) const fn mistake(&self, place: SourcePlace) -> Option<Mistake<'n>> {
        match place {
            SourcePlace::Input(step, input) => self.mistake_of_input(step, input),
            SourcePlace::Precondition(step, input) => self.mistake_of_precondition(step, input),
            SourcePlace::Catches(step) => self.mistake_of_catches(step),
            SourcePlace::Step(step) => self.mistake_of_step(step),
            SourcePlace::Output(step) => self.mistake_of_output(step),
            SourcePlace::Whole => self.mistake_of_whole(),
            SourcePlace::End => self.mistake_of_end(),
        }
    }

    /// The same, but for what may follow from another mistake.
    pub(crate) const fn own_mistake(&self, place: SourcePlace) -> Option<Mistake<'n>> {
        match self.mistake(place) {
            Some(mistake) if self.follows(&mistake) => None,
            mistake => mistake,
        }
    }

    /// The first mistake of a step, in the order of its places.
    pub(crate) const fn first_mistake_of(&self, step: usize) -> Option<Mistake<'n>> {
        let mut at = 0;
        while let Some(place) = self.place(step, at) {
            if let Some(mistake) = self.own_mistake(place) {
                return Some(mistake);
            }
            at += 1;
        }
        None
    }

    /// Whether a parameter of the step has a fault of this kind: `Own` or `Unproduced`, for any event. Others are not
    /// asked for.
    pub(super) const fn has_fault(&self, step: usize, kind: Fault) -> bool {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        while input < inputs.end {
            match (self.inputs.get(input).fault, kind) {
                (Some(Fault::Own(_)), Fault::Own(_)) | (Some(Fault::Unproduced), Fault::Unproduced) => {
                    return true;
                }
                _ => input += 1,
            }
        }
        false
    }

    /// Whether the step has a parameter whose events trigger it.
    pub(super) const fn takes_events(&self, step: usize) -> bool {
        let inputs = self.steps.get(step).inputs;
        let mut input = inputs.start;
        while input < inputs.end {
            if self.inputs.get(input).triggers() {
                return true;
            }
            input += 1;
        }
        false
    }

    /// The mistake of one parameter of a step.
    pub(super) const fn mistake_of_input(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let Step { name: step_name, inputs, .. } = self.steps.get(step);
        let (step_name, input) = (*step_name, inputs.start + input);
        match self.inputs.get(input).fault {
            None => match self.mistake_of_emitter(step, input) {
                None => self.clean_up_in_branch(step, input),
                mistake => mistake,
            },
            Some(Fault::Empty) => Some(Mistake::EmptyFixedList { step: step_name }),
            Some(Fault::Stop(event)) => {
                let row = self.inputs.get(input);
                let stray = matches!(row.kind, InputKind::Gather) && row.linked.is_none();
                Some(Mistake::StopTaken { step: step_name, event: self.name(event), stray })
            }
            Some(Fault::Own(event)) => {
                Some(Mistake::TakesItsOwn { step: step_name, event: self.name(event) })
            }
            Some(Fault::Passive) => Some(self.unfit_passive(step_name, input)),
            // That it catches a clean-up step has been said.
            Some(Fault::Failure(_)) if self.clean_up_caught_by(step).is_some() => None,
            Some(Fault::Failure(_)) if self.steps.get(step).cleans_up => {
                Some(Mistake::CleanUpCatches { step: step_name })
            }
            Some(Fault::Failure(event)) => Some(self.failure_taken(step_name, input, event)),
            Some(Fault::Ambiguous) => self.ambiguous(step_name, input),
            Some(Fault::Short(most)) => self.short(step_name, input, most),
            Some(Fault::Unproduced) => self.unproduced(step_name, input),
        }
    }

    /// The mistake of a passive parameter that takes its events in another way than these parameters can.
    const fn unfit_passive(&self, step: &'n str, input: usize) -> Mistake<'n> {
        Mistake::UnfitPassive { step, events: self.names_of(self.inputs.get(input)) }
    }

    /// The wire name of an event.
    pub(super) const fn name(&self, event: usize) -> &'n str {
        self.events.get(event).name
    }

    /// The mistake of a fixed list that no run can fill.
    const fn short(&self, step: &'n str, input: usize, most: u64) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let InputKind::Fixed(count) = row.kind else { return None };
        Some(Mistake::ListCapacity { step, events: self.names_of(row), count, most })
    }

    /// The mistake of a parameter without a producer, by its kind.
    const fn unproduced(&self, step: &'n str, input: usize) -> Option<Mistake<'n>> {
        let row = self.inputs.get(input);
        let Some(event) = self.first_event(row) else { return None };
        match (row.kind, self.events.get(event).request) {
            (InputKind::Gather, _) => {
                let item = match row.item {
                    Some(item) => self.name(item),
                    None => "",
                };
                Some(Mistake::GatherFitsNothing { step, event: self.name(event), item, items: self.items() })
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

    /// The names of the event types that the parameter declares.
    const fn names_of(&self, input: &Input) -> Names<'n> {
        let (mut names, mut member) = (Names::NONE, input.members.start);
        while member < input.members.end {
            names.push(self.name(self.members.get(member).event));
            member += 1;
        }
        names
    }

    /// The mistake of a gather that fits fan-outs with several items and names none.
    const fn ambiguous(&self, step: &'n str, input: usize) -> Option<Mistake<'n>> {
        let Some(event) = self.first_event(self.inputs.get(input)) else { return None };
        let items = self.items_gathered(input);
        Some(Mistake::AmbiguousGather { step, event: self.name(event), items })
    }

    /// The item types of the fan-outs that a gather is linked to, each once.
    pub(super) const fn items_gathered(&self, input: usize) -> Names<'n> {
        let (mut names, mut fan_out) = (Names::NONE, 0);
        while fan_out < self.fan_outs.len() {
            let FanOut { gathered, item, .. } = *self.fan_outs.get(fan_out);
            if self.is_linked(gathered, input) && !names.has(self.name(item)) {
                names.push(self.name(item));
            }
            fan_out += 1;
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

    /// Whether the name resembles one of the types of the parameter.
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
    pub(super) const fn mistake_of_step(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, unclear, deadlock, .. } = self.steps.get(step);
        if !*unclear && !self.takes_events(step) {
            // A start event of the workflow makes the best example in the message.
            let such_as = match self.first(Wanted::Start) {
                Some(event) => self.name(event),
                None => "",
            };
            return Some(Mistake::NoEventInput { step: name, such_as });
        }
        match deadlock {
            Some(Deadlock::Behind { event, emitter }) => {
                let (event, emitter) = (self.name(*event), self.steps.get(*emitter).name);
                Some(Mistake::Unreachable { step: name, event, emitter })
            }
            Some(Deadlock::Idle) => Some(Mistake::NeverTriggered { step: name }),
            None if self.steps.get(step).begins_loop => {
                Some(Mistake::EndlessLoop { steps: self.loop_from(step) })
            }
            None => self.disjoint(step),
        }
    }

    /// The mistake of a required input of clean-up that only branches have: clean-up runs in the root.
    const fn clean_up_in_branch(&self, step: usize, input: usize) -> Option<Mistake<'n>> {
        let (&Step { name: step_name, cleans_up, .. }, row) = (self.steps.get(step), self.inputs.get(input));
        let has_branches = cleans_up && self.fan_outs.len() > 0 && row.linked.is_some();
        if !has_branches || !self.is_required(input) || self.has_input(0, input) {
            return None;
        }
        Some(Mistake::CleanUpInBranch { step: step_name, events: self.names_of(row) })
    }

    /// The mistake of a step's outputs.
    pub(super) const fn mistake_of_output(&self, step: usize) -> Option<Mistake<'n>> {
        let Step { name, outputs, .. } = self.steps.get(step);
        let mut output = outputs.start;
        while output < outputs.end {
            let row = self.outputs.get(output);
            if self.steps.get(step).cleans_up && row.returned {
                return Some(Mistake::CleanUpEmits { step: name, event: self.name(row.event) });
            }
            if let (true, Some(mistake)) = (row.returned, self.mistake_of_emission(step, row.event)) {
                return Some(mistake);
            }
            // A gather that fits nothing was probably meant to end these branches, and has its message.
            if let Some(fan_out) = row.fan_out
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

    /// Whether some gather fits no fan-out.
    const fn has_stray_gather(&self) -> bool {
        let mut input = 0;
        while input < self.inputs.len() {
            let row = self.inputs.get(input);
            if row.step.is_some() && matches!(row.kind, InputKind::Gather) && row.linked.is_none() {
                return true;
            }
            input += 1;
        }
        false
    }
}
