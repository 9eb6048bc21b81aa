//! An order in which a run's operations took place, as the choices that lead to it, and who chooses.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::gate::Op;

/// An order: at each point where several operations could go next, which one did, in the order in which they came to
/// the gate. Where it is silent the one that came first goes first, so that zeros at its end say nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Order(Vec<usize>);

impl Order {
    /// The order that these choices make.
    pub(super) fn new(mut choices: Vec<usize>) -> Self {
        while choices.pop_if(|choice| *choice == 0).is_some() {}
        Self(choices)
    }

    pub(super) fn choices(&self) -> &[usize] {
        &self.0
    }
}

/// Shorter ones are smaller, and of equally long ones those that depart less from who came first goes first.
impl Ord for Order {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Order {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices = if self.0.is_empty() { &[0][..] } else { &self.0 };
        let text: Vec<String> = choices.iter().map(usize::to_string).collect();
        f.write_str(&text.join("."))
    }
}

impl FromStr for Order {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split('.').map(str::parse).collect::<Result<_, _>>().map(Self::new)
    }
}

/// Says which operation goes next.
pub(super) trait Choose {
    /// The place of one of these; none to give the run up.
    fn choose(&mut self, ops: &[Op]) -> Option<usize>;

    /// Takes in that what was chosen cannot happen: time has passed, and nothing has come of it. Says whether something
    /// else is chosen then; otherwise the run is given up.
    fn retract(&mut self) -> bool {
        true
    }
}

/// Chooses by an order.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    left: &'a [usize],
    /// Whether a choice that there is not is given up on; otherwise the last one there is stands in for it.
    strict: bool,
}

impl<'a> Replay<'a> {
    /// Follows the order to the letter.
    pub(super) fn strict(order: &'a Order) -> Self {
        Self { left: order.choices(), strict: true }
    }

    /// Follows choices as far as they fit.
    pub(super) fn loose(choices: &'a [usize]) -> Self {
        Self { left: choices, strict: false }
    }
}

impl Choose for Replay<'_> {
    fn choose(&mut self, ops: &[Op]) -> Option<usize> {
        if ops.len() < 2 {
            return Some(0);
        }
        let Some((choice, left)) = self.left.split_first() else { return Some(0) };
        self.left = left;
        if self.strict && *choice >= ops.len() {
            return None;
        }
        Some((*choice).min(ops.len() - 1))
    }
}

/// Chooses at random: the same seed, the same choices.
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
    ways: f64,
}

impl Random {
    /// What is drawn at this place of a seed's draws: the draws of neighbouring seeds have nothing in common.
    pub(super) fn new(seed: u64, place: u64) -> Self {
        let seeded = Self { state: seed, ways: 1.0 }.next();
        let state = Self { state: seeded ^ place, ways: 1.0 }.next();
        Self { state, ways: 1.0 }
    }

    /// How many ways there would be if every point of every way had as many choices as were met on this one. The mean
    /// over many draws is near how many ways there are (Knuth, 1975).
    pub(super) fn ways(&self) -> f64 {
        self.ways
    }

    /// This is `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The bias is that of a modulus far below 2^64.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound as u64)).unwrap_or(0)
    }
}

impl Choose for Random {
    fn choose(&mut self, ops: &[Op]) -> Option<usize> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let branching = ops.len().max(1) as f64;
        self.ways *= branching;
        Some(if ops.len() < 2 { 0 } else { self.below(ops.len()) })
    }
}
