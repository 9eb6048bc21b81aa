use super::*;
use workflow_agent::entry::FailureClass;
use workflow_agent::model::ModelError;
use workflow_agent::{GoalError, PlanProblem, ProjectError, ProjectFailure, ProjectProblem, StopReason};

fn failure(error: ProjectError) -> ProjectFailure {
    match error {
        ProjectError::Failed(failed) => failed.reason,
        error => panic!("{error:?}"),
    }
}

/// A70
#[tokio::test]
async fn a_plan_with_problems_goes_back_to_the_planner_which_sees_them_all() {
    let bad = plan([task("a", &["b"]), task("b", &["c"]), task("c", &["b"]), task("c", &["nowhere"])]);
    let (planner, model) = planner([bad, plan([task("good", &[])])]);
    let (worker, _) = worker(answers);
    let done = builder(&planner, &worker).build().unwrap().run("Release 2.0").await.unwrap();
    assert_eq!(done.text("good"), Some("result of good"));

    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    let (first, second) = (requests[0].messages[0].text(), requests[1].messages[0].text());
    assert!(first.contains("<data source=\"goal\">\nRelease 2.0\n</data>"), "{first}");
    assert!(!first.contains("problems"), "{first}");
    for problem in ["two tasks have the id `c`", "`c` depends on `nowhere`, which is no task", "Title of a"] {
        assert!(second.contains(problem), "{second}");
    }
}

/// A70
#[tokio::test]
async fn a_plan_that_stays_unusable_fails_the_project_after_two_returns() {
    let circle = |name: &str| plan([task(name, &["x"]), task("x", &[name])]);
    let (planner, model) =
        planner([circle("one"), circle("two"), circle("three"), plan([task("late", &[])])]);
    let (worker, tasks) = worker(answers);
    let error = builder(&planner, &worker).build().unwrap().run("Release 2.0").await.unwrap_err();
    assert!(error.to_string().contains("in a circle: `three` → `x` → `three`"), "{error}");
    let ProjectFailure::Plan { plans: 3, error } = failure(error) else { panic!() };
    assert_eq!(error.problems, [PlanProblem::Cycle { ids: vec!["three".into(), "x".into()] }]);
    assert_eq!((model.requests().len(), tasks.requests().len()), (3, 0));
}

/// A70
#[test]
fn each_problem_of_a_plan_is_found_and_named() {
    let of =
        |tasks: Vec<PlanTask>, strategy| Plan::new(tasks).check(strategy).err().map(|error| error.problems);
    let new = |id: &str| PlanTask::new(id, "Title", "Do it.");
    assert_eq!(of(vec![new("a"), new("b").after(["a", "a"])], Strategy::Dag), None);
    assert_eq!(of(vec![], Strategy::Dag), Some(vec![PlanProblem::NoTasks]));
    let many = |count: usize| (0..count).map(|number| new(&format!("t{number}"))).collect::<Vec<_>>();
    assert_eq!(of(many(100), Strategy::Parallel), None);
    let too_many = Some(vec![PlanProblem::TooManyTasks { tasks: 101, limit: 100 }]);
    assert_eq!(of(many(101), Strategy::Dag), too_many);
    let depends = |id: &str| PlanProblem::DependsInParallel { id: id.into() };
    assert_eq!(of(vec![new("a"), new("b").after(["a"])], Strategy::Parallel), Some(vec![depends("b")]));
    assert_eq!(of(vec![new("a"), new("b").after(["a"])], Strategy::Sequential), None);
    let own = Some(vec![PlanProblem::Cycle { ids: vec!["a".into()] }]);
    assert_eq!(of(vec![new("a").after(["a"])], Strategy::Dag), own);
    assert_eq!(of(vec![new("a b")], Strategy::Dag), Some(vec![PlanProblem::Id { id: "a b".into() }]));
    let long = PlanTask::new("a", "t".repeat(301), "p".repeat(64 * 1024 + 1));
    assert_eq!(of(vec![long], Strategy::Dag).unwrap().len(), 2);
    let empty = of(vec![PlanTask::new("a", "", " ")], Strategy::Dag);
    assert_eq!(empty, Some(vec![PlanProblem::EmptyPrompt { id: "a".into() }]));
    let repeated = vec![new("a"), new("a"), new("b").after(["c"])];
    let unknown = PlanProblem::UnknownDependency { id: "b".into(), depends_on: "c".into() };
    assert_eq!(of(repeated, Strategy::Dag), Some(vec![PlanProblem::RepeatedId { id: "a".into() }, unknown]));
    let circle =
        vec![new("free"), new("a").after(["free", "b"]), new("b").after(["c"]), new("c").after(["b"])];
    assert_eq!(
        of(circle, Strategy::Dag),
        Some(vec![PlanProblem::Cycle { ids: vec!["b".into(), "c".into()] }])
    );
    let worst = (0..100).map(|_| new("a").after(["x", "y"])).collect();
    assert_eq!(of(worst, Strategy::Dag).unwrap().len(), 20, "an error lists 20 problems at most");
}

/// A70
#[tokio::test]
async fn depends_on_goes_back_to_the_planner_under_parallel() {
    let (planner, model) = planner([plan([task("a", &[]), task("b", &["a"])]), plan([task("c", &[])])]);
    let (worker, _) = worker(answers);
    let project = builder(&planner, &worker).strategy(Strategy::Parallel).build().unwrap();
    assert!(project.run("Release 2.0").await.unwrap().text("c").is_some());
    assert!(model.requests()[1].messages[0].text().contains("task `b` has `depends_on`"));
}

/// A70, A33
#[tokio::test]
async fn a_planner_that_stops_ends_the_project_with_its_reason() {
    let model = ScriptedModel::new([ScriptedReply::fail(ModelError::permanent("no key"))]);
    let planner = Agent::builder("planner").model(model).build().unwrap();
    let (worker, _) = worker(answers);
    let error = builder(&planner, &worker).build().unwrap().run("Release 2.0").await.unwrap_err();
    let ProjectFailure::Planner { reason: StopReason::Failed { error, .. } } = failure(error) else {
        panic!()
    };
    assert!(error.contains("no key"), "{error}");
}

/// A70
#[tokio::test]
async fn a_goal_has_text_and_a_bound() {
    let (planner, model) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(answers);
    let project = builder(&planner, &worker).build().unwrap();
    assert!(matches!(project.run(" \n").await, Err(ProjectError::Goal(GoalError::Empty))));
    let long = "x".repeat(512 * 1024 + 1);
    let too_long = project.run(&*long).await;
    assert!(matches!(
        too_long,
        Err(ProjectError::Goal(GoalError::TooLong { bytes: 524_289, limit: 524_288 }))
    ));
    assert!(model.requests().is_empty());

    // The start event of another front end is checked by the run.
    let run = scenario(&project, &planner, &worker).start(ProjectGoal::new("")).await;
    let ProjectOutcome::Failed(failed) = run.outcome().unwrap() else { panic!() };
    assert!(failed.reason.to_string().contains("the goal is empty"), "{}", failed.reason);

    // The longest goal fits into the prompts of planner and workers, marks and escapes included.
    let done = project.run("<data".repeat(512 * 1024 / 5)).await.unwrap();
    assert_eq!(done.text("a"), Some("result of a"));
}

/// A70
#[test]
fn every_mistake_of_a_project_is_reported_at_once() {
    let model = || ScriptedModel::new([]);
    let leaf = |name: &str| Agent::builder(name).identity("You help.").model(model());
    let three = leaf("c").build().unwrap();
    let two = leaf("b").sub_agent(three).build().unwrap();
    let one = leaf("a").sub_agent(two).build().unwrap();
    let deep = leaf("top").sub_agent(one.clone()).build().unwrap();
    let error = Project::builder("a/b").worker(deep).max_parallel(0).approval_expires(Duration::ZERO).build();
    let error = error.unwrap_err();
    assert_eq!(
        error.problems,
        [
            ProjectProblem::Name { name: "a/b".into() },
            ProjectProblem::MaxParallel { value: 0, limit: 100 },
            ProjectProblem::NoTimeForPeople,
            ProjectProblem::TooDeep { role: "worker", depth: 3, limit: 2 },
            ProjectProblem::NoPlanner,
        ]
    );
    let error = Project::builder("p").planner(one.clone()).build().unwrap_err();
    assert_eq!(error.to_string(), "project `p` cannot be built: it has no worker: call `worker`");
    assert!(Project::builder("p").planner(one.clone()).worker(one).build().is_ok());
}

/// A9, A73
#[tokio::test]
async fn a_planner_that_the_engine_does_not_host_ends_the_project_with_an_outcome() {
    let (planner, _) = planner([plan([task("a", &[])])]);
    let (worker, _) = worker(answers);
    let project = builder(&planner, &worker).build().unwrap();
    let run = Scenario::new(project).host_named("Project.worker", worker).start(goal()).await;
    let ProjectOutcome::Failed(failed) = run.outcome().unwrap() else { panic!() };
    let ProjectFailure::Failed { class: FailureClass::Permanent, error } = &failed.reason else { panic!() };
    assert!(error.contains("Project.planner") && failed.results.is_empty(), "{error}");
}
