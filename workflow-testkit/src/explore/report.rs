//! What an exploration says: how many orders there were and how many were tried, what came of them, and the order that
//! failed.

use std::fmt;

use super::order::Order;
use super::outcome::Outcome;

/// What is said of a scenario of which no order can be found again.
pub(super) const NOT_THE_SAME: &str = "a run does not do the same each time";

/// Why that may be.
pub(super) const WHY_NOT_THE_SAME: &str = "a step that waits for another thread, as with `blocking` or \
    `spawn_blocking`, or for the network, or that draws at random does not: replace it by a stand-in";

/// What was explored. It prints as a sentence.
#[derive(Debug, Clone)]
pub struct Explored {
    pub(super) tried: u64,
    pub(super) exhaustive: bool,
    /// Whether no two of those that were not drawn at random are equivalent as far as is known.
    pub(super) reduced: bool,
    pub(super) left_out: u64,
    pub(super) caveats: Caveats,
    /// How many were drawn at random, and the seed.
    pub(super) drawn: Option<(u64, u64)>,
    /// About how many orders there are, equivalent ones counted.
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

    /// How many different orders were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Whether these stand for all orders there are.
    pub fn is_exhaustive(&self) -> bool {
        self.exhaustive
    }

    /// An estimate of how many orders there are, those counted that cannot be told apart: from how many choices there were
    /// on the way of each order that was drawn at random, so that it varies with the seed. None if none was drawn.
    pub fn estimated_orders(&self) -> Option<f64> {
        self.estimate
    }

    /// How often, at a point of some order, another operation could have gone next and was not tried, because that
    /// leads to orders which cannot be told apart from those that were. Each stands for at least one order.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The different outcomes, in the order in which they were found.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.outcomes.iter().map(|(outcome, _)| outcome)
    }

    /// What to give to [`Explore::replay`](crate::Explore::replay) for this outcome, if it is one of these.
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

/// What orders may have been missed for, in runs that were tried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caveats {
    /// So many timers ran out in vain that nobody knows what would have come of more.
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
                "; something sleeps so often in a row that what comes of it was not tried before all else",
            )?;
        }
        if self.had_children {
            f.write_str("; child runs went on in one order each")?;
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

/// A number of which the first digit counts, once it is large.
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

/// An order under which an assertion does not hold.
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
