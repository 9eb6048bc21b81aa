//! The operators between two values: how they are written, and how tightly they bind. It builds no tree.

use super::super::lex::Token;
use super::super::tree::{Arithmetic, Comparison};
use super::Parser;

/// How tightly an operator binds, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Power {
    If,
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Unary,
}

pub(super) enum Infix {
    If,
    Or,
    And,
    Compare(Comparison),
    Arithmetic(Arithmetic),
}

impl Infix {
    pub(super) fn power(&self) -> Power {
        match self {
            Self::If => Power::If,
            Self::Or => Power::Or,
            Self::And => Power::And,
            Self::Compare(_) => Power::Compare,
            Self::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => Power::Sum,
            Self::Arithmetic(_) => Power::Product,
        }
    }
}

impl Parser<'_> {
    /// The operator that comes next, and its number of tokens.
    pub(super) fn infix(&self) -> Option<(Infix, usize)> {
        use Comparison::{Equal, Greater, GreaterEqual, In, Less, LessEqual, NotEqual, NotIn};
        let infix = match self.peek() {
            Token::Name("if") => Infix::If,
            Token::Name("or") | Token::Symbol("||") => Infix::Or,
            Token::Name("and") | Token::Symbol("&&") => Infix::And,
            Token::Symbol("!=") => Infix::Compare(NotEqual),
            Token::Symbol("<") => Infix::Compare(Less),
            Token::Symbol("<=") => Infix::Compare(LessEqual),
            Token::Symbol(">") => Infix::Compare(Greater),
            Token::Symbol(">=") => Infix::Compare(GreaterEqual),
            Token::Name("in") => Infix::Compare(In),
            Token::Name("not") if self.is_next(1, "in") => return Some((Infix::Compare(NotIn), 2)),
            Token::Name("is") if self.is_next(1, "not") => return Some((Infix::Compare(NotEqual), 2)),
            // Values have no identity, so `is` compares them.
            Token::Name("is") | Token::Symbol("==") => Infix::Compare(Equal),
            Token::Symbol("+") => Infix::Arithmetic(Arithmetic::Add),
            Token::Symbol("-") => Infix::Arithmetic(Arithmetic::Subtract),
            Token::Symbol("*") => Infix::Arithmetic(Arithmetic::Multiply),
            Token::Symbol("/") => Infix::Arithmetic(Arithmetic::Divide),
            Token::Symbol("//") => Infix::Arithmetic(Arithmetic::FloorDivide),
            Token::Symbol("%") => Infix::Arithmetic(Arithmetic::Remainder),
            _ => return None,
        };
        Some((infix, 1))
    }
}
