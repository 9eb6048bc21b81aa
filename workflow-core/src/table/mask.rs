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

    /// Whether every one of the bits is set.
    pub(crate) fn has_all(&self, bits: &[usize]) -> bool {
        bits.iter().all(|bit| self.has(*bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_first_words_count_like_any_other() {
        let mut mask = Mask::default();
        for bit in [0, 63, 64, 200, 1_000] {
            mask.set(bit);
        }
        assert!(mask.has_all(&[]) && mask.has_all(&[1_000, 0, 200]));
        assert!(!mask.has_all(&[200, 999]) && !Mask::default().has_all(&[200]));
        assert!(mask.has(1_000) && !mask.has(999) && !mask.has(5_000));
    }
}
