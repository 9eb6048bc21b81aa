//! Steps and the places of their inputs: while the table is compiled, and as the walk reads them.

use std::sync::Arc;

use workflow_core::table::{InputDef, OutputDef, StepDef};

use crate::part::Part;

/// A step of the table: the node and the part of its visit that it does, and the places of its inputs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) node: usize,
    pub(crate) part: Part,
    pub(crate) inputs: Inputs,
}

/// Where a step has its inputs. The first, at 0, triggers it.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The token, or another event, that began the visit: 0 for the visit itself.
    pub(crate) token: usize,
    pub(crate) start: Option<usize>,
    pub(crate) own: Option<usize>,
    pub(crate) taken: Option<usize>,
    /// All results, as a list.
    pub(crate) all: Option<usize>,
    /// Results, by the places of their nodes.
    pub(crate) results: Vec<(usize, usize)>,
    pub(crate) vars: Vec<(usize, usize)>,
    /// Counts of visits without results, by the places of their nodes.
    pub(crate) counts: Vec<(usize, usize)>,
    /// Nodes that expressions name.
    pub(crate) named: Vec<usize>,
    /// The item, in a reply about one.
    pub(crate) item: Option<usize>,
}

/// A step so far.
pub(super) struct Draft {
    pub(super) step: StepDef,
    pub(super) inputs: Inputs,
    /// The place of the next input.
    pub(super) next: usize,
    pub(super) plan: (usize, Part),
}

impl Draft {
    pub(super) fn passive(&mut self, input: InputDef) -> usize {
        let step = std::mem::replace(&mut self.step, StepDef::new(Arc::default()));
        self.step = step.input(input.passive());
        self.next += 1;
        self.next - 1
    }

    pub(super) fn output(mut self, output: OutputDef) -> Self {
        self.step = self.step.output(output);
        self
    }
}
