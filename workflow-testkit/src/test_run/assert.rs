//! What can be asserted of a run. A failure prints the transcript and the explanation.

use std::fmt::Debug;

use workflow_core::{ControlEvent, DisplayEvent, Quality, RunStatus, Workflow};

use super::TestRun;

impl<W: Workflow> TestRun<W> {
    /// Asserts what the run ended with.
    ///
    /// # Panics
    /// If it ended with something else, or has not ended.
    #[track_caller]
    pub fn assert_output(&self, expected: &W::Output)
    where
        W::Output: PartialEq + Debug,
    {
        match self.outcome() {
            Ok(output) => assert_eq!(output, expected, "{}", self.evidence()),
            Err(error) => panic!("{error}\n{}", self.evidence()),
        }
    }

    /// Asserts how often a step was executed, in all scopes.
    ///
    /// # Panics
    /// If it was executed more or less often, or the workflow has no such step.
    #[track_caller]
    pub fn assert_executions(&self, step: &str, expected: u64) {
        let executions = self.executions(step);
        assert_eq!(executions, expected, "executions of `{step}`\n{}", self.evidence());
    }

    /// Asserts that every execution of one step had ended before any execution of the other began. Executions that
    /// were dropped, that failed, or that still run when a run waits, are executions too.
    ///
    /// # Panics
    /// If that is not so, if one of them was never executed, or the workflow has no such step.
    #[track_caller]
    pub fn assert_order(&self, before: &str, after: &str) {
        let calls = self.calls();
        let of = |step: &str| {
            self.assert_step(step);
            let calls: Vec<_> = calls.iter().filter(|call| &*call.step == step).collect();
            assert!(!calls.is_empty(), "`{step}` was never executed\n{}", self.evidence());
            calls
        };
        let last = of(before).iter().map(|call| call.ended.unwrap_or(u64::MAX)).max();
        let first = of(after).iter().map(|call| call.began).min();
        assert!(last < first, "`{after}` began before `{before}` had ended\n{}", self.evidence());
    }

    /// Asserts how many events of type `E` steps emitted, fan-outs and emitters included;
    /// [`assert_emitted_events`](Self::assert_emitted_events) asserts which.
    ///
    /// # Panics
    /// If there were more or fewer.
    #[track_caller]
    pub fn assert_emitted<E: ControlEvent>(&self, expected: usize) {
        let emitted = self.emitted::<E>().len();
        assert_eq!(emitted, expected, "events `{}` of steps\n{}", E::NAME, self.evidence());
    }

    /// Asserts which events of type `E` steps emitted, fan-outs and emitters included, in the order in which they entered
    /// the log.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct Question(String);
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize, Event)]
    /// struct Word(String);
    ///
    /// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Counted(usize);
    ///
    /// struct Words;
    ///
    /// #[workflow]
    /// impl Words {
    ///     #[step]
    ///     async fn split(&self, question: &Question) -> FanOut<Word> {
    ///         question.0.split_whitespace().map(|word| Word(word.to_owned())).collect()
    ///     }
    ///
    ///     #[step]
    ///     async fn count(&self, words: &Gather<Word>) -> Counted { Counted(words.len()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let run = Scenario::new(Words).start(Question("why not".into())).await;
    /// run.assert_emitted_events(&[Word("why".into()), Word("not".into())]);
    /// run.assert_emitted::<Word>(2);
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there were others, or in another order.
    #[track_caller]
    pub fn assert_emitted_events<E: ControlEvent + PartialEq + Debug>(&self, expected: &[E]) {
        let emitted = self.emitted::<E>();
        let emitted: Vec<&E> = emitted.iter().map(|event| &**event).collect();
        let expected: Vec<&E> = expected.iter().collect();
        assert_eq!(emitted, expected, "events `{}` of steps\n{}", E::NAME, self.evidence());
    }

    /// Asserts which events of type `E` the run showed and did not take back, in order.
    ///
    /// # Panics
    /// If it showed others, or in another order.
    #[track_caller]
    pub fn assert_displayed<E: DisplayEvent + PartialEq + Debug>(&self, expected: &[E]) {
        let displayed = self.displayed::<E>();
        let expected: Vec<&E> = expected.iter().collect();
        assert_eq!(displayed, expected, "`{}` shown\n{}", E::NAME, self.evidence());
    }

    /// Asserts how well the run went; of a run that waits, until it was last settled.
    ///
    /// # Panics
    /// If it went otherwise.
    #[track_caller]
    pub fn assert_quality(&self, expected: Quality) {
        assert_eq!(self.report().quality, expected, "{}", self.evidence());
    }

    /// Asserts that the run stalled, and that its stall report says this, as one of the lines that it prints or a part
    /// of one.
    ///
    /// # Panics
    /// If it did not stall, if the report does not say so, or the run has not ended.
    #[track_caller]
    pub fn assert_stalled(&self, says: &str) {
        let report = self.stall().map(ToString::to_string);
        let report = report.unwrap_or_else(|| panic!("the run did not stall\n{}", self.evidence()));
        assert!(report.contains(says), "the report does not say `{says}`\n{}", self.evidence());
    }

    /// Asserts that the run waits: for something from outside that is in no script, or for anything at all if its
    /// scenario goes on [until it waits](crate::ScenarioOf::until_it_waits).
    ///
    /// # Panics
    /// If it has ended.
    #[track_caller]
    pub fn assert_waiting(&self) {
        assert_eq!(self.status(), RunStatus::Waiting, "{}", self.evidence());
    }

    #[track_caller]
    pub(super) fn assert_step(&self, step: &str) {
        let known = W::TABLE.steps().iter().any(|row| row.name() == step);
        assert!(known, "`{}` has no step `{step}`\n{}", W::TABLE.name(), self.evidence());
    }
}
