//! The result of an exploration: the number of orders, the tried ones, their outcomes, and the failing order.

use std::fmt;

use super::order::Order;
use super::outcome::Outcome;

/// The message for a scenario whose orders cannot be repeated.
pub(super) const NOT_THE_SAME: &str = "a run does not do the same each time";

/// Possible reasons.
pub(super) const WHY_NOT_THE_SAME: &str = "a step that waits for another thread, as with `blocking` or \
    `spawn_blocking`, or for the network, or that draws at random does not: replace it by a stand-in";

/// The result of an exploration. It prints as a sentence.
#[derive(Debug, Clone)]
pub struct Explored {
    pub(super) tried: u64,
    pub(super) exhaustive: bool,
    /// Whether the systematic orders are pairwise different, as far as is known.
    pub(super) reduced: bool,
    pub(super) left_out: u64,
    pub(super) caveats: Caveats,
    /// The number of random orders, and the seed.
    pub(super) drawn: Option<(u64, u64)>,
    /// The estimated number of orders, including equivalent ones.
    pub(super) estimate: Option<f64>,
    pub(super) outcomes: Vec<(Outcome, Order)>,
}

impl Explored {
    pub(super) fn new(reduced: bool) -> Self {
        Self {
            tried: 0,
            exhaustive: false,
            reduced,
            left_out: 0,
            caveats: Caveats::default(),
            drawn: None,
            estimate: None,
            outcomes: Vec::new(),
        }
    }

    /// The number of different orders that were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Whether the tried orders stand for all orders.
    pub fn is_exhaustive(&self) -> bool {
        self.exhaustive
    }

    /// The estimated number of orders, including equivalent ones.
    ///
    /// The estimate comes from the number of choices on the way of each random order, so it depends on the seed. `None`
    /// if no order was drawn at random.
    pub fn estimated_orders(&self) -> Option<f64> {
        self.estimate
    }

    /// The number of alternatives left out because they lead to equivalent orders.
    ///
    /// Each stands for at least one order.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The different outcomes, in the order in which they were found.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.outcomes.iter().map(|(outcome, _)| outcome)
    }

    /// The order of an outcome, for [`Explore::replay`](crate::Explore::replay); `None` for a foreign outcome.
    pub fn order_of(&self, outcome: &Outcome) -> Option<String> {
        let known = self.outcomes.iter().find(|(known, _)| known == outcome);
        known.map(|(_, order)| order.to_string())
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, left_out, .. } = self;
        let counted = |count: u64| match (count, self.reduced) {
            (1, true) => "order that can be told apart",
            (1, false) => "order",
            (_, true) => "orders that can be told apart",
            (_, false) => "orders",
        };
        let (drawn, seed) = self.drawn.unwrap_or_default();
        match (self.exhaustive, tried - drawn) {
            (true, all) => write!(f, "tried {all} of {all} {}", counted(0))?,
            (false, systematic) => write!(f, "tried {systematic} {}", counted(systematic))?,
        }
        if drawn > 0 {
            write!(f, ", and {drawn} at random with the seed {seed}")?;
        }
        if let Some(estimate) = self.estimate {
            let equivalent = if self.reduced { ", equivalent ones counted" } else { "" };
            write!(f, "; there are about {} in all, by an estimate{equivalent}", Rounded(estimate))?;
        }
        match left_out {
            0 => {}
            1 => f.write_str("; 1 other way leads only to orders equivalent to these")?,
            ways => write!(f, "; {ways} other ways lead only to orders equivalent to these")?,
        }
        write!(f, "{}", self.caveats)
    }
}

/// The reasons why orders may be missing, from the tried runs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caveats {
    /// The limit of timers without an effect was reached, so later effects are unknown.
    pub(super) gave_up_on_time: bool,
    pub(super) had_children: bool,
}

impl Caveats {
    pub(super) fn add(&mut self, other: Self) {
        self.gave_up_on_time |= other.gave_up_on_time;
        self.had_children |= other.had_children;
    }
}

impl fmt::Display for Caveats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gave_up_on_time {
            f.write_str(
                "; a step slept so often in a row that orders in which it wakes first were left out",
            )?;
        }
        if self.had_children {
            f.write_str("; each child run was tried in one order only")?;
        }
        Ok(())
    }
}

/// An order that failed once, and not when it was replayed.
pub(super) struct NotAgain<'a> {
    pub(super) message: &'a str,
    pub(super) words: &'a str,
    pub(super) order: &'a Order,
}

impl fmt::Display for NotAgain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, words, order } = self;
        writeln!(f, "{message}\n\n{NOT_THE_SAME}: the order {order} did not fail again, and went\n{words}")?;
        f.write_str(WHY_NOT_THE_SAME)
    }
}

/// A number that prints with one significant digit once it is large.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = *self;
        if number < 1_000.0 {
            return write!(f, "{number:.0}");
        }
        let text = format!("{number:.0e}");
        match text.split_once('e') {
            Some((digit, power)) => write!(f, "{digit}·10^{power}"),
            None => f.write_str(&text),
        }
    }
}

/// An order for which an assertion fails.
pub(super) struct Refuted<'a> {
    pub(super) message: &'a str,
    pub(super) words: &'a str,
    pub(super) transcript: Option<&'a str>,
    pub(super) explored: &'a Explored,
    pub(super) seed: u64,
    pub(super) order: &'a Order,
}

impl fmt::Display for Refuted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\nin this order:\n{}", self.message, self.words)?;
        if let Some(transcript) = self.transcript {
            writeln!(f, "the run did this:\n{transcript}")?;
        }
        writeln!(f, "found in the order number {}, with the seed {}", self.explored.tried, self.seed)?;
        write!(f, "replay with .replay(\"{}\")", self.order)
    }
}
