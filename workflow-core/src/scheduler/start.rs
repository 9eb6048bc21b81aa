//! Executions that are about to start, in the form in which they are stored. Most steps take one event, which
//! triggers them; such an execution needs no binding, since the trigger says it all.
//!
//! ```text
//!  greet(&Begin)              by 1     Inputs::TRIGGER             nothing stored
//!  join(&Item, &Note)         by 6     Inputs [One(4), One(6)]     shared: the execution and each action have it
//! ```
//!
//! Invariant: [`Inputs::binding`] returns the binding that [`Inputs::of`] got, for the same step and trigger.

use std::sync::Arc;

use super::{Action, Binding, Bound};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::table::{InputRow, StepIndex, StepRow};

/// The content of [`Action::StartExecution`].
#[derive(Debug, Clone)]
pub(crate) struct ExecutionStart {
    /// The number of the execution, which no other execution of the run has.
    pub(crate) execution: ExecutionId,
    /// The step to call.
    pub(crate) step: StepIndex,
    /// The scope in which the step was evaluated.
    pub(crate) scope: ScopeId,
    /// The event that triggered the evaluation.
    pub(crate) trigger: Seq,
    /// The events for the parameters. A clone shares them.
    pub(crate) inputs: Inputs,
}

/// The binding of an execution's parameters; `None` where the trigger is all.
#[derive(Debug, Clone)]
pub(crate) struct Inputs(Option<Arc<Binding>>);

impl Inputs {
    /// Each parameter that takes events is bound to the trigger.
    pub(crate) const TRIGGER: Self = Self(None);

    /// Stores the binding, unless each parameter is bound to the trigger.
    pub(crate) fn of(binding: Binding, row: &StepRow, trigger: Seq) -> Self {
        let mut bounds = binding.iter().zip(&row.inputs);
        let is_trigger_alone = bounds.all(|(bound, input)| *bound == triggered(input, trigger));
        if is_trigger_alone { Self::TRIGGER } else { Self(Some(Arc::new(binding))) }
    }

    /// The binding, where it is not the trigger alone.
    pub(crate) fn others(&self) -> Option<&Binding> {
        self.0.as_deref()
    }

    /// The whole binding, derived from the trigger where nothing is stored.
    pub(crate) fn binding(&self, row: &StepRow, trigger: Seq) -> Binding {
        let all = || row.inputs.iter().map(|input| triggered(input, trigger)).collect();
        self.others().map_or_else(all, Binding::clone)
    }
}

/// The binding of a parameter whose step is bound to its trigger alone.
fn triggered(input: &InputRow, trigger: Seq) -> Bound {
    if input.topic.is_some() { Bound::One(trigger) } else { Bound::Nothing }
}

impl ExecutionStart {
    pub(crate) fn binding(&self, row: &StepRow) -> Binding {
        self.inputs.binding(row, self.trigger)
    }

    pub(crate) fn into_action(self, row: &StepRow) -> Action {
        let Self { execution, step, scope, trigger, .. } = self;
        Action::StartExecution { execution, step, scope, trigger, binding: self.binding(row) }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::scheduler::SchedulerLimits;
    use crate::scheduler::fixtures::{self, step};

    #[test]
    fn a_binding_to_the_trigger_alone_is_not_stored() {
        let board = fixtures::board(SchedulerLimits::default());
        let (ask, pack) = (board.table.step(step(&board, "ask")), board.table.step(step(&board, "pack")));
        let (one, both): (Binding, Binding) =
            (smallvec![Bound::One(Seq(3))], smallvec![Bound::One(Seq(2)), Bound::One(Seq(3))]);
        let inputs = Inputs::of(one.clone(), ask, Seq(3));
        assert!(inputs.others().is_none());
        assert_eq!(inputs.binding(ask, Seq(3)), one);
        let inputs = Inputs::of(both.clone(), pack, Seq(3));
        assert_eq!(inputs.others(), Some(&both));
        assert_eq!(inputs.binding(pack, Seq(3)), both);
    }
}
