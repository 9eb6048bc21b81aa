//! The output of a command, bounded while it is read: its head and its tail stay. The agent cuts it again for the model,
//! after it has replaced secrets, which is why more than that is kept here.

use std::mem;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first bytes that stay.
const HEAD: usize = 640 * 1024;
/// The last bytes that stay. The tail grows to twice as many before it is shortened.
const TAIL: usize = 128 * 1024;
/// The bytes of one read.
const CHUNK: usize = 16 * 1024;

/// At most 1 MiB of text.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: String,
    tail: String,
    /// The first bytes of a character whose rest has not been read.
    begun: Vec<u8>,
    bytes: u64,
}

impl Capture {
    /// Reads to the end. A failure is an end, too: there is nothing else that could be read.
    pub(super) async fn read(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.push(&chunk[..read]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut all = mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.push_text(chunk.valid());
            match chunk.invalid() {
                [] => {}
                begun if chunks.peek().is_none() && may_continue(begun) => self.begun = begun.to_vec(),
                _ => self.push_text("\u{fffd}"),
            }
        }
    }

    fn push_text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let mut rest = text;
        // Once something is in the tail, nothing more fits the head.
        if self.tail.is_empty() {
            let end = text.floor_char_boundary(HEAD - self.head.len());
            self.head.push_str(&text[..end]);
            rest = &text[end..];
        }
        self.tail.push_str(rest);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len() - TAIL));
        }
    }

    /// The size of all output, as text.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the middle was dropped.
    pub(super) fn is_part(&self) -> bool {
        self.missing() > 0
    }

    fn missing(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Head and tail, and between them the number of bytes that were dropped.
    pub(super) fn into_text(mut self) -> String {
        if !self.begun.is_empty() {
            self.push_text("\u{fffd}");
        }
        let missing = self.missing();
        if missing == 0 {
            return self.head + &self.tail;
        }
        format!("{}\n[… {missing} bytes are missing here …]\n{}", self.head, self.tail)
    }
}

/// Whether more bytes could make a character of these.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Capture, HEAD, TAIL};

    proptest! {
        /// A16
        #[test]
        fn characters_survive_any_division_into_reads(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "\\PC{0,20}", size in 1_usize..9) {
            let bytes = [&bytes[..], text.as_bytes()].concat();
            let mut capture = Capture::default();
            bytes.chunks(size).for_each(|chunk| capture.push(chunk));
            prop_assert_eq!(capture.into_text(), String::from_utf8_lossy(&bytes));
        }
    }

    /// A16
    #[test]
    fn head_and_tail_stay_and_the_missing_bytes_are_counted() {
        let all: String = (0..400_000).flat_map(|number: u32| ["ä".into(), number.to_string()]).collect();
        let mut capture = Capture::default();
        all.as_bytes().chunks(16 * 1024).for_each(|chunk| capture.push(chunk));
        assert!(capture.head.capacity() + capture.tail.capacity() <= 2 * (HEAD + 2 * TAIL));
        assert_eq!(capture.bytes(), all.len() as u64);
        let text = capture.into_text();
        assert!(text.len() < 1024 * 1024);
        let (head, rest) = text.split_once("\n[… ").unwrap();
        let (missing, tail) = rest.split_once(" bytes are missing here …]\n").unwrap();
        assert!(all.starts_with(head) && all.ends_with(tail) && tail.len() >= TAIL);
        assert_eq!(head.len() + tail.len() + missing.parse::<usize>().unwrap(), all.len());
    }
}
