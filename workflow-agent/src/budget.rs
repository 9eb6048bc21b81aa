//! Budgets of runs: tokens, cost and tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Price, Usage};

/// The most that a run may use. Without a limit of a kind, that kind is unlimited.
///
/// The agent compares before each model call and after each reply, so the last reply may exceed the budget. The usage of
/// summaries and of sub-agents counts. The sub-agents that a reply starts share the rest of their parent's budget in
/// equal parts. Attempts that failed are not counted: a call whose stream broke off, and a reply without text and calls.
///
/// ```
/// use workflow_agent::Budget;
///
/// let budget = Budget::tokens(200_000).cost(0.5).tool_calls(40);
/// # let _ = budget;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens of input and output together, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The cost, in the currency of the model's [`Price`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Tool calls that ran, those of sub-agents included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}

impl Budget {
    /// No limit.
    pub const fn unlimited() -> Self {
        Self { tokens: None, cost: None, tool_calls: None }
    }

    /// A limit on tokens.
    #[must_use]
    pub const fn tokens(tokens: u64) -> Self {
        Self { tokens: Some(tokens), cost: None, tool_calls: None }
    }

    /// Sets a limit on the cost. The model must have a price. A cost that is not a number counts as zero.
    #[must_use]
    pub const fn cost(self, cost: f64) -> Self {
        Self { cost: Some(if cost.is_nan() { 0.0 } else { cost }), ..self }
    }

    /// Sets a limit on tool calls.
    #[must_use]
    pub const fn tool_calls(self, calls: u64) -> Self {
        Self { tool_calls: Some(calls), ..self }
    }

    /// The smaller limit of each kind.
    pub(crate) fn at_most(self, other: Self) -> Self {
        Self {
            tokens: smaller(self.tokens, other.tokens),
            cost: smaller_cost(self.cost, other.cost),
            tool_calls: smaller(self.tool_calls, other.tool_calls),
        }
    }

    /// The rest after `spent`.
    pub(crate) fn rest(self, spent: &Spent) -> Self {
        Self {
            tokens: self.tokens.map(|most| most.saturating_sub(spent.usage.tokens())),
            cost: self.cost.map(|most| (most - spent.cost).max(0.0)),
            tool_calls: self.tool_calls.map(|most| most.saturating_sub(spent.tool_calls)),
        }
    }

    /// One of so many equal parts.
    pub(crate) fn part_of(self, parts: usize) -> Self {
        let parts = u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        Self {
            tokens: self.tokens.map(|most| most / u64::from(parts)),
            cost: self.cost.map(|most| most / f64::from(parts)),
            tool_calls: self.tool_calls.map(|most| most / u64::from(parts)),
        }
    }

    /// Whether no model call may begin after `spent`. A model may answer without further tool calls.
    pub(crate) fn is_used_up(self, spent: &Spent) -> bool {
        self.tokens.is_some_and(|most| spent.usage.tokens() >= most)
            || self.cost.is_some_and(|most| spent.cost >= most)
    }

    /// Whether `spent` exceeds it.
    pub(crate) fn is_exceeded(self, spent: &Spent) -> bool {
        self.tokens.is_some_and(|most| spent.usage.tokens() > most)
            || self.cost.is_some_and(|most| spent.cost > most)
            || self.tool_calls.is_some_and(|most| spent.tool_calls > most)
    }

    pub(crate) fn needs_price(self) -> bool {
        self.cost.is_some()
    }
}

fn smaller(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn smaller_cost(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

/// The amounts that a run has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    pub(crate) cost: f64,
    pub(crate) tool_calls: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.add_at(other.usage, other.cost);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }
}

impl Spent {
    /// Adds usage of a model with this price.
    pub(crate) fn add(&mut self, usage: Usage, price: Option<Price>) {
        self.add_at(usage, price.map_or(0.0, |price| price.of(&usage)));
    }

    /// Adds usage whose cost is known. A sum beyond all numbers, or of none, is the greatest number: no journal takes any
    /// other, and every budget is below it.
    pub(crate) fn add_at(&mut self, usage: Usage, cost: f64) {
        self.usage += usage;
        let sum = self.cost + cost;
        self.cost = if sum.is_finite() { sum } else { f64::MAX };
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Spent};
    use crate::model::Usage;

    /// A60, A33
    #[test]
    fn a_child_gets_the_rest_and_no_more_than_its_own() {
        let spent = Spent { usage: Usage::new(60, 20), cost: 0.25, tool_calls: 3 };
        let rest = Budget::tokens(100).cost(1.0).tool_calls(2).rest(&spent);
        assert_eq!(rest, Budget { tokens: Some(20), cost: Some(0.75), tool_calls: Some(0) });
        assert_eq!(rest.at_most(Budget::tokens(5)), Budget { tokens: Some(5), ..rest });
        let part = Budget::tokens(100).cost(1.0).tool_calls(2).part_of(8);
        assert_eq!(part, Budget { tokens: Some(12), cost: Some(0.125), tool_calls: Some(0) });
        assert_eq!(Budget::unlimited().part_of(8), Budget::unlimited());
        assert_eq!(rest.part_of(0), rest);
        assert!(Budget::tokens(80).is_used_up(&spent) && !Budget::tokens(80).is_exceeded(&spent));
        assert!(!Budget::unlimited().is_used_up(&spent));
        assert_eq!(Budget::unlimited().cost(f64::NAN).cost, Some(0.0));
    }
}
