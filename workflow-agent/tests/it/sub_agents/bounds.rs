use super::*;
use workflow_agent::AgentProblem;
use workflow_testkit::{Confirms, crash_everywhere};

/// The model calls at a time, and the most so far.
#[derive(Clone, Default)]
struct Busy(Arc<Mutex<(usize, usize)>>);

/// A tool that counts its calls at a time.
fn counted(busy: &Busy) -> FnTool {
    let busy = busy.clone();
    let tool = FnTool::new("work", "Works.", move |_: NoArguments, _| {
        let busy = busy.clone();
        async move {
            {
                let mut busy = busy.0.lock().unwrap();
                busy.0 += 1;
                busy.1 = busy.1.max(busy.0);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            busy.0.lock().unwrap().0 -= 1;
            Ok::<_, ToolError>("ok".to_owned())
        }
    });
    tool.read_only()
}

fn working(name: &str, busy: &Busy) -> Agent {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "work", json!({})),
        _ => ScriptedReply::text("done"),
    });
    Agent::builder(name).identity("You help.").model(model).tool(counted(busy)).build().unwrap()
}

/// A31
#[tokio::test]
async fn eight_sub_agents_run_at_a_time_and_the_ninth_waits() {
    let busy = Busy::default();
    let helper = working("helper", &busy);
    let eight = json!({ "tasks": (0..8).map(|_| to("helper", "a")).collect::<Vec<_>>() });
    let two = json!({ "tasks": [to("helper", "a"), to("helper", "b")] });
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 => ScriptedReply::call("1", "spawn_sub_agent", eight.clone()).and_call(
            "2",
            "spawn_sub_agent",
            two.clone(),
        ),
        _ => ScriptedReply::text("done"),
    });
    let top = Agent::builder("top").model(model).sub_agent(helper.clone()).build().unwrap();
    let run = scenario(&top, [("helper", helper)]).start(Prompt::new("Go.")).await;
    assert!(matches!(run.outcome().unwrap(), Outcome::Answered(_)));
    assert_eq!(*busy.0.lock().unwrap(), (0, 8));
    assert_eq!((run.report().children.len(), run.elapsed()), (10, Duration::from_secs(2)));
}

/// Three levels of agents, each of which starts two of the next.
fn three_levels(busy: &Busy) -> (Agent, Vec<(&'static str, Agent)>) {
    let leaf = working("leaf", busy);
    let two = |name: &str, agent: &Agent| {
        let (builder, _) = spawning(name, [to(agent.name(), "a"), to(agent.name(), "b")]);
        builder.sub_agent(agent.clone()).build().unwrap()
    };
    let middle = two("middle", &leaf);
    let upper = two("upper", &middle);
    let top = two("top", &upper);
    (top, vec![("upper", upper), ("upper.middle", middle), ("upper.middle.leaf", leaf)])
}

/// A31
#[tokio::test]
async fn three_levels_end_with_a_single_permit() {
    for permits in [1, 2, 8] {
        let busy = Busy::default();
        let (top, below) = three_levels(&busy);
        let run = scenario(&top, below)
            .engine(|engine| engine.max_concurrent_children(permits))
            .start(Prompt::new("Go."))
            .await;
        let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!() };
        assert_eq!(answer.text.matches("done").count(), 8, "{}", answer.text);
        assert!(busy.0.lock().unwrap().1 <= 8);
    }
}

/// A31
#[tokio::test]
async fn a_level_too_deep_is_an_error_result() {
    let busy = Busy::default();
    let (top, below) = three_levels(&busy);
    let run =
        scenario(&top, below).engine(|engine| engine.max_child_depth(2)).start(Prompt::new("Go.")).await;
    let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!() };
    assert!(answer.text.contains("agents nest at most 2 levels deep"), "{}", answer.text);
    assert_eq!(busy.0.lock().unwrap().1, 0);
}

/// A31
#[test]
fn an_agent_with_four_levels_below_it_cannot_be_built() {
    let (top, _) = three_levels(&Busy::default());
    let error = Agent::builder("above").model(ScriptedModel::new([])).sub_agent(top).build().unwrap_err();
    assert_eq!(error.problems, [AgentProblem::TooDeep { depth: 4, limit: 3 }]);
}

/// A30
#[test]
fn a_sub_agent_without_identity_is_a_mistake_since_no_model_could_choose_it() {
    let model = || ScriptedModel::new([]);
    let nameless = Agent::builder("helper").model(model()).build().unwrap();
    let error = Agent::builder("top").model(model()).sub_agent(nameless).build().unwrap_err();
    assert_eq!(error.problems, [AgentProblem::SubAgentWithoutIdentity { name: "helper".into() }]);
    assert!(error.to_string().contains("call `identity` on the sub-agent"), "{error}");
    let told = Agent::builder("helper").model(model()).narrative("You look things up.").build().unwrap();
    let top = Agent::builder("top").model(model()).sub_agent(told).build().unwrap();
    let spawn = top.tools().next().unwrap();
    assert!(
        spawn.description().contains("- helper: You look things up. (no tools)"),
        "{}",
        spawn.description()
    );
}

/// A24, A32, A40
#[tokio::test]
async fn a_crash_at_any_write_repeats_no_sub_agent_that_had_finished() {
    let crashes = crash_everywhere(|store| {
        let leaf = by_task("leaf", |task| ScriptedReply::text(format!("result of {task}")));
        let (middle, _) = spawning("middle", [to("leaf", "deep")]);
        let middle = middle.sub_agent(leaf.clone()).build().unwrap();
        let quick = by_task("quick", |task| ScriptedReply::text(format!("result of {task}")));
        let (top, _) = spawning("top", [to("middle", "one"), to("quick", "two")]);
        let top = top.sub_agent(middle.clone()).sub_agent(quick.clone()).build().unwrap();
        scenario(&top, [("middle", middle), ("middle.leaf", leaf), ("quick", quick)])
            .engine(|engine| engine.store(store))
            .start(Prompt::new("Go."))
    });
    // Events, executions and child runs are compared with those without a crash.
    let survived = crashes
        .assert(|run| {
            let Outcome::Answered(answer) = run.outcome().unwrap() else { panic!() };
            answer.text.contains("result of deep") && answer.text.contains("result of two")
        })
        .confirming([Confirms::AtOnce, Confirms::Late])
        .pairs(5)
        .await;
    assert!(survived.once() > 40, "{survived}");
}
