//! Judges: verdicts, retries, failures, and their usage.

use std::sync::Mutex;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_agent::ModelJudge;
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::{ModelLimits, Price, ScriptedModel, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_core::StepError;

use crate::lives::{Disk, Fails, Lost, life};
use crate::pairing;

/// Gives these verdicts in order, the last one again and again.
struct Verdicts(Mutex<Vec<Verdict>>);

impl Verdicts {
    fn new(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        Self(Mutex::new(verdicts.into_iter().collect()))
    }
}

impl Judge for Verdicts {
    fn judge<'a>(&'a self, _: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
        let mut verdicts = self.0.lock().unwrap();
        let verdict = if verdicts.len() > 1 { verdicts.remove(0) } else { verdicts[0].clone() };
        async move { Ok(verdict.into()) }.boxed()
    }
}

fn retry(feedback: &str) -> Verdict {
    Verdict::Retry(feedback.into())
}

fn counting() -> ScriptedModel {
    ScriptedModel::respond(|request| {
        ScriptedReply::text(format!("answer {}", request.messages.len() / 2)).usage(Usage::new(100, 10))
    })
}

async fn outcome(agent: &Agent) -> Outcome {
    let engine = Engine::builder().agent(agent.clone()).build().unwrap();
    agent.start(&engine, "go").await.unwrap().outcome().await.unwrap()
}

fn stopped(outcome: Outcome) -> StopReason {
    match outcome {
        Outcome::Stopped(stopped) => stopped.reason,
        outcome => panic!("{outcome:?}"),
    }
}

/// A54, A7
#[tokio::test]
async fn a_retry_is_another_turn_of_the_same_run_with_the_feedback() {
    let model = counting();
    let judge = Verdicts::new([retry("shorter"), Verdict::Accept]);
    let agent = Agent::builder("a").model(model.clone()).judge(judge).build().unwrap();
    assert_eq!(outcome(&agent).await.text(), "answer 1");
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    pairing::check(&requests[1]).unwrap();
    pairing::continues(&requests[0], &requests[1]).unwrap();
    assert_eq!(requests[1].messages[2].text(), "[Judge feedback]: shorter");
}

/// A54
#[tokio::test]
async fn an_escalation_ends_the_run_and_so_does_the_fourth_refusal() {
    let model = counting();
    let judge = Verdicts::new([Verdict::Escalate("a person must look".into())]);
    let agent = Agent::builder("a").model(model.clone()).judge(judge).build().unwrap();
    assert_eq!(stopped(outcome(&agent).await), StopReason::Escalated { why: "a person must look".into() });
    assert_eq!(model.requests().len(), 1);

    let model = counting();
    let judge = Verdicts::new([retry("one"), retry("two"), retry("three"), retry("four")]);
    let agent = Agent::builder("a").model(model.clone()).judge(judge).build().unwrap();
    let reason = StopReason::JudgeRetries { retries: 3, feedback: "four".into() };
    assert_eq!(stopped(outcome(&agent).await), reason);
    assert_eq!(model.requests().len(), 4);
}

/// A54, A51
#[tokio::test]
async fn each_phase_has_three_retries_of_its_own() {
    let verdicts =
        [3, 3].map(|retries| std::iter::repeat_n(retry("again"), retries).chain([Verdict::Accept]));
    let judge = Verdicts::new(verdicts.into_iter().flatten());
    let model = counting();
    let agent = Agent::builder("a").model(model.clone()).judge(judge);
    let agent = agent.phase(Phase::new("one")).phase(Phase::new("two")).build().unwrap();
    assert!(matches!(outcome(&agent).await, Outcome::Answered(_)));
    assert_eq!(model.requests().len(), 8);
}

/// A54
#[tokio::test]
async fn a_judge_that_panics_or_fails_ends_the_run_with_its_reason() {
    struct Broken(bool);
    impl Judge for Broken {
        fn judge<'a>(&'a self, _: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
            assert!(self.0, "the judge slipped");
            async { Err(StepError::permanent("the law is gone")) }.boxed()
        }
    }
    for (broken, why) in [(Broken(false), "the judge slipped"), (Broken(true), "the law is gone")] {
        let agent = Agent::builder("a").model(counting()).judge(broken).build().unwrap();
        let reason = stopped(outcome(&agent).await);
        assert!(matches!(&reason, StopReason::Failed { error, .. } if error.contains(why)), "{reason:?}");
    }
}

/// A54
#[tokio::test]
async fn a_model_judge_sees_question_and_answer_as_data_and_decides() {
    let reply = |verdict: &str, why: &str| {
        let json = serde_json::json!({"verdict": verdict, "reason": why});
        ScriptedReply::text(format!("```json\n{json}\n```")).usage(Usage::new(1_000, 100))
    };
    let judging = ScriptedModel::new([reply("retry", "say more"), reply("accept", "")]);
    let model = counting();
    let judge = ModelJudge::new(judging.clone(), "It must be long.");
    let agent = Agent::builder("a").model(model.clone()).judge(judge).build().unwrap();
    let outcome = outcome(&agent).await;
    assert_eq!(outcome.text(), "answer 1");
    // Two turns and two verdicts.
    assert_eq!(outcome.usage().tokens(), 2 * 110 + 2 * 1_100);
    assert_eq!(model.requests()[1].messages[2].text(), "[Judge feedback]: say more");
    let asked = &judging.requests()[0];
    assert!(asked.system.contains("It must be long."));
    let expected = "<data source=\"question\">\ngo\n</data>\n<data source=\"answer\">\nanswer 0\n</data>";
    assert_eq!(asked.messages[0].text(), expected);
}

/// A54
#[tokio::test]
async fn an_unreadable_verdict_counts_as_a_retry() {
    for text in ["", "yes!", "{\"verdict\": \"perhaps\"}", "{", "}{", "null"] {
        let judging = ScriptedModel::respond(move |_| match text {
            "" => ScriptedReply::text("nothing"),
            text => ScriptedReply::text(text),
        });
        let judge = ModelJudge::new(judging.clone(), "It must be good.");
        let agent = Agent::builder("a").model(counting()).judge(judge).build().unwrap();
        let reason = stopped(outcome(&agent).await);
        assert!(matches!(reason, StopReason::JudgeRetries { retries: 3, .. }), "{text}: {reason:?}");
        assert_eq!(judging.requests().len(), 4);
    }
}

/// A54
#[tokio::test]
async fn a_verdict_in_words_or_behind_thoughts_counts() {
    for text in [
        "VERDICT: accept",
        "The answer is long enough.\n\n**Verdict:** Accept.",
        "<think>{\"verdict\": \"retry\"}? No.</think>{\"verdict\": \"accept\"}",
        "Well. {\"verdict\": \"accept\"} That is all.",
    ] {
        let judging = ScriptedModel::new([ScriptedReply::text(text)]);
        let judge = ModelJudge::new(judging, "It must be long.");
        let agent = Agent::builder("a").model(counting()).judge(judge).build().unwrap();
        assert_eq!(outcome(&agent).await.text(), "answer 0", "{text}");
    }
    let model = counting();
    let judging =
        ScriptedModel::new(["VERDICT: retry\nSay more.", "VERDICT: accept"].map(ScriptedReply::text));
    let judge = ModelJudge::new(judging, "It must be long.");
    let agent = Agent::builder("a").model(model.clone()).judge(judge).build().unwrap();
    assert_eq!(outcome(&agent).await.text(), "answer 1");
    assert_eq!(model.requests()[1].messages[2].text(), "[Judge feedback]: Say more.");
    let judging = ScriptedModel::new([ScriptedReply::text("VERDICT: escalate\nA person must look.")]);
    let agent =
        Agent::builder("a").model(counting()).judge(ModelJudge::new(judging, "Good.")).build().unwrap();
    assert_eq!(stopped(outcome(&agent).await), StopReason::Escalated { why: "A person must look.".into() });
    // Two verdicts are none.
    let judging = ScriptedModel::respond(|_| ScriptedReply::text("VERDICT: accept\nVERDICT: retry"));
    let agent =
        Agent::builder("a").model(counting()).judge(ModelJudge::new(judging, "Good.")).build().unwrap();
    assert!(matches!(stopped(outcome(&agent).await), StopReason::JudgeRetries { retries: 3, .. }));
}

/// A54, A60
#[tokio::test]
async fn the_usage_of_an_escalation_counts() {
    let json = r#"{"verdict": "escalate", "reason": "look"}"#;
    let judging = ScriptedModel::new([ScriptedReply::text(json).usage(Usage::new(1_000, 100))]);
    let agent =
        Agent::builder("a").model(counting()).judge(ModelJudge::new(judging, "Good.")).build().unwrap();
    let outcome = outcome(&agent).await;
    assert_eq!(outcome.usage().tokens(), 1_210);
    assert_eq!(stopped(outcome), StopReason::Escalated { why: "look".into() });
}

/// A54, A7
#[test]
fn a_run_with_a_judge_comes_to_the_same_end_wherever_its_process_ends() {
    struct Longer;
    impl Judge for Longer {
        fn judge<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
            let is_last = &*candidate.text == "answer 2";
            async move { Ok(if is_last { Verdict::Accept } else { retry("again") }.into()) }.boxed()
        }
    }
    for at in 0.. {
        let (disk, model) = (Disk::default(), counting());
        let agent = Agent::builder("a").model(model.clone()).judge(Longer).build().unwrap();
        let process = disk.process(Fails::From(at, Lost::Answer));
        let options = || workflow_core::RunOptions::new().id("r");
        life(async {
            if let Ok(run) = agent.start_with(&process.engine(&agent), "go", options()).await {
                drop(run.outcome().await);
            }
        });
        life(async {
            let engine = disk.healthy().engine(&agent);
            let run = match AgentRun::attach(&engine, &agent, "r").await {
                Ok(run) => run,
                Err(_) => agent.start_with(&engine, "go", options()).await.unwrap(),
            };
            let outcome = run.outcome().await.unwrap();
            assert_eq!((outcome.text(), outcome.usage().tokens()), ("answer 2", 330), "{at}");
            for pair in model.requests().windows(2) {
                pairing::continues(&pair[0], &pair[1]).unwrap();
            }
        });
        if !process.has_failed() {
            assert!(at > 5);
            break;
        }
    }
}

/// A54, A60
#[tokio::test]
async fn a_judge_costs_as_much_as_its_own_model() {
    let reply = |verdict: &str| {
        ScriptedReply::text(serde_json::json!({"verdict": verdict, "reason": "more"}).to_string())
            .usage(Usage::new(1_000_000, 0))
    };
    let limits = ModelLimits::new(2_000_000, 1_000).price(Price::new(20.0, 20.0));
    for verdicts in [&["accept"][..], &["retry", "accept"], &["escalate"]] {
        let judging = ScriptedModel::new(verdicts.iter().map(|verdict| reply(verdict))).limits(limits);
        let model = counting();
        let agent = Agent::builder("a").model(model.clone()).judge(ModelJudge::new(judging, "Good."));
        let outcome = outcome(&agent.build().unwrap()).await;
        // The agent's own model costs 1 for a million tokens.
        let count = |all: usize| f64::from(u32::try_from(all).unwrap());
        let expected = 20.0 * count(verdicts.len()) + 110.0 * count(model.requests().len()) / 1e6;
        assert!((outcome.cost() - expected).abs() < 1e-9, "{} and not {expected}", outcome.cost());
    }
}

/// A54, A9
#[tokio::test]
async fn a_cost_that_is_no_number_ends_the_run_with_an_outcome() {
    struct Endless;
    impl Judge for Endless {
        fn judge<'a>(&'a self, _: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
            let mut judgement = Judgement::from(Verdict::Accept);
            judgement.cost = f64::NAN;
            async move { Ok(judgement) }.boxed()
        }
    }
    let agent = Agent::builder("a").model(counting()).judge(Endless).build().unwrap();
    let reason = stopped(outcome(&agent).await);
    assert!(matches!(&reason, StopReason::Failed { error, .. } if error.contains("no number")), "{reason:?}");
    // A price that is none passes no budget.
    let limits = ModelLimits::new(200_000, 1_000).price(Price::new(f64::NAN, f64::INFINITY));
    let model = ScriptedModel::new([ScriptedReply::text("yes").usage(Usage::new(1, 1))]).limits(limits);
    let agent = Agent::builder("a").model(model).budget(Budget::unlimited().cost(1e300)).build().unwrap();
    let outcome = outcome(&agent).await;
    assert!(outcome.cost() >= f64::MAX && matches!(stopped(outcome), StopReason::Budget { .. }));
}
