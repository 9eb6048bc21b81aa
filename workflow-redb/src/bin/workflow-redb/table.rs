//! Tables for people: columns of the needed width, with text that cannot affect a terminal.

use std::io::{self, Write};

/// Replaces characters that a terminal would interpret.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Marks that reorder what is beside them, or take no room.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Text, cut after so many characters.
pub(crate) fn short(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Rows with headings. The last column is not padded.
pub(crate) struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(headings: [&'static str; N]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| plain(&cell)));
    }

    pub(crate) fn print(&self, to: &mut dyn Write, colour: bool) -> io::Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.headings[column].len()]).max().unwrap_or_default()
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let headings = line(&self.headings.map(str::to_owned), &widths);
        if colour {
            writeln!(to, "\x1b[1m{headings}\x1b[0m")?;
        } else {
            writeln!(to, "{headings}")?;
        }
        self.rows.iter().try_for_each(|row| writeln!(to, "{}", line(row, &widths)))
    }
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\x1b[31m\n日本"), "a\\u{1b}[31m\\n日本");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(short("日本語", 2), "日本…");
        assert_eq!(short("日本", 2), "日本");
    }
}
