//! Errors of sources and of evaluations. This file frames their messages, and words none.

use std::fmt;

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadExpression {
    /// Bytes into the source.
    pub(crate) offset: usize,
    /// The finding, and the expectation.
    pub(crate) message: String,
    /// Advice: the right way to write it.
    pub(crate) remedy: Option<String>,
    /// A name that may be meant.
    pub(crate) similar: Option<&'static str>,
}

impl BadExpression {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), remedy: None, similar: None }
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for BadExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, ". {remedy}"))
    }
}

impl std::error::Error for BadExpression {}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvaluateError {
    /// Where the part that failed begins, in bytes into the source.
    pub(crate) offset: usize,
    /// The part that failed, as written.
    pub(crate) expression: String,
    /// The finding, and the expectation.
    pub(crate) message: String,
    /// The operands of that part, each as written and with its value in short form. Literals are left out.
    pub(crate) operands: Vec<(String, String)>,
    /// Advice.
    pub(crate) remedy: Option<String>,
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.expression, self.message)?;
        for (index, (operand, value)) in self.operands.iter().enumerate() {
            let before = if index == 0 { ", where " } else { " and " };
            write!(f, "{before}`{operand}` is {value}")?;
        }
        self.remedy.iter().try_for_each(|remedy| write!(f, ". {remedy}"))
    }
}

impl std::error::Error for EvaluateError {}

/// A failure that does not know its place in the source yet.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) remedy: Option<String>,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: None }
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
