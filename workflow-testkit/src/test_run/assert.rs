//! Assertions on a run. A failure prints the transcript and the explanation.

use std::fmt::Debug;

use workflow_core::report::{CleanUpResult, Quality};
use workflow_core::{ControlEvent, DisplayEvent, RunStatus};

use super::TestRun;
use crate::subject::Tested;

impl<T: Tested> TestRun<T> {
    /// Asserts the output of the run.
    ///
    /// # Panics
    /// Panics if the run ended differently, or has not ended.
    #[track_caller]
    pub fn assert_output(&self, expected: &T::Output)
    where
        T::Output: PartialEq + Debug,
    {
        match self.outcome() {
            Ok(output) => assert_eq!(output, expected, "{}", self.evidence()),
            Err(error) => panic!("{error}\n{}", self.evidence()),
        }
    }

    /// Asserts the number of executions of a step, in all scopes.
    ///
    /// # Panics
    /// Panics if the number differs, or the workflow has no such step.
    #[track_caller]
    pub fn assert_executions(&self, step: &str, expected: u64) {
        let executions = self.executions(step);
        assert_eq!(executions, expected, "executions of `{step}`\n{}", self.evidence());
    }

    /// Asserts that all executions of one step ended before any of the other began.
    ///
    /// Dropped, failed and still running executions count too.
    ///
    /// # Panics
    /// Panics if not, if one of the steps was never executed, or the workflow has no such step.
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

    /// Asserts that exactly these clean-up steps were executed at the end of the run, in this order.
    ///
    /// Whether they succeeded is in the [report](Self::report) and the [transcript](Self::transcript).
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Trip;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Flight;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Hotel;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid;
    /// # struct Agency;
    /// #[workflow]
    /// impl Agency {
    ///     #[step]
    ///     async fn book_flight(&self, _trip: &Trip) -> Flight { Flight }
    ///     #[step]
    ///     async fn book_hotel(&self, _flight: &Flight) -> Hotel { Hotel }
    ///     #[step]
    ///     async fn pay(&self, _hotel: &Hotel) -> Result<Paid, StepError> { Err(StepError::rejected("no money")) }
    ///
    ///     #[step(on_end)]
    ///     async fn unbook_flight(&self, _flight: &Flight) {}
    ///     #[step(on_end)]
    ///     async fn unbook_hotel(&self, _hotel: &Hotel) {}
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let run = Scenario::new(Agency).start(Trip).await;
    /// run.assert_cleaned_up(&["unbook_hotel", "unbook_flight"]);
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics if others were executed, or in another order.
    #[track_caller]
    pub fn assert_cleaned_up(&self, expected: &[&str]) {
        let steps = self.report().clean_up.iter().flat_map(|clean_up| &clean_up.steps);
        let executed = steps.filter(|step| matches!(step.result, CleanUpResult::Executed(_)));
        let executed: Vec<&str> = executed.map(|step| &*step.step).collect();
        assert_eq!(executed, expected, "clean-up\n{}", self.evidence());
    }

    /// Asserts the number of events of type `E` that steps emitted.
    ///
    /// Fan-outs and emitters count. [`assert_emitted_events`](Self::assert_emitted_events) asserts the events
    /// themselves.
    ///
    /// # Panics
    /// Panics if the number differs.
    #[track_caller]
    pub fn assert_emitted<E: ControlEvent>(&self, expected: usize) {
        let emitted = self.emitted::<E>().len();
        assert_eq!(emitted, expected, "events `{}` of steps\n{}", E::NAME, self.evidence());
    }

    /// Asserts the events of type `E` that steps emitted, in log order.
    ///
    /// Fan-outs and emitters count.
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
    /// Panics if the events or their order differ.
    #[track_caller]
    pub fn assert_emitted_events<E: ControlEvent + PartialEq + Debug>(&self, expected: &[E]) {
        let emitted = self.emitted::<E>();
        let emitted: Vec<&E> = emitted.iter().map(|event| &**event).collect();
        let expected: Vec<&E> = expected.iter().collect();
        assert_eq!(emitted, expected, "events `{}` of steps\n{}", E::NAME, self.evidence());
    }

    /// Asserts the displayed events of type `E`, without retracted ones, in order.
    ///
    /// # Panics
    /// Panics if the events or their order differ.
    #[track_caller]
    pub fn assert_displayed<E: DisplayEvent + PartialEq + Debug>(&self, expected: &[E]) {
        let displayed = self.displayed::<E>();
        let expected: Vec<&E> = expected.iter().collect();
        assert_eq!(displayed, expected, "`{}` shown\n{}", E::NAME, self.evidence());
    }

    /// Asserts the quality of the run; for a waiting run, as of the last settling.
    ///
    /// # Panics
    /// Panics if the quality differs.
    #[track_caller]
    pub fn assert_quality(&self, expected: Quality) {
        assert_eq!(self.report().quality, expected, "{}", self.evidence());
    }

    /// Asserts that the run stalled, and that its report contains this text.
    ///
    /// The text must occur in one line.
    ///
    /// # Panics
    /// Panics if the run did not stall or has not ended, or if the report lacks the text.
    #[track_caller]
    pub fn assert_stalled(&self, says: &str) {
        let report = self.stall().map(ToString::to_string);
        let report = report.unwrap_or_else(|| panic!("the run did not stall\n{}", self.evidence()));
        assert!(report.contains(says), "the report does not say `{says}`\n{}", self.evidence());
    }

    /// Asserts that the run waits.
    ///
    /// It waits for something outside the script, or for anything at all with
    /// [`until_it_waits`](crate::ScenarioOf::until_it_waits).
    ///
    /// # Panics
    /// Panics if the run has ended.
    #[track_caller]
    pub fn assert_waiting(&self) {
        assert_eq!(self.status(), RunStatus::Waiting, "{}", self.evidence());
    }

    #[track_caller]
    pub(super) fn assert_step(&self, step: &str) {
        let lacks = self.subject.lacks_step(step);
        assert!(lacks.is_none(), "{}\n{}", lacks.unwrap_or_default(), self.evidence());
    }
}
