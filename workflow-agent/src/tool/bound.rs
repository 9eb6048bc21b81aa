//! The bound of a tool's output: the head and the tail stay.

/// The longest text of a result in bytes.
pub(crate) const OUTPUT: usize = 32 * 1024;

/// Cuts the middle out of a text of more than `most` bytes, between characters, and says how many bytes are missing.
pub(crate) fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let note = |missing: usize| format!("\n[… {missing} bytes are missing here …]\n");
    // The note is never longer than with all bytes missing.
    let kept = most.saturating_sub(note(text.len()).len());
    let head = floor(text, kept - kept / 4);
    let tail = ceil(text, text.len() - kept / 4);
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..]).into()
}

/// The begin of a text, at most `most` bytes.
pub(crate) fn head(text: &str, most: usize) -> &str {
    &text[..floor(text, most.min(text.len()))]
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::cut;

    proptest! {
        /// A16
        #[test]
        fn a_cut_text_keeps_head_and_tail_and_counts_the_missing_bytes(text in "\\PC{0,400}", most in 64_usize..300) {
            let short = cut(&text, most);
            prop_assert!(short.len() <= most.max(text.len().min(most)));
            if text.len() > most {
                let (head, rest) = short.split_once("\n[… ").unwrap();
                let (missing, tail) = rest.split_once(" bytes are missing here …]\n").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(head.len() + tail.len() + missing.parse::<usize>().unwrap(), text.len());
            } else {
                prop_assert_eq!(&*short, &text);
            }
        }
    }
}
