//! Actions as comparable, readable lines. A bound list is written out as the positions it stands for, so
//! that what is compared is what a step would be handed, not how the scheduler names it.

use std::fmt::Write as _;
use std::sync::Arc;

use workflow_core::DependencyTable;
use workflow_core::scheduler::{Action, Bound, Cause, End, Entry, GroupSummary};

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Asks { question: u64, call: Call },
    Starts { execution: u64, call: Call },
    Appends { cause: Cause, entries: Vec<Placed> },
    Gathers { entry: Placed, fan_out: usize, branches: Vec<BranchLine> },
    Drops { execution: u64 },
    Frees { scope: u32 },
    RefusesCommit { execution: u64 },
    RefusesReceived,
    Waits,
    Ends(End),
}

/// A step with what it would be handed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) step: usize,
    pub(crate) scope: u32,
    pub(crate) trigger: u64,
    /// Per parameter the positions of the events it is bound to.
    pub(crate) binding: Vec<Vec<u64>>,
}

/// An event with its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) seq: u64,
    pub(crate) scope: u32,
    pub(crate) event: usize,
}

/// A settled branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchLine {
    pub(crate) scope: u32,
    pub(crate) item: u64,
    pub(crate) events: Vec<(usize, u64)>,
    pub(crate) failures: Vec<u64>,
}

/// Reads actions, and keeps the log they make.
#[derive(Debug)]
pub(crate) struct Reader {
    table: Arc<DependencyTable>,
    log: Vec<Placed>,
}

impl Reader {
    pub(crate) fn new(table: Arc<DependencyTable>) -> Self {
        Self { table, log: Vec::new() }
    }

    /// Every event that was handed out to be appended so far.
    pub(crate) fn log(&self) -> &[Placed] {
        &self.log
    }

    pub(crate) fn read(&mut self, action: &Action) -> Line {
        match action {
            Action::AskPrecondition { candidate, step, scope, trigger, binding } => {
                Line::Asks { question: candidate.0, call: self.call(step.get(), scope.0, trigger.0, binding) }
            }
            Action::StartExecution { execution, step, scope, trigger, binding } => Line::Starts {
                execution: execution.0,
                call: self.call(step.get(), scope.0, trigger.0, binding),
            },
            Action::Append { cause, entries } => {
                let entries = entries.iter().map(|entry| self.place(*entry)).collect();
                Line::Appends { cause: *cause, entries }
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
            Action::Finish { end } => Line::Ends(end.clone()),
            unknown => panic!("an action that the transcript does not know: {unknown:?}"),
        }
    }

    /// Takes an entry into the log, which has to be without gaps (S4).
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
                let prefixes = prefixes.iter().flat_map(|(of, count)| self.prefix(&types, of.0, *count));
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

fn branch_lines(group: &GroupSummary) -> Vec<BranchLine> {
    let lines = group.branches.iter().map(|branch| BranchLine {
        scope: branch.scope.0,
        item: branch.item.0,
        events: branch.events.iter().map(|(event, seq)| (event.get(), seq.0)).collect(),
        failures: branch.failures.iter().map(|execution| execution.0).collect(),
    });
    lines.collect()
}

impl Line {
    /// The line for people, with the names of the table.
    pub(crate) fn text(&self, table: &DependencyTable) -> String {
        match self {
            Self::Asks { question, call } => format!("ask q{question} {}", call.text(table)),
            Self::Starts { execution, call } => format!("start x{execution} {}", call.text(table)),
            Self::Appends { cause, entries } => {
                let entries: Vec<String> = entries.iter().map(|entry| entry.text(table)).collect();
                format!("append for {}: {}", cause_text(*cause), entries.join(", "))
            }
            Self::Gathers { entry, branches, .. } => {
                let branches: Vec<String> = branches.iter().map(|branch| branch.text(table)).collect();
                format!("gather {}: {}", entry.text(table), branches.join("; "))
            }
            Self::Drops { execution } => format!("drop x{execution}"),
            Self::Frees { scope } => format!("free scope {scope}"),
            Self::RefusesCommit { execution } => format!("refuse the commit of x{execution}"),
            Self::RefusesReceived => "refuse what was sent".to_owned(),
            Self::Waits => "wait".to_owned(),
            Self::Ends(end) => end_text(end),
        }
    }
}

impl Call {
    fn text(&self, table: &DependencyTable) -> String {
        let slots: Vec<String> = self.binding.iter().map(|seqs| slot_text(seqs)).collect();
        let Self { step, scope, trigger, .. } = self;
        let name = table.steps()[*step].name();
        format!("{name}({}) by #{trigger}{}", slots.join(", "), scope_text(*scope))
    }
}

impl Placed {
    fn text(&self, table: &DependencyTable) -> String {
        format!("#{} {}{}", self.seq, table.events()[self.event].name(), scope_text(self.scope))
    }
}

impl BranchLine {
    fn text(&self, table: &DependencyTable) -> String {
        let mut text = format!("scope {} of #{}", self.scope, self.item);
        for (event, seq) in &self.events {
            let _ = write!(text, ", #{seq} {}", table.events()[*event].name());
        }
        for execution in &self.failures {
            let _ = write!(text, ", failed x{execution}");
        }
        text
    }
}

fn slot_text(seqs: &[u64]) -> String {
    if seqs.is_empty() {
        return "-".to_owned();
    }
    let seqs: Vec<String> = seqs.iter().map(|seq| format!("#{seq}")).collect();
    seqs.join(" ")
}

fn scope_text(scope: u32) -> String {
    if scope == 0 { String::new() } else { format!(" in scope {scope}") }
}

fn cause_text(cause: Cause) -> String {
    match cause {
        Cause::Outside => "the outside".to_owned(),
        Cause::Reply(request) => format!("the reply to {request}"),
        Cause::Execution(execution) => execution.to_string(),
    }
}

fn end_text(end: &End) -> String {
    match end {
        End::Completed(stop) => format!("completed by {stop}"),
        End::Failed(executions) => {
            let executions: Vec<String> = executions.iter().map(ToString::to_string).collect();
            format!("failed by {}", executions.join(" "))
        }
        End::PreconditionFailed(question) => format!("failed by the precondition of q{}", question.0),
        End::Stalled => "stalled".to_owned(),
        End::Cancelled => "cancelled".to_owned(),
        End::LogFull => "the log is full".to_owned(),
        unknown => panic!("an end that the transcript does not know: {unknown:?}"),
    }
}
