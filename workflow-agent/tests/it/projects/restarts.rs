use super::*;
use workflow_agent::{ApprovePlan, PlanDecision};
use workflow_core::RunOptions;
use workflow_core::store::MemoryStore;
use workflow_testkit::{Confirms, crash_everywhere};

/// A73, A70
#[tokio::test]
async fn a_crash_at_any_write_repeats_nothing_that_had_finished() {
    let crashes = crash_everywhere(|store| {
        let (planner, _) = planner([
            plan([task("x", &["x"])]),
            plan([task("a", &[]), task("bad", &[]), task("c", &["a"]), task("lost", &["bad"])]),
        ]);
        let (worker, _) = worker(|task| match task {
            "bad" => ScriptedReply::fail(workflow_agent::model::ModelError::permanent("no key")),
            task => answers(task),
        });
        let project = builder(&planner, &worker).approve_plan().build().unwrap();
        scenario(&project, &planner, &worker)
            .engine(|engine| engine.store(store))
            .reply(|_: &ApprovePlan| PlanDecision::Approve)
            .start(goal())
    });
    // Every event of the log, every execution and every child run is as without the crash.
    let survived = crashes
        .assert(|run| run.executions("work") == 3 && run.executions("plan") == 2)
        .confirming([Confirms::AtOnce, Confirms::Late])
        .pairs(5)
        .await;
    assert!(survived.once() > 50, "{survived}");
}

/// A72
#[tokio::test]
async fn a_crash_at_any_write_begins_no_further_run_of_a_task() {
    let crashes = crash_everywhere(|store| {
        let (planner, _) = planner([plan([task("a", &[])])]);
        let tool = workflow_agent::tool::FnTool::new("deploy", "Deploys.", |_: NoArguments, _| async {
            Err::<String, _>(ToolError::fatal("the disk is full"))
        });
        let model = ScriptedModel::respond(|_| ScriptedReply::call("1", "deploy", json!({})));
        let worker = Agent::builder("worker").model(model).tool(tool.idempotent()).build().unwrap();
        let project = builder(&planner, &worker).build().unwrap();
        scenario(&project, &planner, &worker).engine(|engine| engine.store(store)).start(goal())
    });
    let survived = crashes
        .assert(|run| run.executions("work") == 3)
        .confirming([Confirms::AtOnce, Confirms::Late])
        .pairs(5)
        .await;
    assert!(survived.once() > 30, "{survived}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// A24, A73
#[tokio::test]
async fn after_a_restart_viewers_see_the_states_and_the_plan_still_waits() {
    let (planner, _) = planner([plan([task("a", &[]), task("b", &[])])]);
    let asking = ScriptedModel::respond(|request| match request.messages.len() {
        1 if first_line(request) == "a" => {
            ScriptedReply::call("1", "ask_user", json!({ "question": "Which?" }))
        }
        _ => ScriptedReply::text(request.messages.last().unwrap().text()),
    });
    let worker = Agent::builder("worker").model(asking.clone()).ask_user().build().unwrap();
    let project = builder(&planner, &worker).approve_plan().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let hosting = |project: &Project| {
        Engine::builder().project(project.clone()).store(Arc::clone(&store)).build().unwrap()
    };

    let engine = hosting(&project);
    let options = RunOptions::new().id("r");
    let mut run = ProjectRun::start_with(&engine, &project, "Release 2.0", options).await.unwrap();
    while !matches!(run.next().await.unwrap(), ProjectShown::PlanProposed(_)) {}
    engine.shut_down(Duration::from_secs(10)).await;

    let engine = hosting(&project);
    let mut run = ProjectRun::attach(&engine, &project, "r").await.unwrap();
    let mut seen = Vec::new();
    loop {
        match run.next().await.unwrap() {
            ProjectShown::PlanProposed(pending) => pending.approve().await.unwrap(),
            ProjectShown::TaskStatus(task) => seen.push(said(&task)),
            _ => {}
        }
        if seen.last().is_some_and(|state| state == "b completed") {
            break;
        }
    }
    assert_eq!(seen, ["a pending", "b pending", "a in_progress", "b in_progress", "b completed"]);
    engine.shut_down(Duration::from_secs(10)).await;

    // The same project with other rules: those of the log count, so no task begins twice.
    let project = builder(&planner, &worker).approve_plan().max_parallel(1).strategy(Strategy::Sequential);
    let project = project.build().unwrap();
    let engine = hosting(&project);
    let mut run = ProjectRun::attach(&engine, &project, "r").await.unwrap();
    let mut seen = Vec::new();
    while let Some(item) = run.next().await {
        match item {
            ProjectShown::Question(question) => question.answer("the blue one").await.unwrap(),
            ProjectShown::TaskStatus(task) => seen.push(said(&task)),
            _ => {}
        }
    }
    assert_eq!(seen, ["a in_progress", "b completed", "a completed"]);
    assert!(run.outcome().await.unwrap().results()[0].text.contains("the blue one"));
    assert_eq!(asking.requests().iter().filter(|request| first_line(request) == "b").count(), 1);

    // An ended run still shows its states.
    let mut run = ProjectRun::attach(&engine, &project, "r").await.unwrap();
    let first = run.next().await.unwrap();
    assert!(matches!(&first, ProjectShown::TaskStatus(task) if said(task) == "a completed"), "{first:?}");
}

/// A73
#[tokio::test]
async fn a_project_that_completed_in_an_earlier_process_shows_its_outcome_once() {
    for has_failed in [false, true] {
        let (planner, _) = planner([plan([task("a", &[])])]);
        let (worker, _) = worker(move |task| {
            if has_failed {
                ScriptedReply::fail(workflow_agent::model::ModelError::permanent("no key"))
            } else {
                answers(task)
            }
        });
        let project = builder(&planner, &worker).build().unwrap();
        let store = Arc::new(MemoryStore::default());
        let host = || Engine::builder().project(project.clone()).store(Arc::clone(&store)).build().unwrap();
        let engine = host();
        let options = RunOptions::new().id("r");
        let run = ProjectRun::start_with(&engine, &project, "Release 2.0", options).await.unwrap();
        let outcome = run.outcome().await.unwrap();
        let here = ProjectRun::attach(&engine, &project, "r").await.unwrap();
        engine.shut_down(Duration::from_secs(10)).await;
        let there = ProjectRun::attach(&host(), &project, "r").await.unwrap();
        for run in [run, here, there] {
            let shown: Vec<ProjectShown> = run.collect().await;
            let ends: Vec<&ProjectShown> = shown
                .iter()
                .filter(|item| matches!(item, ProjectShown::Done(_) | ProjectShown::Ended(_)))
                .collect();
            assert!(matches!(&ends[..], [ProjectShown::Done(done)] if *done == outcome), "{ends:?}");
            assert!(matches!(shown.last(), Some(ProjectShown::Done(_))), "the outcome is the last item");
        }
    }
}
