use super::*;
use workflow_agent::{AnswerError, ApprovePlan, PlanDecision, ProjectError, ProjectFailure};

fn approved(planner: &Agent, worker: &Agent) -> Project {
    builder(planner, worker).approve_plan().build().unwrap()
}

fn failed(run: &workflow_testkit::TestRun<Project>) -> &ProjectFailure {
    match run.outcome().unwrap() {
        ProjectOutcome::Failed(failed) => &failed.reason,
        outcome => panic!("{outcome:?}"),
    }
}

/// A70
#[tokio::test]
async fn nothing_runs_before_the_plan_is_approved() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, model) = worker(answers);
    let project = approved(&planner, &worker);
    let engine = Engine::builder().project(project.clone()).build().unwrap();
    let mut run = ProjectRun::start(&engine, &project, "Release 2.0").await.unwrap();
    let mut shown = Vec::new();
    while let Some(item) = run.next().await {
        match item {
            ProjectShown::PlanProposed(pending) => {
                assert_eq!((pending.run(), pending.tasks()[0].id.as_str()), (run.id(), "a"));
                assert!(model.requests().is_empty());
                assert!(run.tasks().await.unwrap().is_empty());
                assert_eq!(run.plan().await.unwrap().unwrap().seq(), pending.seq());
                pending.approve().await.unwrap();
                shown.push("proposed".to_owned());
            }
            ProjectShown::Closed { .. } => shown.push("closed".to_owned()),
            ProjectShown::TaskStatus(status) => shown.push(said(&status)),
            ProjectShown::Done(outcome) => shown.push(format!("done {}", outcome.results()[0].text)),
            ProjectShown::Agent { .. } => {}
            item => panic!("{item:?}"),
        }
    }
    assert_eq!(
        shown,
        ["proposed", "closed", "a pending", "a in_progress", "a completed", "done result of a"]
    );
}

/// A70, A21
#[tokio::test]
async fn a_rejected_plan_goes_back_to_the_planner_with_the_reason_and_people_are_asked_again() {
    let (planner, model) = planner([plan([task("one", &[])]), plan([task("two", &[])])]);
    let (worker, tasks) = worker(answers);
    let project = approved(&planner, &worker);
    let run = scenario(&project, &planner, &worker)
        .reply(|asked: &ApprovePlan| match &*asked.plan.tasks[0].id {
            "one" => PlanDecision::Reject { reason: Some("tests are missing </data>".into()) },
            _ => PlanDecision::Approve,
        })
        .start(goal())
        .await;
    assert_eq!(run.outcome().unwrap().results()[0].id.as_ref(), "two");
    let again = model.requests()[1].messages[0].text().into_owned();
    assert!(again.contains("<data source=\"reason\">\ntests are missing &lt;/data>\n</data>"), "{again}");
    assert!(again.contains("Title of one"), "{again}");
    assert_eq!((model.requests().len(), tasks.requests().len()), (2, 1));
}

/// A70
#[tokio::test]
async fn the_tenth_rejection_fails_the_project_with_its_reason() {
    let (planner, model) = planner([plan([task("a", &[])])]);
    let (worker, tasks) = worker(answers);
    let project = approved(&planner, &worker);
    let run = scenario(&project, &planner, &worker)
        .reply(|_: &ApprovePlan| PlanDecision::Reject { reason: Some("no".into()) })
        .start(goal())
        .await;
    assert_eq!(failed(&run), &ProjectFailure::Rejected { plans: 10, reason: Some("no".into()) });
    assert_eq!(failed(&run).to_string(), "10 plans were rejected; the last reason: no");
    assert_eq!((model.requests().len(), tasks.requests().len()), (10, 0));
}

/// A70
#[tokio::test]
async fn problems_after_a_rejection_are_counted_anew() {
    let circle = |name: &str| plan([task(name, &[name])]);
    let plans = [
        circle("1"),
        circle("2"),
        plan([task("ok", &[])]),
        circle("3"),
        circle("4"),
        plan([task("fine", &[])]),
    ];
    let (planner, model) = planner(plans);
    let (worker, _) = worker(answers);
    let project = approved(&planner, &worker);
    let run = scenario(&project, &planner, &worker)
        .reply(|asked: &ApprovePlan| match &*asked.plan.tasks[0].id {
            "ok" => PlanDecision::Reject { reason: None },
            _ => PlanDecision::Approve,
        })
        .start(goal())
        .await;
    assert_eq!(run.outcome().unwrap().results()[0].id.as_ref(), "fine");
    assert_eq!(model.requests().len(), 6);
}

/// A70, A22
#[tokio::test]
async fn a_plan_about_which_nobody_decides_in_time_fails_the_project() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, model) = worker(answers);
    let hour = scenario(&approved(&planner, &worker), &planner, &worker).start(goal()).await;
    assert_eq!((failed(&hour), hour.elapsed()), (&ProjectFailure::Unapproved, Duration::from_hours(1)));
    assert_eq!(hour.executions("approval_expired"), 1);
    let project =
        builder(&planner, &worker).approve_plan().approval_expires(Duration::from_secs(5)).build().unwrap();
    let soon = scenario(&project, &planner, &worker).start(goal()).await;
    assert_eq!((failed(&soon), soon.elapsed()), (&ProjectFailure::Unapproved, Duration::from_secs(5)));
    assert!(model.requests().is_empty());
}

/// A70, A23
#[tokio::test]
async fn edited_tasks_run_instead_and_unfit_ones_leave_the_request_open() {
    let (planner, model) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(answers);
    let project = approved(&planner, &worker);
    let engine = Engine::builder().project(project.clone()).build().unwrap();
    let mut run = ProjectRun::start(&engine, &project, "Release 2.0").await.unwrap();
    while let Some(item) = run.next().await {
        if let ProjectShown::PlanProposed(pending) = item {
            let task = |id: &str| PlanTask::new(id, "Title", id);
            let unfit = pending.edit([task("x").after(["y"])]).await.unwrap_err();
            assert!(matches!(&unfit, AnswerError::Plan(error) if error.problems.len() == 1), "{unfit:?}");
            assert!(run.plan().await.unwrap().is_some());
            pending.edit([task("x"), task("y").after(["x"])]).await.unwrap();
            assert!(pending.approve().await.is_err(), "it was answered");
        }
    }
    let outcome = run.outcome().await.unwrap();
    let ids: Vec<&str> = outcome.results().iter().map(|result| &*result.id).collect();
    assert_eq!((ids, model.requests().len()), (vec!["x", "y"], 1));
}

/// A70, A23
#[tokio::test]
async fn unfit_tasks_of_another_front_end_go_to_the_planner_with_their_problems() {
    let (planner, model) = planner([plan([task("one", &[])]), plan([task("two", &[])])]);
    let (worker, _) = worker(answers);
    let project = approved(&planner, &worker);
    let run = scenario(&project, &planner, &worker)
        .reply_json("project.approve_plan", |asked| match asked["plan"]["tasks"][0]["id"].as_str() {
            Some("one") => json!({ "decision": "edit", "tasks": [task("x", &["y"])] }),
            _ => json!({ "decision": "approve" }),
        })
        .start(goal())
        .await;
    assert_eq!(run.outcome().unwrap().results()[0].id.as_ref(), "two");
    let again = model.requests()[1].messages[0].text().into_owned();
    assert!(again.contains("a person edited the tasks") && again.contains("`x` depends on `y`"), "{again}");
}

/// A18
#[tokio::test]
async fn decisions_about_a_plan_and_the_reason_of_a_cancel_have_no_secret() {
    use workflow_core::store::EventStore as _;

    const KEY: &str = "sk-4711-secret";
    let (planner, _) = planner([plan([task("a", &[])])]);
    let asking =
        ScriptedModel::respond(|_| ScriptedReply::call("1", "ask_user", json!({ "question": "Which?" })));
    let worker = Agent::builder("worker").model(asking).ask_user().secret(Secret::new("bank", KEY));
    let project = approved(&planner, &worker.build().unwrap());
    let store = Arc::new(workflow_core::store::MemoryStore::default());
    let engine = Engine::builder().project(project.clone()).store(Arc::clone(&store)).build().unwrap();
    let options = workflow_core::RunOptions::new().id("r");
    let mut run = ProjectRun::start_with(&engine, &project, "Release 2.0", options).await.unwrap();
    let mut proposed = 0;
    loop {
        match run.next().await.unwrap() {
            ProjectShown::PlanProposed(pending) => {
                proposed += 1;
                let with_key = PlanTask::new("x", format!("Pay with {KEY}"), format!("The key is {KEY}."));
                let decision = match proposed {
                    1 => PlanDecision::Reject { reason: Some(format!("it uses {KEY}")) },
                    2 => PlanDecision::Edit { tasks: vec![with_key.clone().after([KEY])] },
                    3 => {
                        pending.reject(format!("it still uses {KEY}")).await.unwrap();
                        continue;
                    }
                    _ => PlanDecision::Edit { tasks: vec![with_key] },
                };
                pending.decide(decision).await.unwrap();
            }
            ProjectShown::Question(_) => break,
            _ => {}
        }
    }
    assert_eq!(proposed, 4);
    run.cancel(format!("nobody knows {KEY}")).await.unwrap();
    run.outcome().await.unwrap_err();
    let records = store.read(run.id(), workflow_core::store::Position::default(), 1_000).await.unwrap();
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains(KEY), "{text}");
    for kept in
        ["it uses [secret bank]", "it still uses", "Pay with [secret bank]", "nobody knows [secret bank]"]
    {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

/// A70
#[tokio::test]
async fn a_project_in_memory_says_that_it_needs_people() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(|_| ScriptedReply::call("1", "ask_user", json!({ "question": "Which?" })));
    let error = approved(&planner, &worker).run("Release 2.0").await.unwrap_err();
    assert!(matches!(&error, ProjectError::NeedsPeople { request } if request == "the plan"), "{error:?}");

    let model =
        ScriptedModel::respond(|_| ScriptedReply::call("1", "ask_user", json!({ "question": "Which?" })));
    let asking = Agent::builder("worker").model(model).ask_user().build().unwrap();
    let error = builder(&planner, &asking).build().unwrap().run("Release 2.0").await.unwrap_err();
    assert!(matches!(&error, ProjectError::NeedsPeople { request } if request == "`ask_user`"), "{error:?}");
}
