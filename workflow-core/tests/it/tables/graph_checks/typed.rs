//! The same for parts that only workflows have: an output, and event sets. The compiler checks a generic workflow only
//! when it is used, so the checks at run time can be tested.

use std::marker::PhantomData;

use expect_test::{Expect, expect};
use workflow_core::prelude::*;
use workflow_core::table::DependencyTable;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refusal;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Bye;

#[derive(EventSet)]
enum Outcome {
    Answer(Answer),
    Refusal(Refusal),
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Note;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(EventSet)]
enum DraftOrReview {
    Draft(Draft),
    Review(Review),
}

/// The table is refused, and the compiler says the same.
#[track_caller]
fn refuses<W: Workflow>(said: &str, expected: &Expect) {
    let error = DependencyTable::from_spec(W::TABLE).unwrap_err();
    expected.assert_eq(&error.to_string());
    for problem in error.problems {
        assert!(said.contains(&problem.to_string()), "the compiler says something else:\n{said}");
    }
}

struct EndsNothing<T>(PhantomData<T>);

#[workflow(output = Draft)]
impl<T: Send + Sync + 'static> EndsNothing<T> {
    #[step]
    async fn write(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _draft: &Draft) -> Answer {
        Answer
    }
}

#[test]
fn an_output_that_ends_no_run_is_refused() {
    refuses::<EndsNothing<()>>(
        include_str!("../../../ui/workflow_output_ends_nothing.stderr"),
        &expect![[r#"
            workflow `EndsNothing` has 1 mistake:
              - `Draft` does not end a run, so it cannot be the output of a workflow: write `#[event(stop)]` on it, or name the event that ends the run"#]],
    );
}

struct Lacks<T>(PhantomData<T>);

#[workflow(output = Outcome)]
impl<T: Send + Sync + 'static> Lacks<T> {
    #[step]
    async fn answer(&self, _question: &Question) -> Option<Answer> {
        Some(Answer)
    }

    #[step]
    async fn leave(&self, _question: &Question) -> Option<Bye> {
        None
    }
}

struct Hurries<T>(PhantomData<T>);

#[workflow]
impl<T: Send + Sync + 'static> Hurries<T> {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }

    #[step]
    async fn leave(&self, _question: &Question, _bye: &Emitter<Bye>) {}
}

#[test]
fn a_stop_event_outside_the_output_type_is_refused() {
    let said = include_str!("../../../ui/workflow_output_lacks_stop.stderr");
    refuses::<Lacks<()>>(
        said,
        &expect![[r#"
        workflow `Lacks` has 1 mistake:
          - step `leave` ends the run with `Bye`, but the output of the workflow is `Answer` or `Refusal`: give the enum that `#[workflow(output = …)]` names a variant for it"#]],
    );
    refuses::<Hurries<()>>(
        said,
        &expect![[r#"
        workflow `Hurries` has 1 mistake:
          - step `leave` ends the run with `Bye`, but the output of the workflow is `Answer`: derive `EventSet` on an enum of both and name it, as in `#[workflow(output = TheEnum)]`"#]],
    );
}

struct Chooses<T>(PhantomData<T>);

#[workflow]
impl<T: Send + Sync + 'static> Chooses<T> {
    #[step]
    async fn begin(&self, _question: &Question) -> Note {
        Note
    }

    #[step]
    async fn write(&self, _note: &Note) -> DraftOrReview {
        DraftOrReview::Draft(Draft)
    }

    #[step]
    async fn read(&self, _either: &DraftOrReview) -> Note {
        Note
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

struct ChoosesAWayOut<T>(PhantomData<T>);

#[workflow]
impl<T: Send + Sync + 'static> ChoosesAWayOut<T> {
    #[step]
    async fn begin(&self, _question: &Question) -> Note {
        Note
    }

    #[step]
    async fn write(&self, _note: &Note) -> DraftOrReview {
        DraftOrReview::Draft(Draft)
    }

    #[step]
    async fn read(&self, _draft: &Draft) -> Note {
        Note
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

#[test]
fn a_loop_whose_steps_choose_only_among_its_own_events_is_refused() {
    let said = include_str!("../../../ui/steps_loop_by_choice.stderr");
    refuses::<Chooses<()>>(
        said,
        &expect![[r#"
        workflow `Chooses` has 1 mistake:
          - steps `write` and `read` trigger each other for ever: each always emits what the next one takes, and nothing that follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`"#]],
    );
    assert!(DependencyTable::from_spec(ChoosesAWayOut::<()>::TABLE).is_ok());
}
