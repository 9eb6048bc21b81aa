//! Splits a text that comes in pieces into answer and thoughts. It stores no text: the bytes that it holds back are
//! always the beginning of a tag, so their number determines them.

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// A part of a piece, in order. No part is empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text outside of thoughts.
    Text(String),
    /// Text of the open thought.
    Thought(String),
    /// The open thought ended.
    ThoughtEnded,
}

/// The state between two pieces.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// Whether a thought is open.
    inside: bool,
    /// How many bytes of the tag that would end this state came last: fewer than the whole tag. They are text if the
    /// next byte is not the tag's.
    held: usize,
}

impl Splitter {
    /// Takes the next piece, and returns the parts that are certain by now.
    pub(super) fn push(&mut self, mut rest: &str, mut give: impl FnMut(Part)) {
        let mut certain = String::new();
        while !rest.is_empty() {
            rest = if self.held == 0 {
                self.seek(rest, &mut certain)
            } else {
                self.match_tag(rest, &mut certain)
            };
            if self.held == self.tag().len() {
                self.part(&mut certain).into_iter().for_each(&mut give);
                if self.inside {
                    give(Part::ThoughtEnded);
                }
                *self = Self { inside: !self.inside, held: 0 };
            }
        }
        self.part(&mut certain).into_iter().for_each(give);
    }

    /// Ends the text. The held bytes are no tag.
    pub(super) fn end(&mut self) -> Option<Part> {
        let mut rest = self.tag()[..self.held].to_owned();
        self.held = 0;
        self.part(&mut rest)
    }

    /// The index up to which no tag can begin.
    fn seek<'a>(&mut self, piece: &'a str, certain: &mut String) -> &'a str {
        let Some((before, after)) = piece.split_once('<') else {
            certain.push_str(piece);
            return "";
        };
        certain.push_str(before);
        self.held = 1;
        after
    }

    /// Matches the tag. If it breaks off, the held bytes are text. Only the first byte of a tag is a `<`, so no other
    /// tag has begun in them.
    fn match_tag<'a>(&mut self, piece: &'a str, certain: &mut String) -> &'a str {
        let missing = self.tag()[self.held..].bytes();
        let fits = piece.bytes().zip(missing).take_while(|(byte, wanted)| byte == wanted).count();
        if fits == 0 {
            certain.push_str(&self.tag()[..self.held]);
            self.held = 0;
        }
        self.held += fits;
        &piece[fits..]
    }

    fn part(&self, certain: &mut String) -> Option<Part> {
        let text = std::mem::take(certain);
        let kind = if self.inside { Part::Thought } else { Part::Text };
        (!text.is_empty()).then(|| kind(text))
    }

    fn tag(&self) -> &'static str {
        if self.inside { CLOSING } else { OPENING }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pieces: &[&str]) -> Vec<Part> {
        let (mut splitter, mut parts) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, |part| parts.push(part));
        }
        parts.extend(splitter.end());
        parts
    }

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    fn thought(text: &str) -> Part {
        Part::Thought(text.into())
    }

    #[test]
    fn a_piece_may_hold_text_thoughts_and_text() {
        let all = parts(&["a<think>b</think>c<think>d</think>"]);
        let ended = || Part::ThoughtEnded;
        assert_eq!(all, [text("a"), thought("b"), ended(), text("c"), thought("d"), ended()]);
    }

    #[test]
    fn a_tag_that_breaks_off_is_text_at_once_and_another_may_begin_where_it_does() {
        assert_eq!(parts(&["<th", "x"]), [text("<thx")]);
        assert_eq!(parts(&["<th", "<think>y"]), [text("<th"), thought("y")]);
        assert_eq!(parts(&["<", "<", "think>y</", "</think>"])[..2], [text("<"), thought("y")]);
    }

    #[test]
    fn bytes_held_back_at_the_end_are_not_lost() {
        assert_eq!(parts(&["a <"]), [text("a "), text("<")]);
        assert_eq!(parts(&["<think>a</thin"]), [thought("a"), thought("</thin")]);
    }
}
