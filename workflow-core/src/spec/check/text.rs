//! Text that constant evaluation can build, where nothing can be allocated.
//!
//! Invariant: the bytes up to `len` are valid UTF-8, so `as_str` never falls back to the empty text. Text
//! behind the capacity is lost: a message that is cut is better than none.
//!
//! Example: `Text::of("step ").name("ship").and(" takes ").number(2)` is "step `ship` takes 2".

use std::fmt;

/// The most bytes of a message; the rest is cut off.
const CAPACITY: usize = 1024;

/// A message that grows at its end.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    /// UTF-8 up to `len`: text is only ever cut before the first byte of a character.
    bytes: [u8; CAPACITY],
    /// The number of bytes that are set.
    len: usize,
}

impl Text {
    pub(crate) const EMPTY: Self = Self { bytes: [0; CAPACITY], len: 0 };

    /// Creates a message with this beginning.
    pub(crate) const fn of(start: &str) -> Self {
        Self::EMPTY.and(start)
    }

    /// Appends text.
    pub(crate) const fn and(mut self, more: &str) -> Self {
        let bytes = more.as_bytes();
        let fitting = fitting(bytes, CAPACITY - self.len);
        let mut at = 0;
        while at < fitting {
            self.bytes[self.len + at] = bytes[at];
            at += 1;
        }
        self.len += fitting;
        self
    }

    /// Appends a name in backticks.
    pub(crate) const fn name(self, name: &str) -> Self {
        self.and("`").and(name).and("`")
    }

    /// Appends a number.
    pub(crate) const fn number(self, number: u32) -> Self {
        // The higher digits first, by recursion: at most ten deep.
        let start = if number >= 10 { self.number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        match std::str::from_utf8(&digit) {
            Ok(digit) => start.and(digit),
            Err(_) => start,
        }
    }

    /// The text so far.
    pub(crate) const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

/// The number of bytes that fit without cutting a character in two.
const fn fitting(bytes: &[u8], room: usize) -> usize {
    if bytes.len() <= room {
        return bytes.len();
    }
    let mut fitting = room;
    // A byte that continues a character begins with the bits 10.
    while fitting > 0 && bytes[fitting] & 0b1100_0000 == 0b1000_0000 {
        fitting -= 1;
    }
    fitting
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_long_is_cut_between_characters() {
        let long = Text::of(&"a".repeat(CAPACITY - 1)).and("é");
        assert_eq!(long.as_str(), "a".repeat(CAPACITY - 1));
    }

    #[test]
    fn numbers_are_written_in_full() {
        assert_eq!(Text::of("").number(0).and(" ").number(1_048_576).as_str(), "0 1048576");
    }
}
