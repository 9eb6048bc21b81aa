use super::*;
use workflow_agent::entry::FailureClass;
use workflow_agent::model::{ModelError, Usage};
use workflow_agent::tool::FnTool;
use workflow_agent::{ProjectFailed, ProjectFailure, TaskState};

fn failed(run: &workflow_testkit::TestRun<Project>) -> &ProjectFailed {
    match run.outcome().unwrap() {
        ProjectOutcome::Failed(failed) => failed,
        outcome @ ProjectOutcome::Done(_) => panic!("{outcome:?}"),
        _ => unreachable!(),
    }
}

/// A worker whose tool fails for good in its first `failing` runs.
fn with_tool(failing: usize) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "deploy", json!({})).usage(Usage::new(10, 1)),
        _ => ScriptedReply::text("deployed").usage(Usage::new(10, 1)),
    });
    let calls = Arc::new(Mutex::new(0));
    let tool = FnTool::new("deploy", "Deploys.", move |_: NoArguments, _| {
        let calls = Arc::clone(&calls);
        async move {
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            if *calls <= failing { Err(ToolError::fatal("the disk is full")) } else { Ok("ok".to_owned()) }
        }
    });
    let agent = Agent::builder("worker").model(model.clone()).tool(tool).build().unwrap();
    (agent, model)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// A72, A33
#[tokio::test]
async fn a_task_whose_tool_failed_begins_anew_twice() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, model) = with_tool(2);
    let project = builder(&planner, &worker).build().unwrap();
    let run = scenario(&project, &planner, &worker).start(goal()).await;
    let ProjectOutcome::Done(done) = run.outcome().unwrap() else { panic!() };
    assert_eq!(done.text("a"), Some("deployed"));
    assert_eq!(states(&run.report().log), ["a pending", "a in_progress", "a completed"]);
    let children = run.report().children.iter().filter(|child| &*child.child.workflow == "Project.worker");
    assert_eq!((children.count(), model.requests().len()), (3, 4));
    // Three first turns, an answer, and a planner whose usage is estimated.
    let usage = done.usage;
    assert!(usage.input > 40 && usage.output > 4 && usage.estimated, "{usage:?}");
    assert!(done.cost > 0.0);
}

/// A72
#[tokio::test]
async fn the_third_failure_of_a_tool_is_the_failure_of_its_task() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, model) = with_tool(3);
    let project = builder(&planner, &worker).build().unwrap();
    let run = scenario(&project, &planner, &worker).start(goal()).await;
    let result = &failed(&run).results[0];
    let failure = result.failure.as_ref().unwrap();
    assert_eq!((result.status, failure.class), (TaskState::Failed, FailureClass::Tool));
    assert!(failure.error.contains("the disk is full"), "{}", failure.error);
    assert_eq!(model.requests().len(), 3);
}

/// A72, A73
#[tokio::test]
async fn each_other_class_is_retried_in_no_second_place_and_is_in_the_failure() {
    // Class, calls of the model by `think`, seconds that these wait for.
    type Class = (fn() -> ModelError, FailureClass, usize, u64);
    let classes: [Class; 3] = [
        (|| ModelError::permanent("no key"), FailureClass::Permanent, 1, 0),
        (|| ModelError::unusable("nonsense"), FailureClass::Model, 2, 10),
        (|| ModelError::transient("busy"), FailureClass::Transient, 4, 130),
    ];
    for (error, class, calls, seconds) in classes {
        let (planner, _) = planner([plan([task("a", &[])])]);
        let (worker, model) = worker(move |_| ScriptedReply::fail(error()));
        let project = builder(&planner, &worker).build().unwrap();
        let run = scenario(&project, &planner, &worker).start(goal()).await;
        let failure = failed(&run).results[0].failure.clone().unwrap();
        assert_eq!((failure.class, model.requests().len()), (class, calls), "{failure:?}");
        assert_eq!(run.elapsed(), Duration::from_secs(seconds));
        let statuses = run.emitted::<workflow_agent::TaskStatus>();
        assert_eq!(statuses.last().unwrap().class, Some(class));
    }
}

/// A72
#[tokio::test]
async fn a_rejected_task_is_not_repeated() {
    let tool =
        FnTool::new("deploy", "Deploys.", |_: NoArguments, _| async { Ok::<_, ToolError>("ok".to_owned()) });
    let model = ScriptedModel::respond(|_| ScriptedReply::call("1", "deploy", json!({})));
    let worker = Agent::builder("worker")
        .model(model.clone())
        .tool(tool.approval(Approval::Always))
        .on_rejection(workflow_agent::OnRejection::Stop)
        .build()
        .unwrap();
    let (planner, _) = planner([plan([task("a", &[])])]);
    let project = builder(&planner, &worker).build().unwrap();
    let engine = Engine::builder().project(project.clone()).build().unwrap();
    let mut run = ProjectRun::start(&engine, &project, "Release 2.0").await.unwrap();
    let mut rejected = 0;
    while let Some(shown) = run.next().await {
        if let ProjectShown::Approval(approval) = shown {
            approval.reject("no").await.unwrap();
            rejected += 1;
        }
    }
    let outcome = run.outcome().await.unwrap();
    assert_eq!(outcome.results()[0].failure.as_ref().unwrap().class, FailureClass::Rejected);
    assert_eq!((rejected, model.requests().len()), (1, 1));
}

/// A73
#[tokio::test]
async fn tasks_behind_a_failed_one_are_skipped_and_the_others_continue() {
    let (planner, _) = planner([plan([
        task("bad", &[]),
        task("behind", &["bad"]),
        task("far", &["behind", "good"]),
        task("good", &[]),
        task("next", &["good"]),
    ])]);
    let (worker, model) = worker(|task| match task {
        "bad" => ScriptedReply::fail(ModelError::permanent("no key")).after(Duration::from_secs(1)),
        task => answers(task).after(Duration::from_secs(2)),
    });
    let project = builder(&planner, &worker).build().unwrap();
    let run = scenario(&project, &planner, &worker).start(goal()).await;
    assert_eq!(
        states(&run.report().log),
        [
            "bad pending",
            "behind pending",
            "far pending",
            "good pending",
            "next pending",
            "bad in_progress",
            "good in_progress",
            "bad failed",
            "behind skipped",
            "far skipped",
            "good completed",
            "next in_progress",
            "next completed",
        ]
    );
    let failed = failed(&run);
    assert_eq!(failed.reason, ProjectFailure::Tasks { tasks: vec!["bad".into()] });
    assert_eq!(failed.reason.to_string(), "1 of the tasks failed: bad");
    let results: Vec<_> =
        failed.results.iter().map(|result| (&*result.id, result.status, &*result.text)).collect();
    assert_eq!(
        results,
        [
            ("bad", TaskState::Failed, ""),
            ("behind", TaskState::Skipped, ""),
            ("far", TaskState::Skipped, ""),
            ("good", TaskState::Completed, "result of good"),
            ("next", TaskState::Completed, "result of next"),
        ]
    );
    assert_eq!(model.requests().len(), 3);
}

/// A73
#[tokio::test]
async fn a_task_that_stops_with_text_fails_with_its_text() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let model = ScriptedModel::respond(|_| {
        ScriptedReply::text("half of it").finish(workflow_agent::model::Finish::Length)
    });
    let worker = Agent::builder("worker").model(model).build().unwrap();
    let project = builder(&planner, &worker).build().unwrap();
    let run = scenario(&project, &planner, &worker).start(goal()).await;
    let result = &failed(&run).results[0];
    assert_eq!(&*result.text, "half of it");
    assert_eq!(result.failure.as_ref().unwrap().class, FailureClass::Model);
}

/// A73
#[tokio::test]
async fn a_task_whose_agent_the_engine_does_not_host_fails_and_the_project_with_it() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(answers);
    let project = builder(&planner, &worker).build().unwrap();
    let run = Scenario::new(project).host_named("Project.planner", planner).start(goal()).await;
    let failure = failed(&run).results[0].failure.clone().unwrap();
    assert_eq!(failure.class, FailureClass::Permanent);
    assert!(failure.error.contains("Project.worker"), "{}", failure.error);
}
