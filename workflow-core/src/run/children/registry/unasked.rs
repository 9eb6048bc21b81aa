//! Awaited children without a run here, since no attempt has asked for them again: those of an earlier process, and of attempts
//! that a pause dropped. An execution that ends without asking leaves them to nobody.

use std::sync::Arc;

use super::{ChildRegistry, State, tell};
use crate::id::{ExecutionId, RunId};
use crate::run::DropSignal;

impl ChildRegistry {
    /// Whether an execution may have children that its last attempt has not asked for.
    pub(crate) fn has_unasked(&self, execution: ExecutionId) -> bool {
        let state = self.lock();
        let mut unasked = state.unasked.range((execution, 0)..=(execution, usize::MAX));
        unasked.next().is_some() || state.asking.number(execution) > 0
    }

    /// These executions were dropped or have ended, and do not begin again. Returns their children without a run here, each
    /// with the signal that the store has the cause.
    pub(crate) fn drop_unasked(&self, executions: &[ExecutionId]) -> Vec<(RunId, Arc<DropSignal>)> {
        let (mut state, mut left, mut dropped) = (self.lock(), Vec::new(), Vec::new());
        for execution in executions {
            let State { members, unasked, asking, .. } = &mut *state;
            let mut signals = Vec::new();
            for (_, index) in unasked.range((*execution, 0)..=(*execution, usize::MAX)) {
                let member = &mut members[*index];
                if member.run.is_none() && !member.has_ended {
                    // An attempt before may still have the last one.
                    member.drop_signal = Arc::default();
                    signals.push(Arc::clone(&member.drop_signal));
                    left.push((member.child.run.clone(), Arc::clone(&member.drop_signal)));
                }
            }
            dropped.extend(asking.drops((*execution, asking.number(*execution)), signals));
        }
        drop(state);
        tell(dropped);
        left
    }
}
