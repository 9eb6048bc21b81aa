//! `read_file`: the lines of a text file, bounded.

use std::fmt::Write as _;
use std::io::Read as _;

use super::ReadFile;
use super::access::{AccessError, Root};

/// The most bytes of a file that are read.
const READ: u64 = 8 * 1024 * 1024;

pub(super) fn read(root: &Root, arguments: &ReadFile) -> Result<String, AccessError> {
    let path = &arguments.path;
    let (file, metadata) = root.open(path)?;
    let mut bytes = Vec::new();
    // One byte more shows that the file is longer, also if it grew meanwhile.
    file.take(READ + 1).read_to_end(&mut bytes).map_err(AccessError::io(path))?;
    let is_part = bytes.len() as u64 > READ;
    bytes.truncate(usize::try_from(READ).unwrap_or(usize::MAX));
    if is_part {
        whole_characters(&mut bytes);
    }
    let lines = lines(&bytes, arguments)?;
    let mut text = String::from_utf8_lossy(lines).into_owned();
    if std::str::from_utf8(lines).is_err() {
        note(&mut text, "bytes that are no UTF-8 are shown as \u{fffd}; do not write this text back");
    }
    if is_part {
        let size = metadata.len().max(READ + 1);
        note(&mut text, &format!("the file has {size} bytes, of which only the first {READ} can be read"));
    }
    Ok(text)
}

/// Cuts off a character whose rest lies beyond the bound.
fn whole_characters(bytes: &mut Vec<u8>) {
    let begun = (1..=3).filter_map(|length| bytes.len().checked_sub(length)).find(|begin| {
        let rest = std::str::from_utf8(&bytes[*begin..]);
        rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    bytes.truncate(begun.unwrap_or(bytes.len()));
}

/// The part of `bytes` that the arguments ask for.
fn lines<'a>(bytes: &'a [u8], arguments: &ReadFile) -> Result<&'a [u8], AccessError> {
    let from = arguments.from_line.unwrap_or(1).max(1);
    let mut all = bytes.split_inclusive(|byte| *byte == b'\n');
    let before = all.by_ref().take(from - 1);
    let (passed, begin) = before.fold((0, 0), |(lines, at), line| (lines + 1, at + line.len()));
    if passed < from - 1 || (begin == bytes.len() && from > 1) {
        return Err(AccessError::NoLine { path: arguments.path.clone(), lines: passed, from });
    }
    let wanted = all.take(arguments.lines.unwrap_or(usize::MAX));
    let length: usize = wanted.map(<[u8]>::len).sum();
    Ok(&bytes[begin..begin + length])
}

/// Adds a remark on a line of its own.
fn note(text: &mut String, remark: &str) {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    writeln!(text, "{gap}[{remark}]").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    /// A90
    #[test]
    fn a_cut_character_goes_and_whole_or_wrong_ones_stay() {
        let cut = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            whole_characters(&mut bytes);
            bytes
        };
        assert_eq!(cut("abcdeä".as_bytes()), "abcdeä".as_bytes());
        assert_eq!(cut(&"abcdeä".as_bytes()[..6]), b"abcde");
        assert_eq!(cut("ää".as_bytes()), "ää".as_bytes());
        assert_eq!(cut(&"ä日".as_bytes()[..4]), "ä".as_bytes());
        assert_eq!(cut(&"x😀".as_bytes()[..4]), b"x");
        assert_eq!(cut(b"abcde\xff"), b"abcde\xff");
        assert_eq!(cut(b""), b"");
    }
}
