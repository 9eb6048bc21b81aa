//! How much is measured.

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// How many turns each contender gets; the median counts.
    pub(crate) turns: usize,
    /// The same for what appends: many short turns, because the time of an `fsync` changes with what else the disk does.
    pub(crate) append_turns: usize,
    /// How many batches one run appends in a turn.
    pub(crate) appends: u64,
    /// How many batches each of many runs appends in a turn.
    pub(crate) appends_each: u64,
    /// How many runs each of those that start runs has in a turn, one after the other.
    pub(crate) runs_each: u64,
    /// How many events the journals have that are read back, of a shorter and a longer run.
    pub(crate) journals: [u64; 2],
}

impl Scale {
    pub(crate) const FULL: Self = Self {
        turns: 15,
        append_turns: 75,
        appends: 40,
        appends_each: 4,
        runs_each: 4,
        journals: [10_000, 100_000],
    };

    pub(crate) const QUICK: Self =
        Self { turns: 1, append_turns: 1, appends: 5, appends_each: 2, runs_each: 1, journals: [200, 2_000] };
}
