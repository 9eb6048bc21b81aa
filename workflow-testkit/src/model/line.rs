//! Actions as lines that can be compared and read.

use std::fmt::Write as _;

use workflow_core::scheduler::{Cause, End, Verdict};
use workflow_core::table::DependencyTable;

/// One action: the content of an [`Action`](workflow_core::scheduler::Action) in plain numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Line {
    /// The precondition of a step is evaluated.
    Asks {
        /// The number of the evaluation, which the answer names.
        question: u64,
        /// The step and the binding it would get.
        call: Call,
    },
    /// An execution starts.
    Starts {
        /// Its number.
        execution: u64,
        /// The step and its binding.
        call: Call,
    },
    /// A batch is appended to the log.
    Appends {
        /// The origin of the batch.
        cause: Cause,
        /// Its events in order.
        entries: Vec<Placed>,
        /// The timers that it sets, in order.
        timers: Vec<TimerLine>,
    },
    /// The completion event of a fan-out is appended to the log.
    Gathers {
        /// The event.
        entry: Placed,
        /// The fan-out.
        fan_out: usize,
        /// Its branches, in fan-out order.
        branches: Vec<BranchLine>,
    },
    /// An execution is dropped with its branch.
    Drops {
        /// Its number.
        execution: u64,
    },
    /// A branch is freed: it is settled, or dropped.
    Frees {
        /// Its scope.
        scope: u32,
    },
    /// The commit of an execution is refused, because the run has ended.
    RefusesCommit {
        /// Its number.
        execution: u64,
    },
    /// An arrival from outside is refused.
    RefusesReceived,
    /// The run waits for an arrival from outside.
    Waits,
    /// The run ends, and these clean-up steps are to run before.
    CleansUp {
        /// How it ends.
        end: End,
        /// The steps, in order.
        steps: Vec<usize>,
    },
    /// The run ends.
    Ends(End),
}

/// A step and its binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The step.
    pub step: usize,
    /// The scope it was evaluated in.
    pub scope: u32,
    /// The event that triggered it.
    pub trigger: u64,
    /// Per parameter the sequence numbers of the events that it takes.
    pub binding: Vec<Vec<u64>>,
}

/// One evaluation of one step in one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    /// The step.
    pub step: usize,
    /// The scope it was evaluated in.
    pub scope: u32,
    /// The event that triggered it.
    pub trigger: u64,
    /// The result of the evaluation: an execution, or the reason for none.
    pub verdict: Verdict,
}

/// An event with its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its sequence number.
    pub seq: u64,
    /// Its scope.
    pub scope: u32,
    /// Its type.
    pub event: usize,
}

/// A timer that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerLine {
    /// Its number.
    pub timer: u64,
    /// The execution that sets it.
    pub execution: u64,
    /// The scope of its event.
    pub scope: u32,
    /// The type of its event.
    pub event: usize,
    /// For the expiry of a request: the sequence number of the request.
    pub request: Option<u64>,
}

/// A settled or dropped branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchLine {
    /// Its scope.
    pub scope: u32,
    /// The sequence number of its item.
    pub item: u64,
    /// Type and sequence number of each own event that the gather collects, in order.
    pub events: Vec<(usize, u64)>,
    /// Its executions that failed.
    pub failures: Vec<u64>,
    /// Whether it was dropped, since enough others had settled.
    pub dropped: bool,
    /// How many branches of the fan-out were settled before; of a dropped one, with those dropped before in fan-out
    /// order.
    pub settled: u32,
}

impl Line {
    /// Whether the line is reported although the run has ended meanwhile.
    pub(super) fn survives_the_end(&self) -> bool {
        matches!(
            self,
            Self::RefusesCommit { .. }
                | Self::RefusesReceived
                | Self::Appends { .. }
                | Self::Gathers { .. }
                | Self::Drops { .. }
                | Self::CleansUp { .. }
                | Self::Ends(_)
        )
    }

    /// Formats the line for people, with the names of its table.
    ///
    /// # Panics
    /// Panics if the line belongs to another table.
    pub fn text(&self, table: &DependencyTable) -> String {
        match self {
            Self::Asks { question, call } => format!("ask q{question} {}", call.text(table)),
            Self::Starts { execution, call } => format!("start x{execution} {}", call.text(table)),
            Self::Appends { cause, entries, timers } => {
                let entries = entries.iter().map(|entry| entry.text(table));
                let entries: Vec<String> =
                    entries.chain(timers.iter().map(|timer| timer.text(table))).collect();
                format!("append for {}: {}", cause_text(*cause), entries.join(", "))
            }
            Self::Gathers { entry, branches, .. } => {
                let branches = branches.iter().zip(0..).map(|(branch, place)| branch.text(place, table));
                let branches: Vec<String> = branches.collect();
                format!("gather {}: {}", entry.text(table), branches.join("; "))
            }
            Self::Drops { execution } => format!("drop x{execution}"),
            Self::Frees { scope } => format!("free scope {scope}"),
            Self::RefusesCommit { execution } => format!("refuse the commit of x{execution}"),
            Self::RefusesReceived => "refuse what was sent".to_owned(),
            Self::Waits => "wait".to_owned(),
            Self::CleansUp { end, steps } => {
                let names: Vec<&str> = steps.iter().map(|step| table.steps()[*step].name()).collect();
                format!("clean up with {}: {}", names.join(", "), end_text(end))
            }
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

impl TimerLine {
    fn text(&self, table: &DependencyTable) -> String {
        let name = table.events()[self.event].name();
        let closes = self.request.map_or_else(String::new, |request| format!(" closes #{request}"));
        format!("t{} for {name}{closes}{}", self.timer, scope_text(self.scope))
    }
}

impl BranchLine {
    /// The place in the order of settling is shown where it differs from that of the item.
    fn text(&self, place: u32, table: &DependencyTable) -> String {
        let mut text = format!("scope {} of #{}", self.scope, self.item);
        for (event, seq) in &self.events {
            let _ = write!(text, ", #{seq} {}", table.events()[*event].name());
        }
        for execution in &self.failures {
            let _ = write!(text, ", failed x{execution}");
        }
        if self.dropped {
            text.push_str(", dropped");
        }
        if self.settled != place {
            let _ = write!(text, ", place {}", self.settled);
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
        Cause::Expired(request) => format!("the expiry of {request}"),
        Cause::Timer { timer, execution } => format!("{timer} of {execution}"),
        Cause::Execution(execution) => execution.to_string(),
        Cause::Failure(execution) => format!("the failure of {execution}"),
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
        End::TooManyExecutions => "the run had too many executions".to_owned(),
        End::TooManyItems(excess) => format!("{} items, and {} executions left", excess.amount, excess.left),
        End::TooManyEvents(excess) => format!("{} events, and room for {}", excess.amount, excess.left),
        End::TimedOut => "timed out".to_owned(),
        End::LogFull => "the log is full".to_owned(),
        End::AppendFailed => "the log cannot be written".to_owned(),
        unknown => panic!("an end that the transcript does not know: {unknown:?}"),
    }
}
