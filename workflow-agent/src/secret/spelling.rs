//! The spellings of a value in a text: as it is, with `%XX`, as JSON has it between quotes, and in Base64. Spellings may change
//! from character to character.

/// The most backslashes before a character: JSON within JSON within JSON.
const BACKSLASHES: usize = 8;
/// The shortest Base64 in characters that tells a value from other text.
const TELLING: usize = 10;

/// Whether a value stands at a place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    No,
    /// The text ends before the value does.
    Begun,
    /// The value ends here, and may end later if the text goes on.
    Whole {
        end: usize,
        is_open: bool,
    },
}

/// Whether `value` stands in `text` from `at` on.
pub(super) fn at(text: &str, at: usize, value: &str) -> Found {
    let bytes = text.as_bytes();
    let (mut places, mut is_begun) = (vec![at], false);
    for character in value.chars() {
        let mut next = Vec::with_capacity(1);
        for place in places {
            is_begun |= step(bytes, place, character, &mut next);
        }
        next.sort_unstable();
        next.dedup();
        places = next;
        if places.is_empty() {
            return if is_begun { Found::Begun } else { Found::No };
        }
    }
    places.last().map_or(Found::No, |end| Found::Whole { end: *end, is_open: is_begun })
}

/// The bytes with which a spelling of the character can begin.
pub(super) fn begins(character: char) -> [u8; 4] {
    let mut buffer = [0; 4];
    let first = character.encode_utf8(&mut buffer).as_bytes()[0];
    [first, b'%', b'\\', if character == ' ' { b'+' } else { first }]
}

/// Adds the places behind each spelling of a character. Returns whether the text ends within one.
fn step(text: &[u8], place: usize, character: char, next: &mut Vec<usize>) -> bool {
    let rest = &text[place..];
    let mut buffer = [0; 4];
    let own = character.encode_utf8(&mut buffer).as_bytes();
    let mut is_begun = false;
    let mut add = |taken: Taken| match taken {
        Taken::No => {}
        Taken::Begun => is_begun = true,
        Taken::Bytes(count) => next.push(place + count),
    };
    add(literal(rest, own));
    add(percent(rest, own));
    if character == ' ' {
        add(literal(rest, b"+"));
    }
    let slashes = rest.iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    for count in 1..=slashes {
        let Some(behind) = rest.get(count..).filter(|behind| !behind.is_empty()) else {
            add(Taken::Begun);
            continue;
        };
        if short(character).is_some_and(|short| short == behind[0]) {
            add(Taken::Bytes(count + 1));
        }
        add(units(behind, count, character));
    }
    is_begun
}

/// How much of a text a spelling takes.
enum Taken {
    No,
    Begun,
    Bytes(usize),
}

fn literal(rest: &[u8], own: &[u8]) -> Taken {
    match rest.get(..own.len()) {
        Some(found) if found == own => Taken::Bytes(own.len()),
        None if own.starts_with(rest) => Taken::Begun,
        _ => Taken::No,
    }
}

/// Each byte as `%XX`.
fn percent(rest: &[u8], own: &[u8]) -> Taken {
    let spelled = own.iter().flat_map(|byte| [b'%', hex(byte >> 4), hex(byte & 15)]);
    let mut found = rest.iter();
    for expected in spelled {
        match found.next() {
            None => return Taken::Begun,
            Some(byte) if byte.to_ascii_lowercase() == expected => {}
            Some(_) => return Taken::No,
        }
    }
    Taken::Bytes(own.len() * 3)
}

/// The character as `uXXXX` behind `count` backslashes, twice for one beyond 16 bits.
fn units(behind: &[u8], count: usize, character: char) -> Taken {
    let mut buffer = [0; 2];
    let units = character.encode_utf16(&mut buffer);
    let mut spelled = Vec::with_capacity(units.len() * (count + 5));
    for (number, unit) in units.iter().enumerate() {
        if number > 0 {
            spelled.extend(std::iter::repeat_n(b'\\', count));
        }
        spelled.push(b'u');
        spelled.extend([12, 8, 4, 0].map(|shift| hex((unit >> shift & 15) as u8)));
    }
    let is_same = |(found, expected): (&u8, &u8)| {
        found == expected || found.to_ascii_lowercase() == *expected && *expected != b'u'
    };
    match behind.len() < spelled.len() {
        _ if !behind.iter().zip(&spelled).all(is_same) => Taken::No,
        true => Taken::Begun,
        false => Taken::Bytes(count + spelled.len()),
    }
}

/// The character behind a backslash that stands for this one in JSON.
fn short(character: char) -> Option<u8> {
    match character {
        '"' => Some(b'"'),
        '\\' => Some(b'\\'),
        '/' => Some(b'/'),
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        _ => None,
    }
}

fn hex(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit & 15)]
}

/// The parts of the Base64 of any text that contains the value, which only the value decides: one for each place in a group
/// of three bytes, in both alphabets.
pub(super) fn base64(value: &str) -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const OF_ADDRESSES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut spelled = Vec::new();
    for before in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(value.bytes()).collect();
        let digits: Vec<usize> = (0..bytes.len() * 8 / 6).map(|digit| sextet(&bytes, digit)).collect();
        // The first digits have bits of the text before.
        let Some(own) = digits.get((before * 8).div_ceil(6)..).filter(|own| own.len() >= TELLING) else {
            continue;
        };
        for alphabet in [STANDARD, OF_ADDRESSES] {
            spelled.push(own.iter().map(|digit| char::from(alphabet[*digit])).collect());
        }
    }
    spelled.sort_unstable();
    spelled.dedup();
    spelled
}

/// Six bits of bytes.
fn sextet(bytes: &[u8], digit: usize) -> usize {
    let (byte, shift) = (digit * 6 / 8, digit * 6 % 8);
    let next = bytes.get(byte + 1).copied().unwrap_or(0);
    usize::from(u16::from_be_bytes([bytes[byte], next]) >> (10 - shift) & 63)
}
