//! Comparing names, and finding similar ones, so that a message can suggest what a mistyped name should have
//! been.
//!
//! Invariant: everything here works in constant evaluation, where nothing can be allocated and every step
//! costs compile time. So lengths are bounded: names that are too long to compare letter by letter resemble
//! only by prefix, and a message lists a few names and counts the others.
//!
//! Example: `Shiped` is near `Shipped`: one letter is missing, and names of 6 letters may differ in 2.
//! `Order` is near `OrderPlaced`: the whole shorter name is a prefix.

/// The longest names, in bytes, that are compared letter by letter. Longer ones are compared by prefix only.
const LONGEST: usize = 48;

/// Whether both names are equal.
pub(crate) const fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && shared_prefix(one.as_bytes(), other.as_bytes()) == one.len()
}

/// Hashes a name; equal names have equal hashes. Cheap per letter and without calls, since most of the work
/// for a workflow without mistakes is hashing names.
pub(crate) const fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (mut hash, mut at) = (bytes.len(), 0);
    while at < bytes.len() {
        hash = (hash * 31 + bytes[at] as usize) & 0x00ff_ffff;
        at += 1;
    }
    hash
}

/// Whether one name may be a typing error for the other: a few letters differ, or both begin alike.
pub(crate) const fn near(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let shorter = if one.len() < other.len() { one.len() } else { other.len() };
    let prefix = shared_prefix(one, other);
    // At least 4 letters, and two thirds of the shorter name.
    let begins_alike = prefix >= 4 && prefix * 3 >= shorter * 2;
    // Short names may differ in 1 letter, and one more for each 5 letters.
    begins_alike || shorter >= 3 && distance(one, other) <= 1 + shorter / 5
}

/// How many bytes at the beginning are equal, in the same case.
const fn shared_prefix(one: &[u8], other: &[u8]) -> usize {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at
}

/// The number of letters to add, remove or change, ignoring case.
const fn distance(one: &[u8], other: &[u8]) -> usize {
    if one.len() > LONGEST || other.len() > LONGEST {
        return usize::MAX;
    }
    // One row of the table of distances at a time. The first row: a prefix of `other` from nothing.
    let mut row = [0; LONGEST + 1];
    let mut column = 0;
    while column <= other.len() {
        row[column] = column;
        column += 1;
    }
    let mut at = 0;
    while at < one.len() {
        row = next_row(&row, one[at], at, other);
        at += 1;
    }
    row[other.len()]
}

/// The distances of the first `at + 1` letters of the one name to each prefix of the other.
const fn next_row(above: &[usize; LONGEST + 1], letter: u8, at: usize, other: &[u8]) -> [usize; LONGEST + 1] {
    let mut row = [0; LONGEST + 1];
    row[0] = at + 1;
    let mut column = 0;
    while column < other.len() {
        let changed = above[column] + !letter.eq_ignore_ascii_case(&other[column]) as usize;
        row[column + 1] = least(changed, least(above[column + 1], row[column]) + 1);
        column += 1;
    }
    row
}

/// The smaller number.
const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

/// The most names that a message lists.
const LISTED: usize = 8;

/// The most names that are stored. More than a message lists, since a table error has all of them as a field.
const KEPT: usize = 32;

/// A few names for a message. Names beyond its capacity are counted only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'n> {
    /// The stored names, in the order of adding; empty behind them.
    names: [&'n str; KEPT],
    /// The number of names added, stored or not.
    count: usize,
}

impl<'n> Names<'n> {
    pub(crate) const NONE: Self = Self { names: [""; KEPT], count: 0 };

    /// Adds a name.
    pub(crate) const fn push(&mut self, name: &'n str) {
        if self.count < KEPT {
            self.names[self.count] = name;
        }
        self.count += 1;
    }

    /// Whether the only name is that of a request's expiry. A message has no more of an event than its name.
    pub(crate) const fn is_an_expiry(&self) -> bool {
        self.count == 1
            && matches!(self.names[0].as_bytes(), [.., b'.', b'e', b'x', b'p', b'i', b'r', b'e', b'd'])
    }

    /// Whether the name is stored. A name that was only counted is not found.
    pub(crate) const fn has(&self, name: &str) -> bool {
        let mut at = 0;
        while at < self.kept() {
            if same(self.names[at], name) {
                return true;
            }
            at += 1;
        }
        false
    }

    /// The number of names added, stored or not.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The number of names that a message lists.
    pub(crate) const fn listed(&self) -> usize {
        least(self.count, LISTED)
    }

    pub(crate) const fn get(&self, at: usize) -> &'n str {
        self.names[at]
    }

    const fn kept(&self) -> usize {
        least(self.count, KEPT)
    }

    /// The stored names.
    pub(crate) fn to_vec(self) -> Vec<String> {
        self.names[..self.kept()].iter().map(|name| (*name).to_owned()).collect()
    }
}

impl<'n> FromIterator<&'n str> for Names<'n> {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let mut all = Self::NONE;
        names.into_iter().for_each(|name| all.push(name));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_another_if_a_few_letters_differ_or_it_begins_alike() {
        for (one, other) in [("Fact", "Facts"), ("Retrieved", "Retreived"), ("Retrieved", "RetrievedAll")] {
            assert!(near(one, other) && near(other, one), "{one}, {other}");
        }
        for (one, other) in [("Fact", "Question"), ("A", "B"), ("Order", "Paid"), ("Draft", "Done")] {
            assert!(!near(one, other), "{one}, {other}");
        }
    }

    #[test]
    fn more_names_than_are_listed_are_counted() {
        let names: Names<'_> = std::iter::repeat_n("a", 11).collect();
        assert_eq!((names.listed(), names.count()), (8, 11));
    }
}
