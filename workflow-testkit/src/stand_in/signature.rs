//! Compares a stand-in's signature with its step's, and words the mismatch.

use std::fmt;

use workflow_core::signature::{EventType, InputSpec, OutputSpec};
use workflow_core::table::{InputKind, StepSpec, TableSpec};

use super::shape::{Returns, Shape, fits};

/// The signature of a stand-in.
#[doc(hidden)]
#[derive(Debug)]
pub struct Signature {
    pub(crate) inputs: Vec<InputSpec>,
    pub(crate) output: OutputSpec,
}

/// The reason why a stand-in does not fit its step.
#[derive(Debug)]
pub(crate) enum Misfit {
    NoSuchStep { table: &'static TableSpec, step: String },
    TakesOther { step: &'static StepSpec, input: Box<InputSpec> },
    ReturnsOther { step: &'static StepSpec, output: Box<OutputSpec> },
}

impl Misfit {
    pub(crate) fn takes_other(step: &'static StepSpec, input: &InputSpec) -> Self {
        Self::TakesOther { step, input: Box::new(*input) }
    }
}

/// The step of this name.
pub(crate) fn step(table: &'static TableSpec, name: &str) -> Result<&'static StepSpec, Misfit> {
    let found = table.steps().iter().find(|step| step.name() == name);
    found.ok_or_else(|| Misfit::NoSuchStep { table, step: name.to_owned() })
}

impl Signature {
    /// The slot of the step that each parameter takes.
    pub(crate) fn places(&self, step: &'static StepSpec) -> Result<Vec<usize>, Misfit> {
        fits_output(step, &self.output)?;
        let mut places = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            places.push(place(step, input, &places).ok_or_else(|| Misfit::takes_other(step, input))?);
        }
        Ok(places)
    }
}

/// Whether the step may return it.
pub(crate) fn fits_output(step: &'static StepSpec, output: &OutputSpec) -> Result<(), Misfit> {
    if fits(step, output) { Ok(()) } else { Err(Misfit::ReturnsOther { step, output: Box::new(*output) }) }
}

/// The first parameter of the step with the same input that is not in `taken`.
pub(crate) fn place(step: &StepSpec, input: &InputSpec, taken: &[usize]) -> Option<usize> {
    let mut inputs = step.inputs().iter().enumerate();
    inputs.find(|(place, other)| !taken.contains(place) && is_same(input, other)).map(|(place, _)| place)
}

fn is_same(one: &InputSpec, other: &InputSpec) -> bool {
    let takes = |one: &InputSpec, other: &InputSpec| {
        one.events().iter().all(|event| other.events().iter().any(|also| also.type_id() == event.type_id()))
    };
    let config = |spec: &InputSpec| spec.config_type().map(|config| config.type_id());
    let how = |spec: &InputSpec| (spec.kind(), spec.is_optional(), spec.is_passive());
    (how(one), one.label()) == (how(other), other.label())
        && config(one) == config(other)
        && takes(one, other)
        && takes(other, one)
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchStep { table, step } => {
                f.write_str(&no_such_step(table.name(), table.steps().iter().map(StepSpec::name), step))
            }
            Self::TakesOther { step, input } if place(step, input, &[]).is_some() => {
                write!(f, "`{}` does not take `{}` as often", step.name(), input_text(input))
            }
            Self::TakesOther { step, input } => {
                let takes = listed(step.inputs().iter().map(input_text));
                write!(f, "`{}` does not take `{}`: it takes {takes}", step.name(), input_text(input))
            }
            Self::ReturnsOther { step, output } => {
                write!(
                    f,
                    "`{}` does not return `{}`: it returns {}",
                    step.name(),
                    Shape(output),
                    Returns(step)
                )
            }
        }
    }
}

/// Says that a workflow with these steps lacks this one.
pub(crate) fn no_such_step<'a>(
    workflow: &str,
    steps: impl Iterator<Item = &'a str> + Clone,
    step: &str,
) -> String {
    let hint = match steps.clone().find(|name| is_near(name, step)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its steps are {}", listed(steps)),
    };
    format!("`{workflow}` has no step `{step}`: {hint}")
}

/// The text of a parameter with this input, without references.
fn input_text(input: &InputSpec) -> String {
    let events = input.events().iter().map(EventType::name).collect::<Vec<_>>().join(" or ");
    let text = match input.kind() {
        InputKind::One => events,
        InputKind::List => format!("List<{events}>"),
        InputKind::Fixed(count) => format!("FixedList<{events}, {count}>"),
        InputKind::Reply => format!("Reply<{}>", input.request().map_or("", |request| request.name())),
        InputKind::Gather => format!("Gather<{events}>"),
        InputKind::Emitter => format!("Emitter<{events}>"),
        _ => input
            .config_type()
            .map_or_else(|| input.label().to_owned(), |config| format!("Config<{}>", config.type_name())),
    };
    if input.is_passive() {
        return format!("Passive<{text}>");
    }
    if input.is_optional() { format!("Option<{text}>") } else { text }
}

fn listed(texts: impl Iterator<Item = impl fmt::Display>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("`{text}`")).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}

/// Whether the first differs from the second by one or two letters, or is its beginning.
fn is_near(one: &str, other: &str) -> bool {
    let begins = one.starts_with(other) || other.starts_with(one);
    begins || distance(one.as_bytes(), other.as_bytes()) <= 1 + one.len().min(other.len()) / 5
}

/// The number of letters to change, add or remove.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut above = std::mem::replace(&mut row[0], at + 1);
        for (column, also) in other.iter().enumerate() {
            let changed = above + usize::from(letter != also);
            above = row[column + 1];
            row[column + 1] = changed.min(above + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
