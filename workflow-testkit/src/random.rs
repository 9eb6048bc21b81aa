//! Random numbers from a seed, the same on every machine.

/// A sequence of random numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// This is `SplitMix64`.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, or 0. The bias is that of a modulus far below 2^64.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or_default()
    }
}
