//! Prose by paragraphs, since sentences go on over lines.

use crate::comments::Comment;

/// Lines of prose that belong together.
#[derive(Debug, Default)]
pub(crate) struct Paragraph {
    text: String,
    /// Where each line begins in the text, and its number in the file.
    starts: Vec<(usize, usize)>,
}

impl Paragraph {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().map(|&(_, line)| line)
    }

    /// The line of the file that a byte of the text is on.
    pub(crate) fn line_at(&self, byte: usize) -> usize {
        let behind = self.starts.partition_point(|&(start, _)| start <= byte);
        self.starts[behind.saturating_sub(1)].1
    }

    fn push(&mut self, line: usize, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), line));
        self.text.push_str(text);
    }
}

/// Comments on lines that follow each other belong together.
pub(crate) fn in_source(comments: &[Comment]) -> Vec<Paragraph> {
    let mut builder = Builder::default();
    let mut previous: Option<&Comment> = None;
    for comment in comments {
        if previous.is_none_or(|last| last.line + 1 != comment.line || last.kind != comment.kind) {
            builder.end();
            builder.in_block = false;
        }
        builder.line(comment.line, &comment.text);
        previous = Some(comment);
    }
    builder.finish()
}

pub(crate) fn in_page(text: &str) -> Vec<Paragraph> {
    let mut builder = Builder::default();
    for (index, line) in text.lines().enumerate() {
        builder.line(index + 1, line);
    }
    builder.finish()
}

#[derive(Default)]
struct Builder {
    done: Vec<Paragraph>,
    open: Paragraph,
    in_block: bool,
    in_table: bool,
}

impl Builder {
    fn line(&mut self, number: usize, line: &str) {
        let text = line.trim();
        let was_in_table = std::mem::replace(&mut self.in_table, text.starts_with('|'));
        if text.starts_with("```") {
            self.end();
            self.in_block = !self.in_block;
        } else if self.in_block {
            // No prose.
        } else if text.starts_with('#') || !text.contains(char::is_alphabetic) {
            self.end();
        } else if text.starts_with('|') {
            self.end();
            for cell in text.split('|').filter(|cell| was_in_table && cell.contains(' ')) {
                self.open.push(number, cell.trim());
                self.end();
            }
        } else if let Some(item) = list_item(text) {
            self.end();
            self.open.push(number, &plain(item));
        } else {
            self.open.push(number, &plain(text));
        }
    }

    fn end(&mut self) {
        if !self.open.text.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    fn finish(mut self) -> Vec<Paragraph> {
        self.end();
        self.done
    }
}

fn list_item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    text.strip_prefix("- ")
        .or_else(|| text.strip_prefix("* "))
        .or_else(|| if digits.len() < text.len() { digits.strip_prefix(". ") } else { None })
}

fn plain(text: &str) -> String {
    text.replace("**", "")
}
