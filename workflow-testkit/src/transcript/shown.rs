//! The displayed items of an execution, its failed attempts, and its child runs: a line per item, and one line for all
//! consecutive pieces of a text. Items of runs below have the run's name.

use std::fmt::{self, Write as _};

use workflow_chat::{Chunk, Thought};
use workflow_core::observe::Observed;
use workflow_core::{DisplayItem, ExecutionId};

use super::event::{cut, value};
use super::execution::{Executions, indented};

/// Writes the rest of a line that begins with the execution.
pub(super) fn write(text: &mut String, executions: &Executions<'_>, stretch: &[Observed]) -> fmt::Result {
    match &stretch[0] {
        Observed::ChildStarted { child } => {
            let verb = if child.awaited { "runs" } else { "starts" };
            writeln!(text, " {verb} {} of {}", child.run, child.workflow)
        }
        Observed::AttemptFailed { execution, attempt, class, error, retry_in, .. } => {
            let (error, retried) = (indented(error), executions.retried(*execution, *attempt));
            write!(text, " attempt {attempt} failed ({class}): {error}; {retried} ")?;
            if retry_in.is_zero() { writeln!(text, "at once") } else { writeln!(text, "after {retry_in:?}") }
        }
        Observed::ChildEnded { child, status } => writeln!(text, " {} {status}", child.run),
        Observed::Displayed(item) => displayed(text, item, stretch),
        _ => Ok(()),
    }
}

/// Whether both are pieces of one text.
pub(super) fn is_one_text(one: &Observed, next: &Observed) -> bool {
    let text = |what| Some((by_whom(what)?, verb(what)?));
    text(one).is_some_and(|one| text(next) == Some(one))
}

fn displayed(text: &mut String, item: &DisplayItem, stretch: &[Observed]) -> fmt::Result {
    if let DisplayItem::Child { path, .. } = item
        && let Some(child) = path.last()
    {
        write!(text, " {}", child.run)?;
    }
    match (verb(&stretch[0]), innermost(item)) {
        (Some(verb), _) => {
            let pieces: Vec<String> = stretch.iter().filter_map(piece).collect();
            write!(text, " {verb} {}", cut(&pieces.join(" ")))?;
        }
        (None, DisplayItem::Shown { event, .. }) => {
            write!(text, " showed {}", event.name())?;
            value(text, event)?;
        }
        (None, DisplayItem::Received { event }) => {
            write!(text, " was sent {}", event.name())?;
            value(text, event)?;
        }
        _ => text.push_str(" took back what it showed"),
    }
    text.push('\n');
    Ok(())
}

/// The displayed item, without its path.
fn innermost(item: &DisplayItem) -> &DisplayItem {
    match item {
        DisplayItem::Child { item, .. } => item,
        item => item,
    }
}

/// The executions on its path, from the run's own to the one that displayed it.
fn by_whom(what: &Observed) -> Option<Vec<ExecutionId>> {
    let Observed::Displayed(item) = what else { return None };
    let DisplayItem::Shown { execution, .. } = innermost(item) else { return None };
    let way = match item {
        DisplayItem::Child { path, .. } => &path[..],
        _ => &[],
    };
    Some(way.iter().map(|child| child.execution).chain([*execution]).collect())
}

/// The verb for a piece of text; `None` for other items.
fn verb(what: &Observed) -> Option<&'static str> {
    let Observed::Displayed(item) = what else { return None };
    let said = item.event::<Chunk>().map(|_| "said");
    said.or_else(|| item.event::<Thought>().map(|_| "thought"))
}

/// Quotes a piece, so that its borders are visible.
fn piece(what: &Observed) -> Option<String> {
    let Observed::Displayed(item) = what else { return None };
    let chunk = item.event::<Chunk>().map(|chunk| &chunk.text);
    let text = chunk.or_else(|| item.event::<Thought>().map(|thought| &thought.text))?;
    Some(format!("{text:?}"))
}
