//! Making a failing order smaller while it still fails.

use super::order::Order;

/// The maximum number of runs for shrinking.
const MOST_RUNS: usize = 500;

/// A run with more operations than this counts as several.
const OPERATIONS: usize = 256;

/// A failing order, and the message of the assertion.
pub(super) struct Failing {
    pub(super) order: Order,
    /// The number of its operations.
    pub(super) operations: usize,
    pub(super) message: String,
}

/// Shrinks a failing order by cutting off its end, leaving choices out and lowering them. `fails` follows choices as
/// far as they fit, and returns the resulting order and its failure message.
pub(super) fn shrink(found: Failing, mut fails: impl FnMut(&[usize]) -> Option<Failing>) -> Failing {
    let (mut best, mut runs) = (found, 0);
    'smaller: loop {
        let choices = best.order.choices().to_vec();
        for candidate in candidates(&choices) {
            if runs >= MOST_RUNS {
                return best;
            }
            // Candidates that pass are about as long.
            runs += 1 + best.operations / OPERATIONS;
            if let Some(failing) = fails(&candidate)
                && failing.order < best.order
            {
                best = failing;
                continue 'smaller;
            }
        }
        return best;
    }
}

/// Smaller ones, the smallest first.
fn candidates(choices: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let cut = (0..choices.len()).map(|length| choices[..length].to_vec());
    let without = (0..choices.len()).map(|place| {
        let mut without = choices.to_vec();
        without.remove(place);
        without
    });
    let lowered = (0..choices.len()).flat_map(move |place| {
        (0..choices[place]).map(move |lower| {
            let mut lowered = choices.to_vec();
            lowered[place] = lower;
            lowered
        })
    });
    cut.chain(without).chain(lowered)
}
