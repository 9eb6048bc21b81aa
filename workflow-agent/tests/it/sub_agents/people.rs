use super::*;
use workflow_agent::{AnswerError, Prompt};
use workflow_core::store::MemoryStore;
use workflow_core::{RequestEnd, RunOptions};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    cents: u32,
}

fn pay() -> FnTool {
    let pay = FnTool::new("pay", "Pays.", |amount: Amount, _| async move {
        Ok::<_, ToolError>(format!("paid {}", amount.cents))
    });
    pay.approval(Approval::Always)
}

/// An agent that wants to pay, and then asks the user.
fn paying(name: &str) -> Agent {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "pay", json!({ "cents": 700 })),
        3 => ScriptedReply::call("2", "ask_user", json!({ "question": "Which account?" })),
        _ => {
            let texts: Vec<_> = request.messages[1..].iter().map(|message| message.text()).collect();
            ScriptedReply::text(texts.join(" "))
        }
    });
    Agent::builder(name).identity("You help.").model(model).tool(pay()).ask_user().build().unwrap()
}

/// `below` under as many agents as `levels` names, the last one directly above it.
fn under(levels: &[&str], below: Agent) -> Agent {
    levels.iter().rev().fold(below, |below, name| {
        let (builder, _) = spawning(name, [to(below.name(), "Do it.")]);
        builder.sub_agent(below).build().unwrap()
    })
}

/// A24, A25, A23
#[tokio::test]
async fn requests_of_sub_agents_at_every_depth_come_through_the_top_stream_and_take_answers() {
    for levels in [&["top"][..], &["top", "second"], &["top", "second", "third"]] {
        let top = under(levels, paying("leaf"));
        let engine = Engine::builder().agent(top.clone()).build().unwrap();
        let mut run = top.start_with(&engine, "Go.", RunOptions::new().id("r")).await.unwrap();
        let (mut asked, mut closed, mut items) = (Vec::new(), Vec::new(), 0);
        while let Some(shown) = run.next().await {
            match shown {
                Shown::Approval(approval) => {
                    assert_eq!((approval.tool(), approval.arguments()), ("pay", &json!({ "cents": 700 })));
                    let listed = run.approvals().await.unwrap();
                    let listed: Vec<_> = listed.iter().map(|one| (one.run(), one.seq())).collect();
                    assert_eq!(listed, [(approval.run(), approval.seq())]);
                    assert!(run.questions().await.unwrap().is_empty());
                    let unfit = approval.edit(json!({ "cents": -1 })).await.unwrap_err();
                    assert!(
                        matches!(&unfit, AnswerError::Edit { pointer, .. } if pointer == "/cents"),
                        "{unfit:?}"
                    );
                    approval.edit(json!({ "cents": 5 })).await.unwrap();
                    asked.push((approval.run().clone(), approval.seq()));
                }
                Shown::Question(question) => {
                    assert_eq!(question.question(), "Which account?");
                    let listed = run.questions().await.unwrap();
                    let listed: Vec<_> = listed.iter().map(|one| (one.run(), one.seq())).collect();
                    assert_eq!(listed, [(question.run(), question.seq())]);
                    assert!(run.approvals().await.unwrap().is_empty());
                    question.answer("the blue one").await.unwrap();
                    asked.push((question.run().clone(), question.seq()));
                }
                Shown::Closed { run, seq, how } => {
                    assert_eq!(how, RequestEnd::Replied);
                    closed.push((run, seq));
                }
                Shown::SubAgent { .. } => items += 1,
                _ => {}
            }
        }
        assert_eq!((asked.len(), &asked), (2, &closed));
        let depth = asked[0].0.as_str().matches('/').count();
        assert_eq!((depth, asked[0].0 == asked[1].0), (levels.len(), true), "{asked:?}");
        assert!(items > 0 && run.approvals().await.unwrap().is_empty(), "the run has ended");
        assert!(run.questions().await.unwrap().is_empty(), "the run has ended");
        let answer = run.outcome().await.unwrap();
        let answer = answer.text();
        assert!(answer.contains("paid 5") && answer.contains("the blue one"), "{answer}");
    }
}

/// A24, A21
#[tokio::test]
async fn an_approval_of_a_sub_agent_survives_restarts_and_a_rejection_reaches_its_model() {
    let top = under(&["top", "second"], paying("leaf"));
    let store = Arc::new(MemoryStore::default());
    let host = || Engine::builder().agent(top.clone()).store(Arc::clone(&store)).build().unwrap();
    let engine = host();
    let mut run = top.start_with(&engine, "Go.", RunOptions::new().id("r")).await.unwrap();
    let asked = loop {
        if let Shown::Approval(approval) = run.next().await.unwrap() {
            break (approval.run().clone(), approval.seq());
        }
    };
    engine.shut_down(Duration::from_secs(10)).await;

    let engine = host();
    let mut run = AgentRun::attach(&engine, &top, "r").await.unwrap();
    while let Some(shown) = run.next().await {
        match shown {
            Shown::Approval(approval) => {
                assert_eq!((approval.run(), approval.seq()), (&asked.0, asked.1));
                approval.reject("too much").await.unwrap();
                assert!(approval.approve().await.is_err(), "it was answered");
            }
            Shown::Question(question) => question.answer("none").await.unwrap(),
            _ => {}
        }
    }
    let outcome = run.outcome().await.unwrap();
    assert!(outcome.text().contains("action rejected by user") && outcome.text().contains("too much"));
}

/// A24
#[tokio::test]
async fn a_page_lists_the_requests_of_all_sub_agents_after_a_restart_and_answers_them() {
    // Two tasks of one call, and one of them has a level between.
    let (middle, _) = spawning("middle", [to("leaf", "b")]);
    let middle = middle.sub_agent(paying("leaf")).build().unwrap();
    let (top, _) = spawning("top", [to("middle", "a"), to("leaf", "c")]);
    let top = top.sub_agent(middle).sub_agent(paying("leaf")).build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let host = || Engine::builder().agent(top.clone()).store(Arc::clone(&store)).build().unwrap();
    let engine = host();
    let mut run = top.start_with(&engine, "Go.", RunOptions::new().id("r")).await.unwrap();
    let mut asked = Vec::new();
    while asked.len() < 2 {
        if let Shown::Approval(approval) = run.next().await.unwrap() {
            asked.push(approval.run().clone());
        }
    }
    asked.sort();
    drop(run);
    engine.shut_down(Duration::from_secs(10)).await;

    // Nobody reads the stream.
    let engine = host();
    let run = AgentRun::attach(&engine, &top, "r").await.unwrap();
    let mut open = run.approvals().await.unwrap();
    open.sort_by_key(|approval| approval.run().clone());
    assert_eq!(open.iter().map(|approval| approval.run().clone()).collect::<Vec<_>>(), asked);
    let unfit = open[0].edit(json!({ "cents": -1 })).await.unwrap_err();
    assert!(matches!(unfit, AnswerError::Edit { .. }), "{unfit:?}");
    for approval in &open {
        approval.edit(json!({ "cents": 5 })).await.unwrap();
    }
    let mut run = run;
    let mut answered = 0;
    while answered < 2 {
        if let Shown::Question(_) = run.next().await.unwrap() {
            for question in run.questions().await.unwrap() {
                question.answer("the blue one").await.unwrap();
                answered += 1;
            }
        }
    }
    let outcome = run.outcome().await.unwrap();
    assert_eq!(outcome.text().matches("the blue one").count(), 2, "{}", outcome.text());
}

/// A24
#[tokio::test]
async fn the_handle_of_a_sub_agents_own_run_shows_and_lists_the_requests_below_it() {
    let (second, _) = spawning("second", [to("leaf", "Do it.")]);
    let second = second.sub_agent(paying("leaf")).build().unwrap();
    let (top, _) = spawning("top", [to("second", "Do it.")]);
    let top = top.sub_agent(second.clone()).build().unwrap();
    let engine = Engine::builder().agent(top.clone()).build().unwrap();
    let mut run = top.start(&engine, "Go.").await.unwrap();
    let asked = loop {
        if let Shown::Approval(approval) = run.next().await.unwrap() {
            break (approval.run().clone(), approval.seq());
        }
    };
    let report = run.handle().report_so_far().await.unwrap();
    let below = report.children[0].child.run.clone();
    assert_ne!(below, asked.0, "the approval is of the level below");
    let mut below = AgentRun::attach(&engine, &second, below).await.unwrap();
    let listed = below.approvals().await.unwrap();
    assert_eq!(
        listed.iter().map(|one| (one.run().clone(), one.seq())).collect::<Vec<_>>(),
        std::slice::from_ref(&asked)
    );
    loop {
        match below.next().await.expect("the approval comes before the end") {
            Shown::Approval(approval) => {
                assert_eq!((approval.run().clone(), approval.seq()), asked);
                approval.reject("too much").await.unwrap();
            }
            Shown::Question(question) => break question.answer("none").await.unwrap(),
            _ => {}
        }
    }
    assert!(run.outcome().await.unwrap().text().contains("too much"));
}

/// A24
#[tokio::test]
async fn an_agent_in_memory_says_which_tool_of_a_sub_agent_needs_a_person() {
    let error = under(&["top", "second"], paying("leaf")).ask(Prompt::new("Go.")).await.unwrap_err();
    assert!(error.to_string().starts_with("`pay` needs a person"), "{error}");
}

/// A23
#[tokio::test]
async fn approve_all_holds_for_the_run_of_its_sub_agent_alone() {
    let twice = ScriptedModel::respond(|request| match request.messages.len() {
        1 | 3 => ScriptedReply::call("x", "pay", json!({ "cents": request.messages.len() })),
        _ => ScriptedReply::text("done"),
    });
    let leaf = Agent::builder("leaf").identity("You help.").model(twice).tool(pay()).build().unwrap();
    let (top, _) = spawning("top", [to("leaf", "a"), to("leaf", "b")]);
    let top = top.sub_agent(leaf).build().unwrap();
    let engine = Engine::builder().agent(top.clone()).build().unwrap();
    let mut run = top.start(&engine, "Go.").await.unwrap();
    let mut asked = Vec::new();
    while let Some(shown) = run.next().await {
        if let Shown::Approval(approval) = shown {
            approval.approve_all().await.unwrap();
            asked.push(approval.run().to_string());
        }
    }
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 2, "each run asked: {asked:?}");
    assert!(matches!(run.outcome().await.unwrap(), Outcome::Answered(_)));
}
