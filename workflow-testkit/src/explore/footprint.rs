//! What an operation touches, and whether two operations commute, that is, whether swapping them makes no difference.
//! In doubt they do not commute.
//!
//! Three rules are wider than necessary, and only cost orders: a step with a single optional input counts as able to
//! see orders, so does a step with a precondition, and a precondition's access to a context commutes with nothing.
//!
//! A commit may end the run, through a failing precondition or a limit, or may fail because the core refuses it. This
//! shows only afterwards. From then on the operation counts as touching everything. That is soon enough: a limit
//! applies to a sum, so if one of two operations reaches it in one order, one of them does in the other order too.
//!
//! Some workflows are hardly reduced:
//!
//! - Where branches open in branches, a footprint knows the scope that its events enter, but not the scopes around it.
//!   The commit of an inner branch may be the last that its outer branch waits for, and open, settle or gather there.
//!   So commits in different scopes do not commute.
//! - Where a fan-out waits for all its branches after one has failed, the commit that settles the last branch fails the
//!   run, and which one that is shows only afterwards. So each commit in a branch touches everything. The same holds
//!   where a fan-out drops the others once enough branches have settled, or more have failed than it tolerates.
//! - Where a step asks in which order the branches of a fan-out settled, commits in different branches do not commute.
//! - Where a step takes failures, which contain the numbers of their executions, commits do not commute with each
//!   other. The same holds where a step gathers and several fan-outs may open, because a gather contains the numbers of
//!   its branches.
//! - A user's injectable may look at anything: nothing commutes.
//!
//! A step with a `RunInfo` sees the number of its execution, which counts the executions scheduled before, and the
//! positions of its events, which count the events before them. The rest is the same in every order: run, thread,
//! workflow, step, parent and attempt, and the scope where branches open in one place and at most once. So a commit of
//! events for such a step commutes with no other commit that has events or may start an execution. Two commits of other
//! events commute as usual: they swap numbers that no step sees, and shift later numbers by the same sum. A step with
//! `Children` sees the number of its execution in the ids of its children.
//!
//! The steps of a run-time workflow do not declare such parameters. Their calls are watched: a step counts as seeing
//! numbers, or anything, from the call on that asked for them. That is soon enough, because calls that do not ask are the
//! same in every order.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::signature::{CallWatch, Emitted};
use workflow_core::table::{DependencyTable, InputKind, InputRow, OutputRow, StepRow, StepShape};
use workflow_core::{AnyEvent, ScopeId};

use super::gate::{Op, OpId};
use crate::subject::{Subject, Table};

/// What an operation touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Footprint {
    /// The end of the run, or an unknown effect.
    Everything,
    /// Events enter the log.
    Log(Entry),
    /// The store confirms a write: its effects begin, and the next write takes all batches until then.
    Confirmation,
    /// One key of the run's or the thread's context; all keys if none is named.
    Context { of_thread: bool, key: Option<String>, writes: bool },
}

/// The effect of the log's next batch on the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    scope: ScopeId,
    /// The steps that can see the order of the events: those that will be evaluated, or gather them.
    steps: Vec<usize>,
    /// The steps with dependent executions that the batch may start or end.
    bounded: Vec<usize>,
    /// In a branch: the steps that can see when its fan-out was gathered.
    gathers: Vec<usize>,
    /// Whether this is the failure of an execution.
    fails: bool,
    /// The steps that may be bound to its events or start after it; some may see numbers.
    starts: Vec<usize>,
    /// Whether later numbers may depend on it: it has events, or may start an execution without any.
    shifts: bool,
}

impl Footprint {
    /// Whether the entry has events and is no failure.
    pub(super) fn is_of_events(&self) -> bool {
        matches!(self, Self::Log(entry) if !entry.fails)
    }
}

/// The events and orders that a workflow's steps can distinguish.
#[derive(Debug)]
pub(super) struct Interest {
    table: Table,
    /// Per step, whether it takes anything other than one event at a time.
    discerning: Vec<bool>,
    /// Per step, whether its executions depend on each other across all branches: their concurrency is limited, they
    /// share a named limit, or the first calls fail.
    bounded: Vec<bool>,
    /// The discerning steps that gather.
    gathers: Vec<usize>,
    /// Per step the names of the events that its gathers collect: a branch passes them on in order.
    collected: Vec<Vec<Arc<str>>>,
    /// Whether a run opens branches in only one place, and there at most once.
    one_fan_out: bool,
    /// Whether branches open in branches.
    nested: bool,
    /// Whether the run has a store whose confirmations are operations.
    durable: bool,
    learned: Mutex<Learned>,
}

/// What is known from the table, and from the runs so far.
#[derive(Debug)]
struct Learned {
    /// Per step, whether it sees the number of its execution and the positions of its events.
    numbered: Vec<bool>,
    sight: Sight,
    /// Whether a step asked in which order branches settled, in some run. A run in which none did is the same in every
    /// order of its branches; so it is soon enough to know this once a run is over.
    order_read: bool,
    /// The operations that turned out to touch everything in some run.
    wide: HashSet<OpId>,
}

/// What the steps can see besides events and contexts, except for [`Learned::numbered`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sight {
    Nothing,
    /// Positions in the log, and numbers of executions and branches, which are assigned in order.
    Numbers,
    /// Anything: a step takes a user's injectable.
    Anything,
}

impl Sight {
    /// A failure contains the number of its execution. A gather contains those of its branches, which are always the
    /// same if one step opens branches, once.
    fn of(table: &DependencyTable, one_fan_out: bool) -> Self {
        let inputs = || table.steps().iter().flat_map(StepRow::inputs);
        let failures: Vec<_> = table.steps().iter().filter_map(StepRow::failure).collect();
        let numbered = |input: &InputRow| {
            input.kind() == InputKind::Gather && !one_fan_out
                || input.events().iter().any(|event| failures.contains(event))
        };
        let sight = if inputs().any(numbered) { Self::Numbers } else { Self::Nothing };
        let injected = inputs().filter(|input| input.kind() == InputKind::Injected);
        injected.fold(sight, |sight, input| match input.label() {
            _ if sight == Self::Anything => sight,
            // The number of the scope that a step is in depends on which branches were opened before.
            label if tells_numbers(label) && !(one_fan_out || is_flat(table)) => Self::Numbers,
            label if tells_numbers(label) => sight,
            // The last one is a step's of a run-time workflow that uses either context.
            "RunContext" | "ThreadContext" | "Config" | "Display" | "Cancellation" | "uses_context" => sight,
            _ => Self::Anything,
        })
    }
}

impl Interest {
    /// `fails_first` tells whether the first calls of a step fail, and `durable` whether a store's confirmations are
    /// operations.
    pub(super) fn of(subject: &Subject, durable: bool, fails_first: impl Fn(&str) -> bool) -> Self {
        let (table, graph) = (subject.table(), subject.graph());
        let node = |step: &StepRow| graph.nodes.iter().find(|node| &*node.name == step.name());
        let limited = |step: &StepRow| node(step).is_some_and(|node| node.max_executions.is_some());
        let bounded: Vec<bool> = (table.steps().iter())
            .map(|step| {
                let waits =
                    step.limit().is_some() || node(step).is_some_and(|node| node.concurrency.is_some());
                fails_first(step.name()) || waits
            })
            .collect();
        let discerning: Vec<bool> = (table.steps().iter().zip(&bounded))
            .map(|(step, bounded)| *bounded || limited(step) || !takes_one_at_a_time(step))
            .collect();
        let gathers =
            (0..discerning.len()).filter(|step| discerning[*step] && is_gathering(&table.steps()[*step]));
        let opener = |step: &StepRow| step.outputs().iter().any(OutputRow::is_fan_out);
        let openers: Vec<&StepRow> = table.steps().iter().filter(|step| opener(step)).collect();
        let once = |step: &StepRow| {
            let forecast = node(step).and_then(|node| node.forecast.as_ref());
            forecast.is_some_and(|forecast| forecast.greatest == Some(1) && forecast.per.is_none())
        };
        let numbers = |input: &InputRow| input.kind() == InputKind::Injected && tells_numbers(input.label());
        let numbered = |step: &StepRow| step.inputs().iter().any(numbers);
        let one_fan_out = graph.boxes.len() == 1 && openers.iter().all(|step| once(step));
        let learned = Learned {
            numbered: table.steps().iter().map(numbered).collect(),
            sight: Sight::of(&table, one_fan_out),
            order_read: false,
            wide: HashSet::new(),
        };
        Self {
            gathers: gathers.collect(),
            collected: table.shape().steps.iter().map(collected).collect(),
            one_fan_out,
            nested: graph.boxes.iter().any(|inner| inner.within.is_some()),
            durable,
            learned: Mutex::new(learned),
            discerning,
            bounded,
            table,
        }
    }

    pub(super) fn table(&self) -> &DependencyTable {
        &self.table
    }

    /// The steps that gather.
    fn gathering(&self) -> impl Iterator<Item = usize> {
        let steps = self.table.steps().iter().enumerate();
        steps.filter(|(_, step)| is_gathering(step)).map(|(place, _)| place)
    }

    /// Whether the run has a store whose confirmations are operations.
    pub(super) fn is_durable(&self) -> bool {
        self.durable
    }

    /// Whether a run may have timers.
    pub(super) fn has_timers(&self) -> bool {
        self.table.steps().iter().any(|step| step.outputs().iter().any(OutputRow::is_timed))
    }

    /// Whether a run may have other scopes than its own.
    pub(super) fn has_branches(&self) -> bool {
        !is_flat(&self.table)
    }

    /// The footprint of a commit. A commit that ends the run, sets a timer or fails touches everything.
    pub(super) fn of_commit(&self, step: &str, scope: ScopeId, emitted: &Emitted) -> Footprint {
        // Timers for one time fire in the order in which they were set.
        let sets_timer = emitted.timed_events().next().is_some();
        if sets_timer || emitted.events().any(|event| event.roles().is_stop()) {
            return Footprint::Everything;
        }
        let Some(step) = self.table.step_named(step) else { return Footprint::Everything };
        let mut footprint = self.of_events(scope, emitted.events().map(AnyEvent::name));
        if let Footprint::Log(entry) = &mut footprint {
            let row = &self.table.steps()[step.get()];
            // A fan-out of nothing is gathered at once.
            if row.outputs().iter().any(OutputRow::is_fan_out) {
                entry.steps.extend(&self.gathers);
                entry.shifts = true;
                entry.starts.extend(self.gathering());
            }
            self.ends_bounded(entry, step.get());
        }
        footprint
    }

    /// Where executions of the step are bounded, one of them begins when another one ends.
    fn ends_bounded(&self, entry: &mut Entry, step: usize) {
        if self.bounded[step] {
            entry.bounded.push(step);
            entry.shifts = true;
            entry.starts.push(step);
        }
    }

    /// The footprint of a failure: that of its event, if a step catches it (S29).
    pub(super) fn of_failure(&self, step: &str, scope: ScopeId) -> Footprint {
        let Some(step) = self.table.step_named(step) else { return Footprint::Everything };
        let failure = self.table.steps()[step.get()].failure();
        let Some(failure) = failure else { return Footprint::Everything };
        let name = self.table.events()[failure.get()].name();
        let mut footprint = self.of_events(scope, std::iter::once(name));
        if let Footprint::Log(entry) = &mut footprint {
            entry.fails = true;
            self.ends_bounded(entry, step.get());
        }
        footprint
    }

    /// The footprint of events with these names.
    pub(super) fn of_events<'a>(&self, scope: ScopeId, names: impl Iterator<Item = &'a str>) -> Footprint {
        let in_branch = scope != ScopeId::ROOT;
        let (mut steps, mut bounded, mut shifts) = (Vec::new(), Vec::new(), in_branch);
        // The commit of a branch may complete its fan-out's gather.
        let mut starts = Vec::new();
        if in_branch {
            starts.extend(self.gathering());
        }
        for name in names {
            let Some(event) = self.table.event_named(name) else { return Footprint::Everything };
            shifts = true;
            let takes = |input: &InputRow| input.kind().takes_events() && input.events().contains(&event);
            let rows = self.table.steps().iter().enumerate();
            for (taker, _) in rows.filter(|(_, step)| step.inputs().iter().any(takes)) {
                starts.push(taker);
                if self.discerning[taker] {
                    steps.push(taker);
                }
                if self.bounded[taker] {
                    bounded.push(taker);
                }
            }
            if in_branch {
                let collects =
                    |step: &usize| self.collected[*step].iter().any(|collected| **collected == *name);
                steps.extend((0..self.collected.len()).filter(collects));
            }
        }
        let gathers = if in_branch { self.gathers.clone() } else { Vec::new() };
        Footprint::Log(Entry { scope, steps, bounded, gathers, fails: false, starts, shifts })
    }

    /// Whether a run may have preconditions.
    pub(super) fn has_preconditions(&self) -> bool {
        self.table.steps().iter().any(|step| step.precondition().is_some())
    }

    /// Marks an operation as touching everything, overriding its footprint.
    pub(super) fn widen(&self, op: OpId) {
        self.learned().wide.insert(op);
    }

    /// A step asked in which order branches settled: from here on no two of them commute.
    pub(super) fn note_order_read(&self) {
        self.learned().order_read = true;
    }

    /// Notes what a step has asked of its call.
    pub(super) fn note_asked(&self, step: &str, watch: &CallWatch) {
        if !watch.saw_numbers() && !watch.saw_engine() {
            return;
        }
        let mut learned = self.learned();
        if let Some(step) = self.table.step_named(step).filter(|_| watch.saw_numbers()) {
            learned.numbered[step.get()] = true;
            // The number of the scope that a step is in depends on which branches were opened before.
            if !self.one_fan_out && self.has_branches() {
                learned.sight = learned.sight.max(Sight::Numbers);
            }
        }
        if watch.saw_engine() {
            learned.sight = Sight::Anything;
        }
    }

    /// No code leaves it half-changed.
    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether swapping the two makes no difference to the run.
    pub(super) fn commute(&self, one: &Op, other: &Op) -> bool {
        let learned = self.learned();
        let wide = learned.wide.contains(&one.id) || learned.wide.contains(&other.id);
        !wide && self.footprints_commute(&learned, &one.footprint, &other.footprint)
    }

    fn footprints_commute(&self, learned: &Learned, one: &Footprint, other: &Footprint) -> bool {
        match (one, other) {
            _ if learned.sight == Sight::Anything => false,
            // The first to enter the log gets the lower positions, and starts executions with the lower numbers.
            (Footprint::Log(_), Footprint::Log(_)) if learned.sight == Sight::Numbers => false,
            // The order among batches and confirmations decides which batches share a write and which is confirmed
            // first.
            (Footprint::Log(_), Footprint::Log(_)) if self.durable => false,
            (Footprint::Everything, _)
            | (_, Footprint::Everything)
            | (Footprint::Log(_) | Footprint::Confirmation, Footprint::Confirmation)
            | (Footprint::Confirmation, Footprint::Log(_)) => false,
            (Footprint::Log(one), Footprint::Log(other)) => self.entries_commute(learned, one, other),
            (
                Footprint::Context { of_thread, key, writes },
                Footprint::Context { of_thread: other_of_thread, key: other_key, writes: other_writes },
            ) => {
                let share_a_key = key.is_none() || other_key.is_none() || key == other_key;
                of_thread != other_of_thread || !share_a_key || !(*writes || *other_writes)
            }
            // Only events trigger steps, and no event writes a context.
            (Footprint::Log(_) | Footprint::Confirmation, Footprint::Context { .. })
            | (Footprint::Context { .. }, Footprint::Log(_) | Footprint::Confirmation) => true,
        }
    }

    fn entries_commute(&self, learned: &Learned, one: &Entry, other: &Entry) -> bool {
        if intersect(&one.bounded, &other.bounded) {
            return false;
        }
        let numbered = |entry: &Entry| entry.starts.iter().any(|step| learned.numbered[*step]);
        if numbered(one) && other.shifts || numbered(other) && one.shifts {
            return false;
        }
        if one.scope == other.scope {
            return !intersect(&one.steps, &other.steps);
        }
        // A branch may settle, and outer events are evaluated in open branches.
        if one.scope == ScopeId::ROOT || other.scope == ScopeId::ROOT || self.nested || learned.order_read {
            return false;
        }
        // Siblings do not see each other, and a gather of one fan-out does not see which branch was last.
        self.one_fan_out || !intersect(&one.gathers, &other.gathers)
    }
}

fn is_gathering(step: &StepRow) -> bool {
    step.inputs().iter().any(|input| input.kind() == InputKind::Gather)
}

/// Whether an injectable contains the number of its execution, which is part of child ids.
fn tells_numbers(label: &str) -> bool {
    matches!(label, "RunInfo" | "Children")
}

/// Whether a run has no other scope than its own.
fn is_flat(table: &DependencyTable) -> bool {
    !table.steps().iter().any(|step| step.outputs().iter().any(OutputRow::is_fan_out))
}

fn collected(step: &StepShape) -> Vec<Arc<str>> {
    let gathers = step.inputs.iter().filter(|input| input.kind == InputKind::Gather);
    gathers.flat_map(|input| input.events.iter().cloned()).collect()
}

/// Whether each event of the step has an execution of its own, regardless of earlier events: the step has one input,
/// which is no list, and no precondition.
fn takes_one_at_a_time(step: &StepRow) -> bool {
    let mut inputs = step.inputs().iter().filter(|input| input.kind().takes_events());
    let single = |input: &InputRow| {
        matches!(input.kind(), InputKind::One | InputKind::Reply | InputKind::Gather) && !input.is_optional()
    };
    inputs.next().is_some_and(single) && inputs.next().is_none() && step.precondition().is_none()
}

fn intersect(one: &[usize], other: &[usize]) -> bool {
    one.iter().any(|step| other.contains(step))
}
