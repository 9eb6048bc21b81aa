//! The expressions of the model's documents: integers and conditions, their text, and their values. Absent: it errs.

use super::walk::{Sight, Status};

#[derive(Debug, Clone)]
pub(super) enum Expr {
    Int(i64),
    Input,
    Var(String),
    /// `x.v`, which errs where there is none.
    Data(String),
    DataOr(String, i64),
    Visits,
    VisitsOf(String),
    /// How many branches failed; 9 where no branches met.
    JoinedFailed,
    /// How many branches there were; 0 where no branches met.
    JoinedBranches,
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Mod(Box<Expr>, i64),
}

#[derive(Debug, Clone)]
pub(super) enum Cond {
    Less(Expr, Expr),
    Equal(Expr, Expr),
    StatusIs(String, Status),
    HasData(String),
    HasError,
    Not(Box<Cond>),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
}

impl Expr {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::Input => "input.n".to_owned(),
            Self::Var(name) => format!("vars.{name}"),
            Self::Data(node) => format!("{node}.v"),
            Self::DataOr(node, other) => format!("default({node}.v, {other})"),
            Self::Visits => "visits".to_owned(),
            Self::VisitsOf(node) => format!("nodes.{node}.visits"),
            Self::JoinedFailed => "default(joined.failed, 9)".to_owned(),
            Self::JoinedBranches => "len(default(joined.branches, []))".to_owned(),
            Self::Add(a, b) => format!("({} + {})", a.text(), b.text()),
            Self::Sub(a, b) => format!("({} - {})", a.text(), b.text()),
            Self::Mul(a, b) => format!("({} * {})", a.text(), b.text()),
            Self::Mod(a, b) => format!("{} % {b}", a.text()),
        }
    }

    /// The template of it.
    pub(super) fn template(&self) -> String {
        format!("${{ {} }}", self.text())
    }

    pub(super) fn value(&self, sight: &Sight<'_>) -> Option<i64> {
        Some(match self {
            Self::Int(number) => *number,
            Self::Input => sight.input,
            Self::Var(name) => sight.state.vars[name],
            Self::Data(node) => sight.state.data(node)?,
            Self::DataOr(node, other) => sight.state.data(node).unwrap_or(*other),
            Self::Visits => sight.state.visits(sight.node).into(),
            Self::VisitsOf(node) => sight.state.visits(node).into(),
            Self::JoinedFailed => sight.joined.map_or(9, |(failed, _)| failed),
            Self::JoinedBranches => sight.joined.map_or(0, |(_, branches)| branches),
            Self::Add(a, b) => a.value(sight)?.checked_add(b.value(sight)?)?,
            Self::Sub(a, b) => a.value(sight)?.checked_sub(b.value(sight)?)?,
            Self::Mul(a, b) => a.value(sight)?.checked_mul(b.value(sight)?)?,
            Self::Mod(a, b) => a.value(sight)?.rem_euclid(*b),
        })
    }
}

impl Cond {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Less(a, b) => format!("{} < {}", a.text(), b.text()),
            Self::Equal(a, b) => format!("{} == {}", a.text(), b.text()),
            Self::StatusIs(node, status) => format!("nodes.{node}.status == '{}'", status.word()),
            Self::HasData(node) => format!("has({node}.v)"),
            Self::HasError => "has(error.node)".to_owned(),
            Self::Not(a) => format!("not ({})", a.text()),
            Self::And(a, b) => format!("({}) and ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) or ({})", a.text(), b.text()),
        }
    }

    pub(super) fn holds(&self, sight: &Sight<'_>) -> Option<bool> {
        Some(match self {
            Self::Less(a, b) => a.value(sight)? < b.value(sight)?,
            Self::Equal(a, b) => {
                // A missing value errs within arithmetic, and beside `==` it is only unequal to numbers.
                let value = |side: &Expr| match side {
                    Expr::Data(node) => Some(sight.state.data(node)),
                    other => other.value(sight).map(Some),
                };
                value(a)? == value(b)?
            }
            Self::StatusIs(node, status) => sight.state.status(node) == Some(*status),
            Self::HasData(node) => sight.state.data(node).is_some(),
            Self::HasError => sight.has_error,
            Self::Not(a) => !a.holds(sight)?,
            Self::And(a, b) => a.holds(sight)? && b.holds(sight)?,
            Self::Or(a, b) => a.holds(sight)? || b.holds(sight)?,
        })
    }
}
