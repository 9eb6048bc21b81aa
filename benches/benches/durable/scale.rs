//! How much is measured.

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// The number of turns of each contender; the median counts.
    pub(crate) turns: usize,
    /// The same for appends: many short turns, because the time of an `fsync` varies with the disk's other work.
    pub(crate) append_turns: usize,
    /// How many batches one run appends in a turn.
    pub(crate) appends: u64,
    /// How many batches each of many runs appends in a turn.
    pub(crate) appends_each: u64,
    /// The number of consecutive runs per turn, for contenders that start runs.
    pub(crate) runs_each: u64,
    /// The number of events of the journals to read, of a shorter and a longer run.
    pub(crate) journals: [u64; 2],
    /// The number of runs in the smaller and in the larger file that are queried.
    pub(crate) stored_runs: [u64; 2],
}

impl Scale {
    pub(crate) const FULL: Self = Self {
        turns: 15,
        append_turns: 75,
        appends: 40,
        appends_each: 4,
        runs_each: 4,
        journals: [10_000, 100_000],
        stored_runs: [10_000, 1_000_000],
    };

    pub(crate) const QUICK: Self = Self {
        turns: 1,
        append_turns: 1,
        appends: 5,
        appends_each: 2,
        runs_each: 1,
        journals: [200, 2_000],
        stored_runs: [1_000, 5_000],
    };
}
