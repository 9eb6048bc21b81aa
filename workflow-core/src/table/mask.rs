//! A bit set of any width. Up to 128 bits need no allocation.

use smallvec::SmallVec;

/// A growable bit set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mask(SmallVec<[u64; 2]>);

impl Mask {
    pub(crate) fn set(&mut self, bit: usize) {
        let word = bit / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (bit % 64);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 64).is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }

    /// Whether every bit of `self` is in `other`.
    pub(crate) fn is_subset_of(&self, other: &Self) -> bool {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        self.0.iter().zip(others).all(|(mine, theirs)| mine & !theirs == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_first_words_count_like_any_other() {
        let (mut some, mut all) = (Mask::default(), Mask::default());
        for bit in [0, 63, 64, 200, 1_000] {
            all.set(bit);
        }
        some.set(200);
        assert!(some.is_subset_of(&all) && !all.is_subset_of(&some));
        assert!(all.has(1_000) && !all.has(999) && !all.has(5_000));
        assert!(Mask::default().is_subset_of(&some));
    }
}
