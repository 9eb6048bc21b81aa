//! Errors of steps in stall reports.

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::stall;
use crate::fixtures::{Begin, Done, Item, Part};

/// An error that looks like a part of a report.
#[derive(Debug, thiserror::Error)]
#[error("{0} does not parse:\n- `b` did not run\r\n\n    ^ here")]
struct DoesNotParse(u32);

struct LongErrors;

#[workflow]
impl LongErrors {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(on_error = "continue")]
    async fn b(&self, item: &Item) -> Result<Option<Part>, DoesNotParse> {
        if item.0 == 2 { Err(DoesNotParse(item.0)) } else { Ok(None) }
    }

    #[step(on_error = "continue")]
    async fn beside(&self, begin: &Begin) -> Result<(), DoesNotParse> {
        Err(DoesNotParse(begin.0))
    }

    #[step]
    async fn finish(&self, parts: FixedList<Part, 3>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S29, S30
#[tokio::test]
async fn the_lines_of_an_error_stay_below_what_they_belong_to() {
    expect![[r#"
        the run of `LongErrors` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs 3 of `Part` and has 0
                `b` ran 3 times and emitted nothing; it failed once: 2 does not parse:
                    - `b` did not run
                        ^ here
        - `beside` failed: 3 does not parse:
              - `b` did not run
                  ^ here"#]]
    .assert_eq(&stall(LongErrors).await.to_string());
    let run = Scenario::new(LongErrors).start(Begin(3)).await;
    expect![[r#"
        run `scenario` of `LongErrors`: stalled
        - no `Done` ended the run
            `finish` did not run
        - `make` ran once
            x1, triggered by #1 `Begin`
        - `b` ran 3 times
            x3, triggered by #2 `Item` of `make`
            x4, triggered by #3 `Item` of `make`: failed (permanent): 2 does not parse:
                - `b` did not run
                    ^ here
            x5, triggered by #4 `Item` of `make`
        - `beside` ran once
            x2, triggered by #1 `Begin`: failed (permanent): 3 does not parse:
                - `b` did not run
                    ^ here
        - `finish` did not run
            it needs 3 of `Part` and has 0
                `b` ran 3 times and emitted nothing; it failed once: 2 does not parse:
                    - `b` did not run
                        ^ here"#]]
    .assert_eq(&run.explanation().unwrap().to_string());
}
