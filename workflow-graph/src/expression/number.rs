//! Numbers: exact integers, floats, and arithmetic as in Python. It knows no texts and no lists.

use std::cmp::Ordering;

use serde_json::{Number as JsonNumber, Value};

use super::fault::Fault;
use super::lex::beyond;
use super::tree::Arithmetic;

/// Integers are wider here than results may be, so that no sum of two wraps before it is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

use Number::{Float, Integer};

impl Number {
    pub(super) fn of(number: &JsonNumber) -> Result<Self, Fault> {
        if let Some(integer) = number.as_i64() {
            return Ok(Integer(integer.into()));
        }
        if let Some(integer) = number.as_u64() {
            return Ok(Integer(integer.into()));
        }
        let float = number.as_f64().filter(|float| float.is_finite());
        float
            .map(Float)
            .ok_or_else(|| Fault::new(format!("the number {number} is beyond what a float holds")))
    }

    /// As a JSON value, if it fits.
    pub(super) fn value(self) -> Result<Value, Fault> {
        match self {
            Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => Ok(Value::from(integer)),
                Err(_) => Err(overflow(Some(integer))),
            },
            Float(float) => JsonNumber::from_f64(float).map(Value::Number).ok_or_else(|| {
                Fault::new("the result is no finite number")
                    .remedy("Check the operands before, or use smaller ones")
            }),
        }
    }

    pub(super) fn float(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "Python rounds to the nearest float, too")]
            Integer(integer) => integer as f64,
            Float(float) => float,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        matches!(self, Integer(0)) || matches!(self, Float(float) if float == 0.0)
    }

    /// By value, exactly. Neither is ever no number.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Integer(a), Integer(b)) => a.cmp(&b),
            (Float(a), Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Integer(a), Float(b)) => compare_mixed(a, b),
            (Float(a), Integer(b)) => compare_mixed(b, a).reverse(),
        }
    }

    pub(super) fn negate(self) -> Self {
        match self {
            Integer(integer) => Integer(-integer),
            Float(float) => Float(-float),
        }
    }

    pub(super) fn absolute(self) -> Self {
        match self {
            Integer(integer) => Integer(integer.abs()),
            Float(float) => Float(float.abs()),
        }
    }

    /// Without its fraction.
    pub(super) fn truncate(self) -> Result<Self, Fault> {
        match self {
            Integer(_) => Ok(self),
            #[expect(clippy::cast_possible_truncation, reason = "the bound is checked")]
            Float(float) if float.abs() < 1e30 => Ok(Integer(float.trunc() as i128)),
            Float(_) => Err(overflow(None)),
        }
    }

    pub(super) fn calculate(self, arithmetic: Arithmetic, other: Self) -> Result<Self, Fault> {
        let divides =
            matches!(arithmetic, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder);
        if divides && other.is_zero() {
            return Err(Fault::new("the divisor is zero").remedy("Compare it with 0 before"));
        }
        match (self, other) {
            (Integer(a), Integer(b)) => integers(a, arithmetic, b),
            _ => Ok(Float(floats(self.float(), arithmetic, other.float()))),
        }
    }
}

fn overflow(integer: Option<i128>) -> Fault {
    let message = integer.map_or_else(|| "the result is beyond 64 bits".to_owned(), beyond);
    Fault::new(message).remedy("Use fractions, as in `a * 1.0`, if the result need not be exact")
}

fn integers(a: i128, arithmetic: Arithmetic, b: i128) -> Result<Number, Fault> {
    let result = match arithmetic {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide => return Ok(Float(quotient(a, b))),
        Arithmetic::FloorDivide => Some(a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
        Arithmetic::Remainder => {
            let remainder = a % b;
            Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
        }
    };
    // Checked at each operator, and not at the end: whether `a + b - c` errs shall not depend on the width in here.
    let fits = result.filter(|result| i64::try_from(*result).is_ok());
    fits.map(Integer).ok_or_else(|| overflow(result))
}

/// The float nearest to the exact quotient, as in Python: dividing two rounded floats would round three times.
#[expect(clippy::cast_precision_loss, reason = "the integers are exact in floats, or have a sticky bit")]
fn quotient(a: i128, b: i128) -> f64 {
    const EXACT: u128 = 1 << 53;
    let (top, bottom) = (a.unsigned_abs(), b.unsigned_abs());
    if top <= EXACT && bottom <= EXACT {
        return a as f64 / b as f64;
    }
    let bits = |number: u128| 128 - number.leading_zeros();
    let shift = (bits(bottom) + 58).saturating_sub(bits(top));
    let scaled = top << shift;
    // The last bit says that something follows, so that the conversion rounds ties correctly.
    let sticky = (scaled / bottom) << 1 | u128::from(!scaled.is_multiple_of(bottom));
    let exponent = i32::try_from(shift + 1).unwrap_or(i32::MAX);
    let magnitude = sticky as f64 * 2f64.powi(-exponent);
    if (a < 0) == (b < 0) { magnitude } else { -magnitude }
}

fn floats(a: f64, arithmetic: Arithmetic, b: f64) -> f64 {
    match arithmetic {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::FloorDivide => floor_divide(a, b).0,
        Arithmetic::Remainder => floor_divide(a, b).1,
    }
}

/// Quotient and remainder as Python computes them: the remainder has the sign of the divisor.
fn floor_divide(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut exact = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0f64.copysign(b);
    } else if (b < 0.0) != (remainder < 0.0) {
        remainder += b;
        exact -= 1.0;
    }
    if exact == 0.0 {
        return (0f64.copysign(a / b), remainder);
    }
    let floor = exact.floor();
    (if exact - floor > 0.5 { floor + 1.0 } else { floor }, remainder)
}

fn compare_mixed(a: i128, b: f64) -> Ordering {
    if b.abs() > 1e30 {
        return if b > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bound is checked")]
    let whole = b.trunc() as i128;
    let fraction = b.fract();
    a.cmp(&whole).then_with(|| 0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
}

/// `round` as in Python: half to even, exact for what the float is rather than for what it looks like.
pub(super) fn round(number: Number, digits: Option<i128>) -> Result<Number, Fault> {
    match (number, digits) {
        (Integer(_), None) => Ok(number),
        (Float(float), None) => Float(float.round_ties_even()).truncate(),
        (Integer(integer), Some(digits)) => Ok(Integer(round_integer(integer, digits))),
        (Float(float), Some(digits)) => Ok(Float(round_float(float, digits))),
    }
}

fn round_integer(integer: i128, digits: i128) -> i128 {
    if digits >= 0 {
        return integer;
    }
    let unit = u32::try_from(-digits)
        .ok()
        .and_then(|power| 10i128.checked_pow(power))
        .filter(|unit| *unit < 1 << 100);
    let Some(unit) = unit else { return 0 };
    let (floor, remainder) = (integer.div_euclid(unit), integer.rem_euclid(unit));
    let is_up = match (remainder * 2).cmp(&unit) {
        Ordering::Less => false,
        Ordering::Equal => floor % 2 != 0,
        Ordering::Greater => true,
    };
    (floor + i128::from(is_up)) * unit
}

fn round_float(float: f64, digits: i128) -> f64 {
    match usize::try_from(digits) {
        Ok(digits) if digits > 323 => float,
        Ok(digits) => format!("{float:.digits$}").parse().unwrap_or(float),
        Err(_) if digits < -308 => 0.0 * float,
        Err(_) => round_whole(float, usize::try_from(-digits).unwrap_or(0)),
    }
}

/// Rounds to a power of ten above one, on the decimal digits, which are exact.
fn round_whole(float: f64, places: usize) -> f64 {
    let whole = format!("{:.0}", float.abs().trunc());
    let whole = format!("{whole:0>width$}", width = places + 1);
    let (kept, cut) = whole.split_at(whole.len() - places);
    let half = format!("5{}", "0".repeat(places - 1));
    let is_odd = kept.ends_with(['1', '3', '5', '7', '9']);
    let is_up = match cut.cmp(half.as_str()) {
        Ordering::Less => false,
        Ordering::Equal => float.fract() != 0.0 || is_odd,
        Ordering::Greater => true,
    };
    // One at the place behind the kept digits is added as a decimal text, since both may exceed every integer type.
    let kept = if is_up { increment(kept) } else { kept.to_owned() };
    format!("{kept}e{places}").parse::<f64>().unwrap_or(float).copysign(float)
}

fn increment(digits: &str) -> String {
    let kept = digits.trim_end_matches('9');
    let zeros = "0".repeat(digits.len() - kept.len());
    match kept.char_indices().next_back() {
        None => format!("1{zeros}"),
        Some((at, last)) => {
            let next = last.to_digit(10).and_then(|digit| char::from_digit(digit + 1, 10)).unwrap_or('9');
            format!("{}{next}{zeros}", &kept[..at])
        }
    }
}
