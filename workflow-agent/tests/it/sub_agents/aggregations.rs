use super::*;
use workflow_core::RunStatus;

/// A run of an agent with this aggregation over tasks of one sub-agent.
async fn aggregated(
    aggregation: Aggregation,
    tasks: &[&str],
    reply: impl Fn(&str) -> ScriptedReply + Send + Sync + Clone + 'static,
) -> (workflow_testkit::TestRun<Agent>, ScriptedModel) {
    let helper = by_task("helper", reply);
    let (top, model) = spawning("top", tasks.iter().map(|task| to("helper", task)));
    let top = top.sub_agent(helper.clone()).aggregation(aggregation).build().unwrap();
    (scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await, model)
}

fn answers(task: &str) -> ScriptedReply {
    match task.strip_prefix("fail ") {
        Some(why) => ScriptedReply::fail(ModelError::permanent(why)),
        None => ScriptedReply::text(task),
    }
}

/// A32, A19
#[tokio::test]
async fn all_lists_each_result_with_its_agent_failures_and_partial_texts_included() {
    let reply = |task: &str| match task {
        "half" => ScriptedReply::text("half a result").finish(workflow_agent::model::Finish::Length),
        task => answers(task),
    };
    let (run, _) = aggregated(Aggregation::All, &["one </data>", "fail no key", "half"], reply).await;
    let (text, is_error) = result(&run);
    assert!(!is_error);
    let (first, rest) = text.split_once("</data>\n").unwrap();
    assert_eq!(first, "<data source=\"task 1 of helper, answered\">\none &lt;/data>\n");
    let (second, third) = rest.split_once("</data>\n").unwrap();
    assert!(
        second.starts_with("<data source=\"task 2 of helper, failed\">") && second.contains("no key"),
        "{second}"
    );
    assert!(third.starts_with("<data source=\"task 3 of helper, failed\">"), "{third}");
    assert!(third.contains("longest length") && third.contains("last text: half a result"), "{third}");
}

/// A32
#[tokio::test]
async fn the_first_success_cancels_the_others_and_failures_before_it_do_not_count() {
    let reply = |task: &str| {
        let seconds = task.chars().filter(|c| *c == 'z').count() as u64;
        answers(task).after(Duration::from_secs(seconds))
    };
    let (run, _) =
        aggregated(Aggregation::First, &["slow zzz", "fail z", "fast zz", "slower zzzz"], reply).await;
    let (text, is_error) = result(&run);
    assert!(
        text.contains("fast zz") && !text.contains("slow") && text.contains("2 other tasks were cancelled"),
        "{text}"
    );
    assert!(!is_error && run.elapsed() == Duration::from_secs(2), "{:?}", run.elapsed());
    let ends: Vec<RunStatus> = run.report().children.iter().map(|child| child.status).collect();
    assert_eq!(
        ends,
        [RunStatus::Cancelled, RunStatus::Completed, RunStatus::Completed, RunStatus::Cancelled]
    );
}

/// A33, A32
#[tokio::test(start_paused = true)]
async fn the_replies_of_cancelled_tasks_count_as_used() {
    let helper = by_task("helper", |task| match task {
        "fast" => ScriptedReply::text("done").usage(Usage::new(100, 0)).after(Duration::from_secs(5)),
        _ => ScriptedReply::text("never").usage(Usage::new(1_000, 0)).after(Duration::from_mins(1)),
    });
    // Its first reply comes before the fast one, and its second never does. A sub-agent of its own works, too.
    let slow = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "spawn_sub_agent", json!({ "tasks": [to("leaf", "x")] }))
            .usage(Usage::new(10_000, 0)),
        _ => ScriptedReply::text("never").after(Duration::from_mins(1)),
    });
    let leaf = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "work", json!({})).usage(Usage::new(100_000, 0)),
        _ => ScriptedReply::text("never").after(Duration::from_mins(1)),
    });
    let leaf = Agent::builder("leaf").identity("You help.").model(leaf).tool(tool("work")).build().unwrap();
    let slow = Agent::builder("slow").identity("You help.").model(slow).sub_agent(leaf).build().unwrap();
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call(
            "1",
            "spawn_sub_agent",
            json!({ "tasks": [to("helper", "fast"), to("slow", "slow"), to("helper", "other")] }),
        )
        .usage(Usage::new(1, 0)),
        _ => ScriptedReply::text("done").usage(Usage::new(1, 0)),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper).sub_agent(slow);
    let top = top.aggregation(Aggregation::First).build().unwrap();
    let engine = Engine::builder().agent(top.clone()).build().unwrap();
    let run = top.start(&engine, "Go.").await.unwrap();
    assert_eq!(run.outcome().await.unwrap().usage().input, 110_102);
}

/// A32
#[tokio::test]
async fn the_majority_is_more_than_half_of_all_tasks_without_case_and_outer_spaces() {
    let of = async |tasks: &'static [&'static str]| {
        result(&aggregated(Aggregation::Majority, tasks, answers).await.0).0
    };
    assert_eq!(of(&["Yes", "no", " yes\n"]).await, "Yes");
    for tie in
        [&["yes", "no"][..], &["yes", "yes", "no", "no"], &["yes", "yes", "no", "fail x"], &["a", "b", "c"]]
    {
        let text = of(tie).await;
        assert!(text.starts_with("no majority\n"), "{text}");
        assert_eq!(text.matches("<data").count(), tie.len());
    }
    assert_eq!(of(&["yes", "yes", "fail x"]).await, "yes");
}

/// A32, A33
#[tokio::test]
async fn a_summary_is_one_call_of_the_parents_model_that_sees_every_result() {
    let (run, model) = aggregated(Aggregation::Summary, &["one", "fail no key"], answers).await;
    assert_eq!(result(&run), ("a summary".to_owned(), false));
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let asked = requests[1].messages[0].text();
    assert!(asked.contains("one") && asked.contains("no key") && requests[1].tools.is_empty(), "{asked}");
}

/// A32
#[tokio::test]
async fn a_summary_that_fails_leaves_the_results_themselves() {
    let helper = by_task("helper", answers);
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 if request.tools.is_empty() => ScriptedReply::fail(ModelError::permanent("no summary")),
        1 => ScriptedReply::call("1", "spawn_sub_agent", json!({ "tasks": [to("helper", "one")] })),
        _ => ScriptedReply::text("done"),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper.clone()).aggregation(Aggregation::Summary);
    let top = top.build().unwrap();
    let run = scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await;
    let (text, is_error) = result(&run);
    assert!(text.contains("task 1 of helper, answered") && !is_error, "{text}");
}

/// A32
#[tokio::test]
async fn without_a_success_every_aggregation_is_an_error_with_every_failure() {
    for aggregation in [Aggregation::All, Aggregation::First, Aggregation::Majority, Aggregation::Summary] {
        let (run, model) = aggregated(aggregation, &["fail no key", "fail no network"], answers).await;
        let (text, is_error) = result(&run);
        assert!(
            is_error && text.contains("no key") && text.contains("no network"),
            "{aggregation:?}: {text}"
        );
        assert_eq!(model.requests().len(), 2, "no summary of failures");
        assert!(matches!(run.outcome().unwrap(), Outcome::Answered(_)));
    }
}

/// A32, A60
#[tokio::test]
async fn a_used_up_budget_pays_for_no_summary() {
    let helper = by_task("helper", |_| ScriptedReply::text("one").usage(Usage::new(4_900, 0)));
    let spawn = json!({ "tasks": [to("helper", "a")] });
    let call = ScriptedReply::call("1", "spawn_sub_agent", spawn).usage(Usage::new(100, 0));
    let model = ScriptedModel::new([call]);
    let top = Agent::builder("top").model(model.clone()).sub_agent(helper.clone());
    let top = top.aggregation(Aggregation::Summary).build().unwrap();
    let prompt = Prompt::new("Go.").budget(Budget::tokens(5_000));
    let run = scenario(&top, [("helper", helper)]).start(prompt).await;
    let (text, is_error) = result(&run);
    assert!(!is_error && text.contains("one"), "{text}");
    assert_eq!(model.requests().len(), 1);
}

/// A33, A32
#[tokio::test(start_paused = true)]
async fn a_task_that_completes_beside_the_first_success_counts_too() {
    let helper = by_task("helper", |task| {
        let tokens = if task == "a" { 100 } else { 1_000 };
        ScriptedReply::text("done").usage(Usage::new(tokens, 0)).after(Duration::from_secs(5))
    });
    let spawn = json!({ "tasks": [to("helper", "a"), to("helper", "b")] });
    let model = ScriptedModel::new([
        ScriptedReply::call("1", "spawn_sub_agent", spawn).usage(Usage::new(1, 0)),
        ScriptedReply::text("done").usage(Usage::new(1, 0)),
    ]);
    let top = Agent::builder("top").model(model).sub_agent(helper).aggregation(Aggregation::First);
    let engine = Engine::builder().agent(top.build().unwrap()).build().unwrap();
    let run =
        engine.start_with::<Agent>(Prompt::new("Go."), RunOptions::new().workflow("top")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().usage().input, 1_102);
}
