//! The order of a run's operations, as a list of choices, and the strategies that choose.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::gate::{Op, OpId};

/// At each point with several ready operations, the index of the chosen one, in order of arrival at the gate. A missing
/// choice is the first, so zeros at the end have no meaning.
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

/// Shorter orders are smaller. Of equally long ones, the one that departs less from arrival order is smaller.
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

/// Chooses the next operation.
pub(super) trait Choose {
    /// The index of the chosen operation; `None` abandons the run.
    fn choose(&mut self, ops: &[Op]) -> Option<usize>;

    /// Reports that the last choice is impossible: time has passed without an effect. The run is then abandoned,
    /// because it differs from a run with another choice.
    fn retract(&mut self) {}
}

/// Chooses by an order.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    left: &'a [usize],
    /// Whether an invalid choice abandons the run; otherwise the last valid one replaces it.
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
    /// The choices so far. After a retraction, the next run repeats the choices before it.
    way: Vec<usize>,
    at: usize,
    last: Option<OpId>,
    /// The retracted operations.
    never: Vec<OpId>,
    retracted: bool,
}

impl Random {
    /// The draws at this index of a seed: neighbouring seeds have nothing in common.
    pub(super) fn new(seed: u64, place: u64) -> Self {
        let seeded = Self::from_state(seed).next();
        Self::from_state(Self::from_state(seeded ^ place).next())
    }

    fn from_state(state: u64) -> Self {
        let (way, never) = (Vec::new(), Vec::new());
        Self { state, ways: 1.0, way, at: 0, last: None, never, retracted: false }
    }

    /// Whether the run was abandoned because of a retraction. The next run repeats the choices before that one, and
    /// makes another one in its place.
    pub(super) fn begins_again(&mut self) -> bool {
        if !std::mem::take(&mut self.retracted) {
            return false;
        }
        (self.at, self.ways) = (0, 1.0);
        true
    }

    /// The number of orders if every point of every order had as many choices as were met on this one. The mean over
    /// many draws estimates the real number (Knuth, 1975).
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
        let can = |place: &usize| !self.never.contains(&ops[*place].id);
        let places: Vec<usize> = (0..ops.len()).filter(can).collect();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let branching = places.len().max(1) as f64;
        self.ways *= branching;
        if self.at == self.way.len() {
            let drawn = if places.len() < 2 { 0 } else { self.below(places.len()) };
            self.way.push(places.get(drawn).copied().unwrap_or(0));
        }
        let chosen = self.way[self.at];
        self.at += 1;
        self.last = Some(ops[chosen].id);
        Some(chosen)
    }

    fn retract(&mut self) {
        self.way.pop();
        self.never.extend(self.last);
        self.retracted = true;
    }
}
