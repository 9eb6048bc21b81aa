//! The scopes of forecasts: which events the root and the branches of each fan-out can have and see, and which steps
//! can run there. How often they run is the concern of `count`.

use super::search::Links;
use crate::table::lists::{Lists, Marks};
use crate::table::{DependencyTable, EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// The root, or the branches of a fan-out.
pub(super) type ScopeKind = Option<FanOutIndex>;

/// The scopes of a table.
pub(super) struct Scopes<'a> {
    pub(super) table: &'a DependencyTable,
    links: &'a Links,
    /// By event, whether the root can have it.
    root: Vec<bool>,
    /// By fan-out, the scopes whose events its branches can see: the branches themselves first, then those around.
    seen: Vec<Vec<ScopeKind>>,
    /// By step, whether it can run in the root.
    in_root: Vec<bool>,
    /// By fan-out, the steps that can run in its branches, by index.
    in_branches: Lists<StepIndex>,
}

impl<'a> Scopes<'a> {
    /// Finds the scopes. `ready` says by step whether the events that it requires can occur in one run.
    pub(super) fn of(table: &'a DependencyTable, links: &'a Links, ready: &[bool]) -> Self {
        let (steps, fan_outs) = (table.steps.len(), table.fan_outs.len());
        let mut scopes = Self {
            table,
            links,
            root: events_of_root(table, links),
            seen: Vec::new(),
            in_root: vec![false; steps],
            in_branches: Lists::of(fan_outs, []),
        };
        scopes.seen = scopes.scopes_seen();
        let runs = |step: usize| ready[step] && scopes.can_run(None, StepIndex::at(step));
        scopes.in_root = (0..steps).map(runs).collect();
        let in_branches = (0..fan_outs).flat_map(|fan_out| {
            let own = table.fan_outs[fan_out].own.iter();
            let mut takers: Vec<StepIndex> =
                own.flat_map(|event| &table.event(*event).takers).copied().collect();
            takers.sort_unstable();
            takers.dedup();
            let scope = Some(FanOutIndex::at(fan_out));
            takers.retain(|step| ready[step.get()] && scopes.can_run(scope, *step));
            takers.into_iter().map(move |step| (fan_out, step))
        });
        let in_branches: Vec<(usize, StepIndex)> = in_branches.collect();
        let in_branches = Lists::of(fan_outs, in_branches.iter().copied());
        Self { in_branches, ..scopes }
    }

    /// Whether this scope itself can have the event.
    pub(super) fn has(&self, scope: ScopeKind, event: EventIndex) -> bool {
        match scope {
            None => self.root[event.get()],
            Some(fan_out) => self.table.fan_out(fan_out).has(event),
        }
    }

    /// The scope and those around it.
    pub(super) fn seen_from(&self, scope: ScopeKind) -> &[ScopeKind] {
        scope.map_or(&[None], |fan_out| &self.seen[fan_out.get()])
    }

    /// Whether the step can run in the root.
    pub(super) fn runs_in_root(&self, step: StepIndex) -> bool {
        self.in_root[step.get()]
    }

    /// By fan-out, the steps that can run in its branches, by index.
    pub(super) fn in_branches(&self) -> &Lists<StepIndex> {
        &self.in_branches
    }

    /// The scopes that each branch sees: itself, those that have an event that triggers the step that opens it, and
    /// those that these see.
    fn scopes_seen(&self) -> Vec<Vec<ScopeKind>> {
        let fan_outs = &self.table.fan_outs;
        let held = fan_outs.iter().enumerate();
        let held = held.flat_map(|(place, row)| {
            row.own.iter().map(move |event| (event.get(), Some(FanOutIndex::at(place))))
        });
        let of_root = (0..self.root.len()).filter(|event| self.root[*event]).map(|event| (event, None));
        let holders = Lists::of(self.root.len(), held.chain(of_root));
        let around: Vec<Vec<ScopeKind>> = fan_outs
            .iter()
            .map(|fan_out| {
                let opener = taken(self.table.step(fan_out.step));
                let mut around: Vec<ScopeKind> = opener
                    .flat_map(|input| &input.events)
                    .flat_map(|event| holders.row(event.get()))
                    .copied()
                    .collect();
                around.sort_unstable();
                around.dedup();
                around
            })
            .collect();
        let mut walked = Marks::of(fan_outs.len() + 1);
        let outwards = |place: usize| {
            walked.clear();
            let mut seen = vec![Some(FanOutIndex::at(place))];
            walked.insert(place + 1);
            let mut at = 0;
            while at < seen.len() {
                if let Some(fan_out) = seen[at] {
                    let number = |scope: &ScopeKind| scope.map_or(0, |fan_out| fan_out.get() + 1);
                    let new = around[fan_out.get()].iter().filter(|scope| walked.insert(number(scope)));
                    seen.extend(new);
                }
                at += 1;
            }
            seen
        };
        (0..fan_outs.len()).map(outwards).collect()
    }

    /// Whether an event of this scope itself triggers the step, and the scope sees the rest.
    fn can_run(&self, scope: ScopeKind, step: StepIndex) -> bool {
        let sees = |event: &EventIndex| self.seen_from(scope).iter().any(|scope| self.has(*scope, *event));
        let mut needs = self.links.needs(step).iter();
        self.links.takes(step).iter().any(|event| self.has(scope, *event))
            && needs.all(|need| self.links.met_by(*need).iter().any(sees))
    }
}

/// By event, whether the root can have it.
fn events_of_root(table: &DependencyTable, links: &Links) -> Vec<bool> {
    let (mut root, mut ran) = (vec![false; table.events.len()], vec![false; table.steps.len()]);
    let given = |event: &EventIndex| {
        let roles = table.event(*event).roles;
        roles.is_start() || roles.is_external()
    };
    let mut new: Vec<EventIndex> = (0..table.events.len()).map(EventIndex::at).filter(given).collect();
    while let Some(event) = new.pop() {
        if std::mem::replace(&mut root[event.get()], true) {
            continue;
        }
        new.extend(table.event(event).reply);
        for step in links.triggered_by(event) {
            if !std::mem::replace(&mut ran[step.get()], true) {
                new.extend(links.emits(step));
            }
        }
    }
    root
}

/// The inputs that trigger the step.
pub(super) fn taken(step: &StepRow) -> impl Iterator<Item = &InputRow> {
    step.inputs.iter().filter(|input| input.triggers())
}
