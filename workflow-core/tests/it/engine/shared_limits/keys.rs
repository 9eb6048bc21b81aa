//! Keys at a limit: made of the step's parameters, at once or later, and failing (S70).

use super::*;
use crate::fixtures::Saw;

/// Pays for a customer, whose key is the number of the item.
struct Customers {
    seen: Seen,
    gate: Gate,
}

#[workflow]
impl Customers {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "bank", limit_key = customer, concurrency = 2)]
    async fn pay(&self, info: &RunInfo, item: &Item) -> Part {
        self.seen.note(format!("{}", item.0));
        assert!(info.attempt() == 1);
        self.gate.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, _: &Begin, _: FixedList<Part, 4>) -> Done {
        Done(0)
    }

    fn customer(item: &Item) -> String {
        format!("customer {}", item.0 / 2)
    }
}

// S70, S21
#[tokio::test]
async fn other_keys_pass_and_take_the_place_in_the_step() {
    let (seen, gate) = (Seen::default(), Gate::closed());
    let customers = Customers { seen: seen.clone(), gate: gate.clone() };
    let engine = Engine::builder().workflow(customers).limit("bank", Limit::concurrent(1)).build().unwrap();
    let run = start::<Customers>(&engine, "a", 4).await;
    // 1 waits for its customer without a place, so 2 has one.
    assert_eq!(seen.lines(), ["0", "2"]);
    let waiting = run.report_so_far().await.unwrap().waiting.clone();
    let texts: Vec<String> = waiting.iter().map(|waiting| waiting.waits_for.to_string()).collect();
    let at = |key: &str, holder: &str| {
        format!(
            "the limit `bank` admits 1 attempt at a time for each key, and here of `{key}` (`limit`): {holder}"
        )
    };
    assert_eq!(
        texts,
        [
            at("customer 0", "x2 of `a` runs"),
            "`pay` may run 2 at a time (`concurrency`): x2 and x4 run".into()
        ]
    );
    gate.let_pass(1);
    everyone_else().await;
    assert_eq!(seen.lines(), ["0", "2", "1"]);
    gate.let_pass(3);
    ends([run]).await;
    assert_eq!(seen.lines(), ["0", "2", "1", "3"]);
}

/// Makes its key later, and not always.
struct Asks(Seen);

#[workflow]
impl Asks {
    #[step(limit = "bank", limit_key = account, retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, SECOND)))]
    async fn pay(&self, begin: &Begin, context: &RunContext) -> Result<Done, StepError> {
        self.0.note("pays");
        assert_eq!(context.get::<u32>("asked").await?, Some(2));
        Ok(Done(begin.0))
    }

    async fn account(&self, context: &RunContext, begin: &Begin) -> Result<u32, StepError> {
        match (context.increment("asked", 1).await?, begin.0) {
            (1, 0) => Err(StepError::transient("ask again")),
            (_, 1) => panic!("no account"),
            _ => Ok(begin.0),
        }
    }
}

// S70
#[tokio::test]
async fn a_key_that_fails_is_a_failure_of_the_attempt() {
    let seen = Seen::default();
    let scenario =
        || Scenario::new(Asks(seen.clone())).engine(|engine| engine.limit("bank", Limit::concurrent(1)));
    let run = scenario().start(Begin(0)).await;
    run.assert_output(&Done(0));
    let attempts: Vec<_> = run.report().trace[0].attempts.iter().map(|failed| &*failed.error).collect();
    assert_eq!(attempts, ["ask again"]);
    assert_eq!(seen.lines(), ["pays"]);
    let panicked = scenario().start(Begin(1)).await;
    let error = panicked.outcome().unwrap_err().to_string();
    assert!(error.contains("step `pay` failed") && error.contains("no account"), "{error}");
    assert_eq!(seen.lines(), ["pays"], "a step without its key is not called");
}

/// Pays at most once, with a key that panics.
struct Once;

#[workflow]
impl Once {
    #[step(at_most_once, limit = "bank", limit_key = account)]
    async fn pay(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    fn account(_: &Begin) -> String {
        panic!("no account")
    }
}

// S70, S69
#[tokio::test]
async fn an_attempt_without_its_key_is_not_in_doubt_since_its_step_was_not_called() {
    let run =
        Scenario::new(Once).engine(|engine| engine.limit("bank", Limit::concurrent(1))).start(Begin(1)).await;
    let outcome = run.outcome();
    assert!(matches!(outcome, Err(RunError::StepFailed { class: ErrorClass::Permanent, .. })), "{outcome:?}");
}

/// Keys of every kind.
struct Kinds(&'static str);

#[workflow]
impl Kinds {
    #[step]
    async fn begin(&self, begin: &Begin) -> (Saw, Part) {
        (Saw(begin.0.to_string()), Part(begin.0))
    }

    #[step(limit = "bank", limit_key = owned)]
    async fn one(&self, saw: Saw) -> Option<Done> {
        (saw.0.len() > 9).then_some(Done(0))
    }

    fn owned(saw: Saw) -> String {
        saw.0
    }

    #[step(limit = "bank", limit_key = text, reruns)]
    async fn two(&self, part: Arc<Part>, more: Option<&Saw>) -> Done {
        let _ = more;
        Done(part.0)
    }

    fn text(&self, _more: Option<&Saw>, part: Arc<Part>) -> Arc<str> {
        let key = format!("{} {}", self.0, part.0);
        drop(part);
        key.into()
    }
}

#[tokio::test]
async fn a_key_is_a_text_or_a_number_of_any_parameters() {
    let run = Scenario::new(Kinds("part"))
        .engine(|engine| engine.limit("bank", Limit::concurrent(1)))
        .start(Begin(3))
        .await;
    run.assert_output(&Done(3));
}
