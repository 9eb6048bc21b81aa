//! Frames of a streamed reply: the data of server-sent events, or lines of JSON. It bounds the size of a line and of a
//! reply, and knows nothing of what the data means.

use serde::de::IgnoredAny;

use super::failure::Failure;

/// The longest line, and the longest data of an event, in bytes.
pub(crate) const LINE: usize = 4 * 1024 * 1024;

/// The longest reply in bytes.
pub(crate) const REPLY: usize = 16 * 1024 * 1024;

/// The framing of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// Lines of JSON.
    Lines,
}

/// A splitter that receives chunks, cut anywhere, and returns the data of whole frames.
///
/// An event ends with its empty line and a line with its line end. The bytes after the last end become a frame only
/// by [`rest`](Self::rest), for a body that ended cleanly: some servers leave out the last line end.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    buffer: Vec<u8>,
    /// Everything in `buffer` before it is used up.
    read: usize,
    /// No line end is in `buffer` between `read` and here.
    scanned: usize,
    /// The last line ended with a carriage return, so a line feed now belongs to it.
    after_return: bool,
    is_first_line: bool,
    total: usize,
    /// The data of the event that has not ended.
    data: Option<Vec<u8>>,
}

impl Frames {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            buffer: Vec::new(),
            read: 0,
            scanned: 0,
            after_return: false,
            is_first_line: true,
            total: 0,
            data: None,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.total = self.total.saturating_add(chunk.len());
        if self.total > REPLY {
            return Err(Failure::unusable(format!("the reply has more than {REPLY} bytes")));
        }
        self.buffer.drain(..self.read);
        self.scanned -= self.read;
        self.read = 0;
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// The data of the next whole frame, if the bytes so far have it.
    pub(crate) fn next(&mut self) -> Result<Option<String>, Failure> {
        while let Some(line) = self.line()? {
            let frame = match self.framing {
                Framing::Lines => Some(line).filter(|line| !line.trim_ascii().is_empty()),
                Framing::Events => self.field(&line)?,
            };
            if let Some(frame) = frame {
                let broken = |_| Failure::transient("the stream has bytes that are no UTF-8");
                return String::from_utf8(frame).map(Some).map_err(broken);
            }
        }
        Ok(None)
    }

    /// The frame that the end of the body ends, if it is whole JSON or the word `[DONE]`.
    pub(crate) fn rest(&mut self) -> Option<String> {
        // The end of the line, and that of the event.
        for end in [&b"\n"[..], b"\n"] {
            self.push(end).ok()?;
            if let Some(frame) = self.next().ok()? {
                let is_whole = frame.trim() == "[DONE]" || serde_json::from_str::<IgnoredAny>(&frame).is_ok();
                return Some(frame).filter(|_| is_whole);
            }
        }
        None
    }

    /// Whether the bytes after the last frame begin another one, so that the stream is slow and not silent.
    pub(crate) fn is_within_frame(&self) -> bool {
        let rest = &self.buffer[self.read..];
        match self.framing {
            Framing::Lines => !rest.trim_ascii().is_empty(),
            Framing::Events => self.data.is_some() || rest.starts_with(b"data"),
        }
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.after_return && self.read < self.buffer.len() {
            self.after_return = false;
            if self.buffer[self.read] == b'\n' {
                self.read += 1;
                self.scanned = self.scanned.max(self.read);
            }
        }
        let found = self.buffer[self.scanned..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let end = found.map_or(self.buffer.len(), |at| self.scanned + at);
        if end - self.read > LINE {
            return Err(Failure::unusable(format!("a line of the reply has more than {LINE} bytes")));
        }
        self.scanned = end;
        if found.is_none() {
            return Ok(None);
        }
        let mut line = &self.buffer[self.read..end];
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = line.to_vec();
        self.after_return = self.buffer[end] == b'\r';
        self.read = end + 1;
        self.scanned = self.read;
        Ok(Some(line))
    }

    /// A line of an event. The empty line ends it.
    fn field(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let Some(rest) = line.strip_prefix(b"data") else { return Ok(None) };
        let value = match rest {
            [] => rest,
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            // Another field whose name begins with `data`.
            _ => return Ok(None),
        };
        match &mut self.data {
            Some(data) if data.len() + value.len() >= LINE => {
                return Err(Failure::unusable(format!("an event of the reply has more than {LINE} bytes")));
            }
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frames, Framing, LINE, REPLY};

    fn frames<'a>(framing: Framing, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut frames = Frames::new(framing);
        let mut all = Vec::new();
        for chunk in chunks {
            frames.push(chunk).unwrap();
            while let Some(frame) = frames.next().unwrap() {
                all.push(frame);
            }
        }
        all
    }

    /// A80
    #[test]
    fn every_line_end_separates_and_comments_and_other_fields_are_skipped() {
        let text = b"\xef\xbb\xbf: hello\r\ndata: a\r\n\r\nevent: x\rdata:b\rdata: c\r\rdatabase: d\nid: 1\n\ndata\n\ndata: cut\n";
        assert_eq!(frames(Framing::Events, [&text[..]]), ["a", "b\nc", ""]);
        assert_eq!(frames(Framing::Lines, [&b"{}\r\n\n{\"a\":1}\n{\"cut\""[..]]), ["{}", "{\"a\":1}"]);
    }

    /// A80
    #[test]
    fn long_lines_events_and_replies_are_refused() {
        let long = vec![b'x'; LINE + 1];
        let mut one = Frames::new(Framing::Lines);
        one.push(&long).unwrap();
        assert!(one.next().is_err());
        let mut many = Frames::new(Framing::Events);
        let half = [b"data:".to_vec(), vec![b'x'; LINE / 2], b"\n".to_vec()].concat();
        let refused = (0..3).any(|_| many.push(&half).is_err() || many.next().is_err());
        assert!(refused);
        let mut all = Frames::new(Framing::Lines);
        let line = [vec![b'x'; LINE - 1], b"\n".to_vec()].concat();
        let refused = (0..=REPLY / LINE).any(|_| all.push(&line).is_err() || all.next().is_err());
        assert!(refused);
    }

    proptest! {
        /// A80
        #[test]
        fn chunk_boundaries_change_nothing(
            text in "(data: ?[a-zä:]{0,4}|: [a-z]{0,3}|event: e|[ab]{0,3})((\r\n|\r|\n){1,2}(data:[a-z]{0,3})?){0,12}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            lines in any::<bool>(),
        ) {
            let framing = if lines { Framing::Lines } else { Framing::Events };
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let ends = cuts.iter().copied().chain([bytes.len()]);
            let chunks = cuts.iter().copied().rev().chain([0]).collect::<Vec<_>>().into_iter().rev().zip(ends);
            let whole = frames(framing, [bytes]);
            prop_assert_eq!(&frames(framing, chunks.map(|(from, to)| &bytes[from..to])), &whole);
            prop_assert_eq!(&frames(framing, bytes.chunks(1)), &whole);
        }
    }
}
