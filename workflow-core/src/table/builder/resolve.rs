//! Resolves the names of a builder to places in the draft. An unknown name is reported and gets a place all
//! the same, so that it hides no other mistake.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::{EventDef, InputDef, OutputDef, StepDef, TableBuilder};
use crate::event::Roles;
use crate::spec::check::near;
use crate::spec::{InputKind, TableProblem};
use crate::table::draft::{EventDraft, InputDraft, OutputDraft, PreconditionDraft, StepDraft, TableDraft};

/// The most names that a message suggests.
const SUGGESTED: usize = 3;

impl TableBuilder {
    /// Makes the draft of the table, with the problems of its names.
    pub(super) fn draft(&self) -> TableDraft {
        let draft = TableDraft {
            name: Arc::clone(&self.name),
            description: Arc::clone(&self.description),
            events: self.events.iter().map(event_draft).collect(),
            ..TableDraft::default()
        };
        let mut resolver = Resolver {
            known: &self.events,
            steps: &self.steps,
            events_by_name: first_places(self.events.iter().map(|event| &event.name)),
            steps_by_name: first_places(self.steps.iter().map(|step| &step.name)),
            draft,
        };
        for step in &self.steps {
            let step = resolver.step(step);
            resolver.draft.steps.push(step);
        }
        resolver.pair_replies();
        resolver.pair_expiries();
        resolver.draft
    }
}

/// Resolves names to places.
struct Resolver<'a> {
    known: &'a [EventDef],
    steps: &'a [StepDef],
    /// The place of the first event of each name, unknown ones included.
    events_by_name: HashMap<Arc<str>, usize>,
    /// The place of the first step of each name.
    steps_by_name: HashMap<Arc<str>, usize>,
    /// The draft: its first events are the known ones, the unknown ones follow.
    draft: TableDraft,
}

impl Resolver<'_> {
    fn step(&mut self, step: &StepDef) -> StepDraft {
        let context = step.uses_context.then(|| InputDraft {
            kind: InputKind::Injected,
            optional: false,
            passive: false,
            events: Vec::new(),
            item: None,
            config: None,
            uses_context: true,
            may_start_children: false,
            label: "uses_context".into(),
        });
        StepDraft {
            name: Arc::clone(&step.name),
            description: Arc::clone(&step.description),
            inputs: self.inputs(&step.name, &step.inputs).into_iter().chain(context).collect(),
            outputs: step.outputs.iter().map(|output| self.output(&step.name, output)).collect(),
            precondition: step.precondition.as_ref().map(|precondition| PreconditionDraft {
                name: Arc::clone(&precondition.name),
                inputs: self.inputs(&step.name, &precondition.inputs),
            }),
            policy: step.policy,
            limit: step.limit.clone(),
            key: step.key.clone(),
            retry: step.retry.clone(),
            catches: self.catches(step),
            on_end: step.on_end,
        }
    }

    /// The places of the steps that this step catches. Reports and leaves out names that are wrong.
    fn catches(&mut self, step: &StepDef) -> Vec<usize> {
        let (mut places, mut known) = (Vec::new(), HashSet::new());
        for caught in step.catches.iter().flatten() {
            match self.caught(step, caught) {
                Ok(place) => places.extend(Some(place).filter(|place| known.insert(*place))),
                Err(problem) => self.report(problem),
            }
        }
        if step.catches.as_ref().is_some_and(Vec::is_empty) {
            self.report(TableProblem::CatchesNoStep { step: step.name.to_string() });
        }
        places
    }

    fn caught(&self, step: &StepDef, caught: &Arc<str>) -> Result<usize, TableProblem> {
        if *caught == step.name {
            return Err(TableProblem::CatchesItself { step: step.name.to_string() });
        }
        self.steps_by_name.get(caught).copied().ok_or_else(|| {
            let names = self.steps.iter().map(|other| &other.name);
            let similar = names.filter(|name| **name != step.name && near(name, caught));
            TableProblem::UnknownCaught {
                step: step.name.to_string(),
                caught: caught.to_string(),
                similar: similar.take(SUGGESTED).map(ToString::to_string).collect(),
            }
        })
    }

    fn inputs(&mut self, step: &str, inputs: &[InputDef]) -> Vec<InputDraft> {
        inputs.iter().map(|input| self.input(step, input)).collect()
    }

    fn input(&mut self, step: &str, input: &InputDef) -> InputDraft {
        let events: Vec<usize> = input.events.iter().map(|event| self.place(step, event)).collect();
        if input.kind == InputKind::Reply {
            self.check_reply(step, &events);
        }
        let item = input.item.as_ref().map(|item| self.place(step, item));
        InputDraft {
            kind: input.kind,
            optional: input.optional,
            passive: input.passive,
            events,
            item,
            config: None,
            uses_context: false,
            may_start_children: false,
            label: Arc::default(),
        }
    }

    /// Reports an input that takes an event as a reply which is none.
    fn check_reply(&mut self, step: &str, events: &[usize]) {
        for known in events.iter().filter_map(|event| self.known.get(*event)) {
            if known.replies_to.is_none() {
                let event = known.name.to_string();
                self.report(TableProblem::NoReply { step: step.into(), event });
            }
        }
    }

    fn output(&mut self, step: &str, output: &OutputDef) -> OutputDraft {
        let event = self.place(step, &output.event);
        if event >= self.known.len() {
            self.note_meant(&output.event);
        }
        let OutputDef { least, many, fan_out, timed, .. } = *output;
        OutputDraft { event, least, many, fan_out, timed, choices: 0, returned: true }
    }

    /// Marks the events that a mistyped output may mean: none of them is then reported as never produced.
    fn note_meant(&mut self, name: &str) {
        let known = &mut self.draft.events[..self.known.len()];
        known.iter_mut().filter(|event| near(&event.name, name)).for_each(|event| event.meant = true);
    }

    fn place(&mut self, step: &str, name: &Arc<str>) -> usize {
        let place = self.events_by_name.get(name).copied().unwrap_or_else(|| {
            let unknown = EventDraft::new(Arc::clone(name), Roles::NONE);
            self.draft.events.push(EventDraft { unclear: true, ..unknown });
            let place = self.draft.events.len() - 1;
            self.events_by_name.insert(Arc::clone(name), place);
            place
        });
        if place >= self.known.len() {
            let similar = self.similar(name);
            self.report(TableProblem::UnknownEvent { step: step.into(), event: (**name).into(), similar });
        }
        place
    }

    fn pair_replies(&mut self) {
        for (reply, event) in self.known.iter().enumerate() {
            let Some(request) = &event.replies_to else { continue };
            if let Err(problem) = self.pair(reply, request) {
                self.report(problem);
                self.draft.events[reply].unclear = true;
            }
        }
    }

    fn pair(&mut self, reply: usize, request: &str) -> Result<(), TableProblem> {
        let name = self.known[reply].name.to_string();
        let Some(place) = self.known_place(request) else {
            let similar = self.similar(request);
            return Err(TableProblem::UnknownRequest { reply: name, request: request.to_owned(), similar });
        };
        // A reply that is a request itself could lead to a circle of requests.
        if self.known[reply].roles.is_request() {
            return Err(TableProblem::ReplyAsks { reply: name });
        }
        if !self.known[place].roles.is_request() {
            return Err(TableProblem::ReplyToNoRequest { reply: name, event: request.to_owned() });
        }
        if let Some(first) = self.draft.events[place].reply {
            let replies = [self.known[first].name.to_string(), name];
            return Err(TableProblem::SecondReply { request: request.to_owned(), replies });
        }
        self.draft.events[place].reply = Some(reply);
        Ok(())
    }

    fn pair_expiries(&mut self) {
        for (expiry, event) in self.known.iter().enumerate() {
            let Some(request) = &event.expires else { continue };
            let request_place =
                self.known_place(request).filter(|place| self.known[*place].roles.is_request());
            match request_place {
                Some(place) if self.draft.events[place].expired.is_none() => {
                    self.draft.events[place].expired = Some(expiry);
                }
                _ => {
                    let (event, request) = (event.name.to_string(), request.to_string());
                    self.report(TableProblem::StrayExpiry { event, request });
                    self.draft.events[expiry].unclear = true;
                }
            }
        }
    }

    /// The place of the first declared event of this name.
    fn known_place(&self, name: &str) -> Option<usize> {
        self.events_by_name.get(name).copied().filter(|place| *place < self.known.len())
    }

    fn similar(&self, name: &str) -> Vec<String> {
        let mut similar: Vec<String> = Vec::new();
        for known in self.known.iter().filter(|known| near(&known.name, name)) {
            if similar.len() < SUGGESTED && !similar.iter().any(|other| **other == *known.name) {
                similar.push(known.name.to_string());
            }
        }
        similar
    }

    /// Reports a problem once: a step that names an unknown event twice has one mistake.
    fn report(&mut self, problem: TableProblem) {
        if !self.draft.problems.contains(&problem) {
            self.draft.problems.push(problem);
        }
    }
}

/// The place of the first of each name.
fn first_places<'a>(names: impl Iterator<Item = &'a Arc<str>>) -> HashMap<Arc<str>, usize> {
    let mut places = HashMap::with_capacity(names.size_hint().0);
    for (place, name) in names.enumerate() {
        places.entry(Arc::clone(name)).or_insert(place);
    }
    places
}

fn event_draft(event: &EventDef) -> EventDraft {
    let (version, schema) = (event.version, event.schema.clone());
    EventDraft { schema, version, ..EventDraft::new(Arc::clone(&event.name), event.roles) }
}
