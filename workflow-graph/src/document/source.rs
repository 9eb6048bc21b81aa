//! The text of the file, to locate a place inside of one of its texts. It is not parsed here.

use super::tree::Text;
use crate::problem::sink::At;

/// Places are found by a search from the begin of a text, and only as far as this.
const FARTHEST: usize = 64 << 10;

/// The file that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text }
    }

    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    /// Where byte `offset` of `text`, which begins at `start`, stands in the file.
    ///
    /// Texts with escapes, and texts that are folded, are located as far as the line on which they begin: the notation
    /// does not say which byte led to which character.
    pub(crate) fn locate(self, start: At, text: &Text, offset: usize) -> At {
        let (from, to) = (text.span.0 as usize, text.span.1 as usize);
        if offset > FARTHEST {
            return start;
        }
        let Some(written) = self.text.get(from..to) else { return start };
        let Some(before) = text.value.get(..offset) else { return start };
        let columns = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let inside = written.strip_prefix(['"', '\'']).unwrap_or(written);
        if !before.contains('\n') && inside.starts_with(before) && !written.starts_with(['|', '>']) {
            let quote = columns(written) - columns(inside);
            return At {
                column: start.column.saturating_add(quote).saturating_add(columns(before)),
                ..start
            };
        }
        self.locate_in_block(start, from, written, &text.value, before).unwrap_or(start)
    }

    /// A literal block has one line of the file for each line of the text.
    fn locate_in_block(self, start: At, from: usize, written: &str, text: &str, before: &str) -> Option<At> {
        let line = before.matches('\n').count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let is_marked = written.starts_with('|');
        // The span of a block may begin at its mark or at its first line.
        let is_block = is_marked
            || self.text.get(..from)?.trim_end_matches([' ', '\n', '\r']).ends_with(['|', '-', '+']);
        if !is_block {
            return None;
        }
        let row = written.split('\n').nth(line + usize::from(is_marked))?;
        let content = text.split('\n').nth(line)?;
        let spaces = |line: &str| line.chars().take_while(|c| *c == ' ').count();
        let indent = spaces(row).checked_sub(spaces(content))?;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        // A span without its mark begins behind the indentation of its first line.
        let column = if is_marked || line > 0 { number(indent) } else { start.column.saturating_sub(1) };
        Some(At {
            line: start.line.saturating_add(number(line + usize::from(is_marked))),
            column: column.saturating_add(number(last.chars().count())).saturating_add(1),
        })
    }
}
