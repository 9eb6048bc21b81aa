use std::fmt::Write as _;

use super::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{ApprovePlan, PlanDecision, Secret};
use workflow_core::RunOptions;
use workflow_core::store::MemoryStore;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// An agent that calls a tool which needs an approval, and then asks the user.
fn asking(name: &str) -> Agent {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "deploy", json!({})),
        3 => ScriptedReply::call("2", "ask_user", json!({ "question": "Where to?" })),
        _ => ScriptedReply::text(request.messages.last().unwrap().text()),
    });
    let tool =
        FnTool::new("deploy", "Deploys.", |_: NoArguments, _| async { Ok::<_, ToolError>("ok".to_owned()) });
    let agent = Agent::builder(name).identity("You help.").model(model);
    agent.tool(tool.approval(Approval::Always)).ask_user().build().unwrap()
}

/// An agent that lets its sub-agent work.
fn delegating(name: &str, to: Agent) -> Agent {
    let tasks = json!({ "tasks": [{ "agent": to.name(), "task": "Do it." }] });
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 => ScriptedReply::call("1", "spawn_sub_agent", tasks.clone()),
        _ => ScriptedReply::text(request.messages.last().unwrap().text()),
    });
    Agent::builder(name).identity("You help.").model(model).sub_agent(to).build().unwrap()
}

/// A24, A73, A25
#[tokio::test]
async fn approvals_and_questions_of_tasks_and_their_sub_agents_come_through_the_stream_and_take_answers() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let worker = delegating("worker", delegating("middle", asking("leaf")));
    let project = builder(&planner, &worker).build().unwrap();
    let engine = Engine::builder().project(project.clone()).build().unwrap();
    let options = RunOptions::new().id("r");
    let mut run = ProjectRun::start_with(&engine, &project, "Release 2.0", options).await.unwrap();
    let (mut asked, mut agents) = (Vec::new(), Vec::new());
    while let Some(item) = run.next().await {
        match item {
            ProjectShown::Approval(approval) => {
                asked.push((approval.run().clone(), approval.tool().to_owned()));
                approval.approve().await.unwrap();
            }
            ProjectShown::Question(question) => {
                asked.push((question.run().clone(), question.question().to_owned()));
                question.answer("to Bern").await.unwrap();
            }
            ProjectShown::Agent { task, run, item } => {
                if matches!(&*item, Shown::Done(_)) {
                    agents.push((task.map(|task| task.to_string()), run.to_string()));
                }
            }
            _ => {}
        }
    }
    let leaf = asked[0].0.to_string();
    let levels: Vec<&str> = leaf.split('/').map(|part| part.split('-').next().unwrap()).collect();
    assert_eq!(levels, ["r", "work", "spawn", "spawn"]);
    let middle = leaf.rsplit_once('/').unwrap().0;
    let leaf = leaf.as_str();
    assert_eq!(asked, [(leaf.into(), "deploy".to_owned()), (leaf.into(), "Where to?".to_owned())]);
    let of_task = |run: &str| (Some("a".to_owned()), run.to_owned());
    assert_eq!(
        agents,
        [
            (None, "r/plan-x1.plan".to_owned()),
            of_task(leaf),
            of_task(middle),
            of_task(middle.rsplit_once('/').unwrap().0),
        ]
    );
    assert!(run.outcome().await.unwrap().results()[0].text.contains("to Bern"));
}

/// A18
#[tokio::test]
async fn secrets_of_both_agents_do_not_enter_the_project_by_goals_plans_reasons_edits_and_results() {
    let secrets = ["planner-4711", "worker-4711"];
    let say = secrets.join(" ");
    let leaking = plan([json!({ "id": "a", "title": say, "prompt": say, "depends_on": [] })]);
    let model = ScriptedModel::respond(move |_| ScriptedReply::call("1", "final_answer", leaking.clone()));
    let planner = Agent::builder("planner").model(model.clone());
    let planner = planner.secret(Secret::new("of_planner", secrets[0])).build().unwrap();
    let words = say.clone();
    let tasks = ScriptedModel::respond(move |_| ScriptedReply::text(words.clone()));
    let worker = Agent::builder("worker").model(tasks.clone());
    let worker = worker.secret(Secret::new("of_worker", secrets[1])).build().unwrap();
    let project = approved(&planner, &worker);

    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().project(project.clone()).store(Arc::clone(&store)).build().unwrap();
    let mut run = ProjectRun::start(&engine, &project, &*say).await.unwrap();
    let mut plans = 0;
    let mut shown = String::new();
    while let Some(item) = run.next().await {
        if let ProjectShown::PlanProposed(pending) = &item {
            plans += 1;
            match plans {
                1 => pending.reject(&*say).await.unwrap(),
                _ => pending.edit([PlanTask::new("b", &*say, &*say)]).await.unwrap(),
            }
        }
        // The runs of planner and worker know their own secret each.
        if !matches!(item, ProjectShown::Agent { .. }) {
            writeln!(shown, "{item:?}").unwrap();
        }
    }
    assert_eq!(
        run.outcome().await.unwrap().results()[0].text.as_ref(),
        "[secret of_planner] [secret of_worker]"
    );
    for logged in &run.handle().report().await.unwrap().log {
        let json = logged.value.as_json().map_or_else(String::new, ToString::to_string);
        writeln!(shown, "{logged:?} {json}").unwrap();
    }
    for request in model.requests().iter().chain(&tasks.requests()) {
        shown += &request.messages[0].text();
    }
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(shown.matches("[secret of_worker]").count() > 8, "{shown}");
}

fn approved(planner: &Agent, worker: &Agent) -> Project {
    builder(planner, worker).approve_plan().build().unwrap()
}

/// A18
#[tokio::test]
async fn the_goal_of_another_front_end_reaches_agents_without_secrets() {
    let (planner, model) = planner([plan([task("a", &[])])]);
    let tasks = ScriptedModel::respond(|_| ScriptedReply::text("done"));
    let worker = Agent::builder("worker").model(tasks.clone()).secret(Secret::new("key", "worker-4711"));
    let worker = worker.build().unwrap();
    let project = approved(&planner, &worker);
    let mut is_first = true;
    let run = scenario(&project, &planner, &worker)
        .reply(move |_: &ApprovePlan| {
            if std::mem::take(&mut is_first) {
                return PlanDecision::Reject { reason: Some("not worker-4711".into()) };
            }
            PlanDecision::Approve
        })
        .start(ProjectGoal::new("use worker-4711"))
        .await;
    assert!(matches!(run.outcome().unwrap(), ProjectOutcome::Done(_)));
    for request in model.requests().iter().chain(&tasks.requests()) {
        let text = request.messages[0].text();
        assert!(text.contains("use [secret key]") && !text.contains("4711"), "{text}");
    }
    assert!(model.requests()[1].messages[0].text().contains("not [secret key]"));
}

/// A73
#[tokio::test]
async fn several_projects_and_agents_share_an_engine_and_an_agent_works_for_both() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(answers);
    let named =
        |name: &str| Project::builder(name).planner(planner.clone()).worker(worker.clone()).build().unwrap();
    let (one, two) = (named("one"), named("two"));
    let engine =
        Engine::builder().project(one.clone()).project(two.clone()).agent(worker.clone()).build().unwrap();
    for project in [one, two] {
        let run = ProjectRun::start(&engine, &project, "Release 2.0").await.unwrap();
        assert!(matches!(run.outcome().await.unwrap(), ProjectOutcome::Done(_)));
        let report = run.handle().report().await.unwrap();
        let workflows: Vec<_> =
            report.children.iter().map(|child| child.child.workflow.to_string()).collect();
        assert_eq!(workflows, [format!("{}.planner", project.name()), format!("{}.worker", project.name())]);
    }
    assert!(matches!(
        worker.start(&engine, "a").await.unwrap().outcome().await.unwrap(),
        Outcome::Answered(_)
    ));
}

/// A73
#[tokio::test]
async fn a_cancelled_project_ends_with_its_tasks_and_without_an_outcome() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let worker = asking("worker");
    let project = builder(&planner, &worker).build().unwrap();
    let engine = Engine::builder().project(project.clone()).store(MemoryStore::default()).build().unwrap();
    let mut run = ProjectRun::start(&engine, &project, "Release 2.0").await.unwrap();
    let mut last = None;
    while let Some(item) = run.next().await {
        if let ProjectShown::Approval(approval) = &item {
            run.cancel("enough").await.unwrap();
            let task = engine.attach::<Agent>(approval.run().clone()).await.unwrap();
            assert!(task.outcome().await.is_err());
        }
        last = Some(item);
    }
    assert!(matches!(last, Some(ProjectShown::Ended(workflow_core::RunStatus::Cancelled))), "{last:?}");
    assert!(run.outcome().await.is_err());
}
