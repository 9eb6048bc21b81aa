//! Evaluates a tree in a scope: short circuit, missing values, and errors that show the operands. It computes no
//! function, compares no values and walks no path.

use std::borrow::Cow;

use serde_json::Value;

use super::Scope;
use super::calls;
use super::compare;
use super::convert;
use super::fault::{EvaluateError, Fault};
use super::functions::Function;
use super::number::Number;
use super::path::{Key, lookup};
use super::tree::{Arithmetic, Branches, Call, Comparison, Kind, Node, Span};
use super::value::{Budget, check_bytes, kind, measure, short};

/// By whose rules conditions hold and missing values are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Conditions are true or false; a missing value equals null.
    Native,
    /// Empty values count as false, and `and` and `or` give operands, as in Python; a missing value is an error. (HV11)
    Hive,
}

impl Rules {
    /// Whether a value counts as true, if it is a condition at all.
    fn truth(self, value: &Value) -> Option<bool> {
        match (self, value) {
            (_, Value::Bool(truth)) => Some(*truth),
            (Self::Hive, value) => Some(convert::truth(value)),
            (Self::Native, _) => None,
        }
    }
}

pub(super) struct Evaluator<'s> {
    pub(super) source: &'s str,
    pub(super) scope: &'s dyn Scope,
    pub(super) budget: Budget,
    rules: Rules,
}

/// A value, or that it is missing.
pub(super) type Found<'s> = Option<Cow<'s, Value>>;
pub(super) type Evaluated<T> = Result<T, EvaluateError>;

/// A part of the failed expression, and its value.
type Operand<'a> = (Span, &'a Value);

impl<'s> Evaluator<'s> {
    pub(super) fn new(source: &'s str, scope: &'s dyn Scope, rules: Rules) -> Self {
        Self { source, scope, budget: Budget::new(), rules }
    }

    pub(super) fn value_or_null(mut self, root: &'s Node) -> Evaluated<Value> {
        let Some(value) = self.find(root, false)? else { return Ok(Value::Null) };
        measure(&value).map_err(|fault| self.fail(root.span, fault, &[]))?;
        Ok(value.into_owned())
    }

    pub(super) fn value(mut self, root: &'s Node) -> Evaluated<Value> {
        let value = self.eval(root)?;
        measure(&value).map_err(|fault| self.fail(root.span, fault, &[]))?;
        Ok(value.into_owned())
    }

    pub(super) fn condition(mut self, root: &'s Node) -> Evaluated<bool> {
        let value = self.eval(root)?;
        self.truth(root, &value, "a condition")
    }

    /// The value of a path, if it has one.
    pub(super) fn seen(&mut self, path: &'s Node) -> Option<Value> {
        let value = self.find(path, true).ok().flatten()?;
        Some(if measure(&value).is_ok() { value.into_owned() } else { short(&value).into() })
    }

    /// The value of a node, which must be there.
    pub(super) fn eval(&mut self, node: &'s Node) -> Evaluated<Cow<'s, Value>> {
        match self.find(node, false)? {
            Some(value) => Ok(value),
            None => Err(self.missing(node)),
        }
    }

    /// The value of a node, or that it is missing. Under a guard, a number has keys, too, all of them missing.
    pub(super) fn find(&mut self, node: &'s Node, is_guarded: bool) -> Evaluated<Found<'s>> {
        self.count(node)?;
        match &node.kind {
            Kind::Name(name) => Ok(self.scope.get(name)),
            Kind::Access(base, steps) => self.access(base, steps, is_guarded),
            Kind::If(branches) => self.choose(branches, is_guarded),
            Kind::Call(call) if call.function == Function::Default => self.default(call, is_guarded),
            _ => self.compute(node).map(Some),
        }
    }

    fn count(&mut self, node: &Node) -> Evaluated<()> {
        self.budget.spend(1).map_err(|fault| self.fail(node.span, fault, &[]))
    }

    /// The value of a node that is never missing. It only forwards: it is on the stack once for each level of the tree.
    fn compute(&mut self, node: &'s Node) -> Evaluated<Cow<'s, Value>> {
        match &node.kind {
            Kind::Literal(value) => Ok(Cow::Borrowed(value)),
            Kind::List(items) => self.list(node, items),
            Kind::Not(operand) => self.not(operand),
            Kind::And(operands) => self.logic(operands, false, "`and`"),
            Kind::Or(operands) => self.logic(operands, true, "`or`"),
            Kind::Compare(first, rest) => self.compare(first, rest).map(owned),
            Kind::Negate(operand) => self.sign(node, operand, Number::negate).map(owned),
            Kind::Plus(operand) => self.sign(node, operand, |number| number).map(owned),
            Kind::Arithmetic(first, rest) => self.arithmetic(first, rest),
            Kind::Call(call) => match call.function {
                Function::Has => self.has(node, call).map(owned),
                Function::Get => self.get(node, call),
                _ => self.call(node, call).map(owned),
            },
            Kind::Name(_) | Kind::Access(..) | Kind::If(_) => self.eval(node),
        }
    }

    fn not(&mut self, operand: &'s Node) -> Evaluated<Cow<'s, Value>> {
        let value = self.eval(operand)?;
        self.truth(operand, &value, "`not`").map(|truth| owned(!truth))
    }

    /// Whether a value holds where `place` needs a condition.
    fn truth(&self, node: &Node, value: &Value, place: &str) -> Evaluated<bool> {
        self.rules.truth(value).ok_or_else(|| {
            let fault = Fault::new(format!("{place} needs true or false, and this is {}", kind(value)));
            let fault = fault.remedy("Compare it, as in `a > 0` or `a != null`, or write `bool(a)`");
            self.fail(node.span, fault, &[(node.span, value)])
        })
    }

    /// Evaluates operands until one is `decisive`.
    fn logic(&mut self, operands: &'s [Node], decisive: bool, place: &str) -> Evaluated<Cow<'s, Value>> {
        let mut last = Cow::Owned(Value::Bool(!decisive));
        for operand in operands {
            let value = self.eval(operand)?;
            let is_decided = self.truth(operand, &value, place)? == decisive;
            last = value;
            if is_decided {
                break;
            }
        }
        Ok(last)
    }

    fn choose(&mut self, branches: &'s Branches, is_guarded: bool) -> Evaluated<Found<'s>> {
        let condition = self.eval(&branches.condition)?;
        let holds = self.truth(&branches.condition, &condition, "the condition of `if`")?;
        self.find(if holds { &branches.then } else { &branches.otherwise }, is_guarded)
    }

    fn compare(&mut self, first: &'s Node, rest: &'s [(Comparison, Node)]) -> Evaluated<bool> {
        let mut left = first;
        let mut left_value = self.find(first, false)?;
        for (comparison, right) in rest {
            let right_value = self.find(right, false)?;
            let takes_missing =
                matches!(comparison, Comparison::Equal | Comparison::NotEqual) && self.rules == Rules::Native;
            for (node, value) in [(left, &left_value), (right, &right_value)] {
                if value.is_none() && !takes_missing {
                    return Err(self.missing(node));
                }
            }
            let a = left_value.as_deref().unwrap_or(&Value::Null);
            let b = right_value.as_deref().unwrap_or(&Value::Null);
            let holds = compare::compare(a, *comparison, b, &mut self.budget).map_err(|fault| {
                let span = Span { start: left.span.start, end: right.span.end };
                self.fail(span, fault, &[(left.span, a), (right.span, b)])
            })?;
            if !holds {
                return Ok(false);
            }
            (left, left_value) = (right, right_value);
        }
        Ok(true)
    }

    fn list(&mut self, node: &'s Node, items: &'s [Node]) -> Evaluated<Cow<'s, Value>> {
        let mut list = Vec::with_capacity(items.len());
        let mut bytes = 0;
        for item in items {
            let value = self.eval(item)?;
            let size = self.budget.copy(&value);
            let fits = size.and_then(|size| {
                bytes += size.bytes;
                check_bytes(bytes)
            });
            fits.map_err(|fault| self.fail(node.span, fault, &[]))?;
            list.push(value.into_owned());
        }
        Ok(owned(list))
    }

    fn sign(&mut self, node: &Node, operand: &'s Node, sign: fn(Number) -> Number) -> Evaluated<Value> {
        let value = self.eval(operand)?;
        let signed = match &*value {
            Value::Number(number) => Number::of(number).and_then(|number| sign(number).value()),
            other => {
                Err(Fault::new(format!("a sign stands before a number, and not before {}", kind(other)))
                    .remedy("Convert it with `float` or `int`"))
            }
        };
        signed.map_err(|fault| self.fail(node.span, fault, &[(operand.span, &value)]))
    }

    fn arithmetic(&mut self, first: &'s Node, rest: &'s [(Arithmetic, Node)]) -> Evaluated<Cow<'s, Value>> {
        let mut total = self.eval(first)?;
        let mut before = first.span;
        for (arithmetic, right) in rest {
            let value = self.eval(right)?;
            let span = Span { start: before.start, end: right.span.end };
            let result = calculate(&total, *arithmetic, &value, &mut self.budget);
            let result =
                result.map_err(|fault| self.fail(span, fault, &[(before, &total), (right.span, &value)]))?;
            total = Cow::Owned(result);
            before = span;
        }
        Ok(total)
    }

    fn call(&mut self, node: &'s Node, call: &'s Call) -> Evaluated<Value> {
        let arguments: Vec<_> =
            call.arguments.iter().map(|argument| self.eval(argument)).collect::<Result<_, _>>()?;
        let rules = self.rules;
        let truth = |value: &Value| {
            let fault = || Fault::new(format!("an item is {}, and no boolean", kind(value)));
            rules.truth(value).ok_or_else(|| fault().remedy("Give a list of true and false"))
        };
        let result = calls::call(call.function, &arguments, call.pattern.as_ref(), &truth, &mut self.budget);
        let result = result.and_then(|value| measure(&value).map(|_| value));
        result.map_err(|fault| {
            let operands: Vec<_> =
                call.arguments.iter().zip(&arguments).map(|(node, value)| (node.span, &**value)).collect();
            self.fail(node.span, fault, &operands)
        })
    }

    fn has(&mut self, node: &'s Node, call: &'s Call) -> Evaluated<bool> {
        let whole = self.find(&call.arguments[0], true)?;
        match (whole, call.arguments.get(1)) {
            (Some(whole), Some(key)) => Ok(self.look_up(node, whole, key, true)?.is_some()),
            (whole, _) => Ok(whole.is_some()),
        }
    }

    /// Null counts as missing: the two are equal.
    fn default(&mut self, call: &'s Call, is_guarded: bool) -> Evaluated<Found<'s>> {
        match self.find(&call.arguments[0], true)?.filter(|value| !value.is_null()) {
            Some(value) => Ok(Some(value)),
            None => self.find(&call.arguments[1], is_guarded),
        }
    }

    fn get(&mut self, node: &'s Node, call: &'s Call) -> Evaluated<Cow<'s, Value>> {
        let whole = self.find(&call.arguments[0], self.rules == Rules::Native)?;
        let found = match whole {
            Some(whole) => self.look_up(node, whole, &call.arguments[1], false)?,
            None if self.rules == Rules::Hive => return Err(self.missing(&call.arguments[0])),
            None => None,
        };
        match (found, call.arguments.get(2)) {
            (Some(value), _) => Ok(value),
            (None, Some(otherwise)) => self.eval(otherwise),
            (None, None) => Ok(Cow::Owned(Value::Null)),
        }
    }

    fn look_up(
        &mut self,
        node: &Node,
        whole: Cow<'s, Value>,
        key: &'s Node,
        is_guarded: bool,
    ) -> Evaluated<Found<'s>> {
        let key_value = self.eval(key)?;
        let found = lookup(whole, Key::Value(&key_value), is_guarded, &mut self.budget);
        found.map_err(|fault| self.fail(node.span, fault, &[(key.span, &key_value)]))
    }

    /// An error at a part of the source, with the values of its operands but those that show themselves.
    pub(super) fn fail(&self, span: Span, fault: Fault, operands: &[Operand<'_>]) -> EvaluateError {
        let written = |span: Span| self.source[span.start..span.end].to_owned();
        let mut shown = Vec::<(String, String)>::new();
        for (span, value) in operands {
            let operand = (written(*span), short(value));
            let is_plain = operand.0 == operand.1 || operand.0.starts_with(['\'', '"']);
            if !is_plain && !shown.contains(&operand) {
                shown.push(operand);
            }
        }
        EvaluateError {
            offset: span.start,
            expression: written(span),
            message: fault.message,
            operands: shown,
            remedy: fault.remedy,
        }
    }
}

fn owned<'s>(value: impl Into<Value>) -> Cow<'s, Value> {
    Cow::Owned(value.into())
}

fn calculate(a: &Value, arithmetic: Arithmetic, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    match (a, arithmetic, b) {
        (Value::Number(a), _, Value::Number(b)) => {
            Number::of(a)?.calculate(arithmetic, Number::of(b)?)?.value()
        }
        (Value::String(a), Arithmetic::Add, Value::String(b)) => {
            check_bytes(a.len() + b.len())?;
            budget.read(a)?;
            budget.read(b)?;
            Ok(Value::String(format!("{a}{b}")))
        }
        (Value::Array(first), Arithmetic::Add, Value::Array(second)) => {
            check_bytes(budget.copy(a)?.bytes + budget.copy(b)?.bytes)?;
            Ok(first.iter().chain(second).cloned().collect())
        }
        _ => Err(unfit(a, arithmetic, b)),
    }
}

fn unfit(a: &Value, arithmetic: Arithmetic, b: &Value) -> Fault {
    let found = format!("found {} and {}", kind(a), kind(b));
    let fault = match arithmetic {
        Arithmetic::Add => Fault::new(format!("`+` takes two numbers, two texts or two lists; {found}")),
        _ => Fault::new(format!("arithmetic takes numbers; {found}")),
    };
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => {
            fault.remedy("Test for null before, or use `default(value, otherwise)`")
        }
        (Value::String(_), _) | (_, Value::String(_)) if arithmetic == Arithmetic::Add => {
            fault.remedy("Convert to text with `str`, or to a number with `float`")
        }
        (Value::Array(_), _) | (_, Value::Array(_)) if arithmetic == Arithmetic::Add => {
            fault.remedy("To append an item, write `list + [item]`")
        }
        _ => fault.remedy("Convert with `float` or `int`"),
    }
}
