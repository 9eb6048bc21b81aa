//! What is not wanted any more, to be taken notice of at once.

use crate::id::ExecutionId;

/// The executions that were dropped since somebody asked, and whether questions may have been.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    executions: Vec<ExecutionId>,
    questions: bool,
}

impl Dropped {
    pub(super) fn add(&mut self, execution: ExecutionId) {
        self.executions.push(execution);
        self.questions = true;
    }

    pub(super) fn add_questions(&mut self) {
        self.questions = true;
    }

    /// The executions, if anything was dropped since this was asked last.
    pub(super) fn take(&mut self) -> Option<Vec<ExecutionId>> {
        std::mem::take(&mut self.questions).then(|| std::mem::take(&mut self.executions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_told_once() {
        let mut dropped = Dropped::default();
        assert_eq!(dropped.take(), None);
        dropped.add_questions();
        assert_eq!(dropped.take(), Some(Vec::new()));
        dropped.add(ExecutionId(2));
        dropped.add(ExecutionId(1));
        assert_eq!(dropped.take(), Some(vec![ExecutionId(2), ExecutionId(1)]));
        assert_eq!(dropped.take(), None);
    }
}
