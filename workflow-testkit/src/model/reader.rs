//! Reads the scheduler's actions as lines. A bound list becomes the positions it stands for. So a comparison covers the
//! actual input of a step, not the scheduler's encoding.

use std::sync::Arc;

use workflow_core::scheduler::{Action, Bound, Entry, GroupSummary, TimerEntry};
use workflow_core::table::DependencyTable;

use super::line::{BranchLine, Call, Line, Placed, TimerLine};

/// Reads all actions of one scheduler in order, and keeps their log.
#[derive(Debug)]
pub struct Reader {
    table: Arc<DependencyTable>,
    log: Vec<Placed>,
}

impl Reader {
    /// A reader of the actions of a scheduler with this table.
    pub fn new(table: Arc<DependencyTable>) -> Self {
        Self { table, log: Vec::new() }
    }

    /// All events that actions have appended so far.
    pub fn log(&self) -> &[Placed] {
        &self.log
    }

    /// The next action as a line.
    ///
    /// # Panics
    /// Panics on an unknown kind of action, or one that contradicts earlier actions: a gap in the log, or a list longer
    /// than the log.
    pub fn read(&mut self, action: &Action) -> Line {
        match action {
            Action::AskPrecondition { candidate, step, scope, trigger, binding } => {
                Line::Asks { question: candidate.0, call: self.call(step.get(), scope.0, trigger.0, binding) }
            }
            Action::StartExecution { execution, step, scope, trigger, binding } => Line::Starts {
                execution: execution.0,
                call: self.call(step.get(), scope.0, trigger.0, binding),
            },
            Action::Append { cause, entries, timers } => {
                let entries = entries.iter().map(|entry| self.place(*entry)).collect();
                Line::Appends { cause: *cause, entries, timers: timers.iter().map(timer_line).collect() }
            }
            Action::AppendGathered { entry, group } => {
                let (entry, branches) = (self.place(*entry), branch_lines(group));
                Line::Gathers { entry, fan_out: group.fan_out.get(), branches }
            }
            Action::DropExecution { execution } => Line::Drops { execution: execution.0 },
            Action::FreeScope { scope } => Line::Frees { scope: scope.0 },
            Action::RefuseCommit { execution } => Line::RefusesCommit { execution: execution.0 },
            Action::RefuseReceived => Line::RefusesReceived,
            Action::Wait => Line::Waits,
            Action::CleanUp { end, steps } => {
                Line::CleansUp { end: end.clone(), steps: steps.iter().map(|step| step.get()).collect() }
            }
            Action::Finish { end } => Line::Ends(end.clone()),
            unknown => panic!("an action that the transcript does not know: {unknown:?}"),
        }
    }

    /// Adds an entry to the log, which must have no gaps (S4).
    fn place(&mut self, entry: Entry) -> Placed {
        let placed = Placed { seq: entry.seq.0, scope: entry.scope.0, event: entry.event.get() };
        assert_eq!(placed.seq, self.log.len() as u64 + 1, "the log has neither gaps nor repeats");
        self.log.push(placed);
        placed
    }

    fn call(&self, step: usize, scope: u32, trigger: u64, binding: &[Bound]) -> Call {
        let inputs = self.table.steps()[step].inputs();
        assert_eq!(inputs.len(), binding.len(), "every parameter is bound, if only to nothing");
        let seqs = |(slot, bound): (usize, &Bound)| match bound {
            Bound::Nothing => Vec::new(),
            Bound::One(seq) => vec![seq.0],
            Bound::List(prefixes) => {
                let types: Vec<usize> = inputs[slot].events().iter().map(|event| event.get()).collect();
                let prefixes = prefixes.iter().flat_map(|(of, count)| self.prefix(&types, of.0, count));
                let mut seqs: Vec<u64> = prefixes.collect();
                seqs.sort_unstable();
                seqs
            }
        };
        Call { step, scope, trigger, binding: binding.iter().enumerate().map(seqs).collect() }
    }

    /// The first `count` events of these types in one scope.
    fn prefix(&self, types: &[usize], scope: u32, count: u32) -> Vec<u64> {
        let of_scope =
            self.log.iter().filter(|placed| placed.scope == scope && types.contains(&placed.event));
        let prefix: Vec<u64> = of_scope.map(|placed| placed.seq).take(count as usize).collect();
        assert_eq!(prefix.len(), count as usize, "a list is a prefix of what is in the log");
        prefix
    }
}

fn timer_line(entry: &TimerEntry) -> TimerLine {
    TimerLine {
        timer: entry.timer.0,
        execution: entry.execution.0,
        scope: entry.scope.0,
        event: entry.event.get(),
        request: entry.request.map(|request| request.0),
    }
}

fn branch_lines(group: &GroupSummary) -> Vec<BranchLine> {
    let lines = group.branches.iter().map(|branch| BranchLine {
        scope: branch.scope.0,
        item: branch.item.0,
        events: branch.events.iter().map(|(event, seq)| (event.get(), seq.0)).collect(),
        failures: branch.failures.iter().map(|execution| execution.0).collect(),
        dropped: branch.is_dropped(),
        settled: branch.settled(),
    });
    lines.collect()
}
