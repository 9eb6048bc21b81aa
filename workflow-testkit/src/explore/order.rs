//! An order in which a run's operations took place, as the choices that lead to it, and who chooses.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::gate::{Op, OpId};

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

    /// Takes in that what was chosen last cannot happen: time has passed, and nothing has come of it. The run is given
    /// up then, as it is no longer what it would be if something else had been chosen.
    fn retract(&mut self) {}
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
    /// The choices so far. After a choice was retracted, those before it are made again.
    way: Vec<usize>,
    at: usize,
    last: Option<OpId>,
    /// What was retracted.
    never: Vec<OpId>,
    retracted: bool,
}

impl Random {
    /// What is drawn at this place of a seed's draws: the draws of neighbouring seeds have nothing in common.
    pub(super) fn new(seed: u64, place: u64) -> Self {
        let seeded = Self::from_state(seed).next();
        Self::from_state(Self::from_state(seeded ^ place).next())
    }

    fn from_state(state: u64) -> Self {
        let (way, never) = (Vec::new(), Vec::new());
        Self { state, ways: 1.0, way, at: 0, last: None, never, retracted: false }
    }

    /// Whether the run was given up because a choice was retracted. The next run is given the choices before that one
    /// again, and another one in its place.
    pub(super) fn begins_again(&mut self) -> bool {
        if !std::mem::take(&mut self.retracted) {
            return false;
        }
        (self.at, self.ways) = (0, 1.0);
        true
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
