//! What an execution showed: a line per item, and one for all pieces of a text that came one after the other. What runs
//! below it showed has the name of the run.

use std::fmt::{self, Write as _};

use workflow_core::{Chunk, DisplayItem, Thought};

use super::event::{cut, value};

pub(super) fn write(text: &mut String, items: &[&DisplayItem]) -> fmt::Result {
    let items: Vec<_> = items.iter().map(|item| by_whom(item)).collect();
    for stretch in items.chunk_by(is_one_text) {
        let (run, item) = stretch[0];
        let space = if run.is_empty() { "" } else { " " };
        write!(text, "   {run}{space}")?;
        match (verb(item), item) {
            (Some(verb), _) => {
                let pieces: Vec<String> = stretch.iter().filter_map(|(_, item)| piece(item)).collect();
                write!(text, "{verb} {}", cut(&pieces.join(" ")))?;
            }
            (None, DisplayItem::Shown { event, .. }) => {
                write!(text, "showed {}", event.name())?;
                value(text, event)?;
            }
            (None, DisplayItem::Received { event }) => {
                write!(text, "was sent {}", event.name())?;
                value(text, event)?;
            }
            _ => text.push_str("took back what it showed"),
        }
        text.push('\n');
    }
    Ok(())
}

/// The run that showed it, without a name for the one whose transcript this is.
fn by_whom(item: &DisplayItem) -> (&str, &DisplayItem) {
    match item {
        DisplayItem::Child { path, item } => (path.last().map_or("", |child| child.run.as_str()), item),
        item => ("", item),
    }
}

fn is_one_text(one: &(&str, &DisplayItem), next: &(&str, &DisplayItem)) -> bool {
    one.0 == next.0 && verb(one.1).is_some_and(|said| Some(said) == verb(next.1))
}

/// What was done with a piece of text; none if the item is not one.
fn verb(item: &DisplayItem) -> Option<&'static str> {
    let said = item.event::<Chunk>().map(|_| "said");
    said.or_else(|| item.event::<Thought>().map(|_| "thought"))
}

/// In quotes, so that it can be seen where it was cut.
fn piece(item: &DisplayItem) -> Option<String> {
    let chunk = item.event::<Chunk>().map(|chunk| &chunk.text);
    let text = chunk.or_else(|| item.event::<Thought>().map(|thought| &thought.text))?;
    Some(format!("{text:?}"))
}
