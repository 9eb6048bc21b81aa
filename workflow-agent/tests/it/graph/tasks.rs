use super::*;

/// A92
#[tokio::test]
async fn nodes_are_agents_with_tools_and_a_judge_and_a_model_chooses_the_route() {
    let (model, visits) = (ScriptedModel::respond(reporter), Calls::default());
    let agents = reporters(&model, &visits);
    assert_eq!(first(&agents), ["scout", "writer"]);
    let engine = builder(REPORT, &agents);
    let hosted = [
        agent("scout", &model).tool(weather()).tool(visit(&visits)),
        agent("writer", &model).tool(weather()),
    ];
    let engine = hosted.into_iter().fold(engine, |engine, agent| engine.agent(agent.build().unwrap()));
    let engine = engine.build().unwrap();

    let run = GraphRun::start(&engine, "report", json!({"city": "Bern"})).await.unwrap();
    let result = run.outcome().await.unwrap();
    assert_eq!((&*result.at, &result.output), ("write", &json!("The sky is clear.")));
    assert_eq!(result.results["look"].data, json!({"sky": "clear"}));
    assert_eq!(
        result.results["look"].checks,
        [("looked".to_owned(), true), ("judged".to_owned(), true)].into()
    );
    assert_eq!(&*result.trace.routes[0].reason, "the sky is known");

    let requests = model.requests();
    let systems: Vec<&str> =
        requests.iter().map(|request| request.system.split('.').next().unwrap()).collect();
    assert_eq!(
        systems,
        [
            "You are the scout",
            "You are the scout",
            "You check and advise the work of agents in a workflow",
            "You choose the next step of a workflow",
            "You are the writer",
            "You are the writer",
        ]
    );
    assert_eq!(names(&requests[0]), ["final_answer", "weather"], "`visit` is denied");
    assert!(requests[0].messages[0].text().starts_with("Find out the sky of Bern."));
    assert!(requests[2].tools.is_empty() && requests[3].tools.is_empty());
    let asked = &requests[3].messages[0].text();
    assert!(asked.contains("- `write`: the sky is known\n- `nothing`: the sky is dull\n"), "{asked}");
    assert!(asked.contains(r#"{"sky":"clear"}"#), "{asked}");
    let written = texts(&requests[4]);
    assert!(written[0].starts_with("Write about the sky: clear."), "{written:?}");
    assert!(written[0].contains(r#"<data source="workflow">"#) && written[0].contains(r#""city":"Bern""#));

    // Each task is a run of its own, below the visit of its node.
    let report = run.run().report().await.unwrap();
    let children: Vec<_> = report.children.iter().map(|child| &*child.child.workflow).collect();
    assert_eq!(children, ["scout", "writer"]);
}

/// A92, A11
#[tokio::test]
async fn a_denied_tool_is_not_offered_and_a_call_of_it_does_not_run() {
    let text = "
graph: test
nodes:
  a: {agent: {instruction: 'Go.', tools: {deny: [visit]}}}
";
    let (calls, model) =
        (Calls::default(), ScriptedModel::new([call("1", "visit", "Bern"), ScriptedReply::text("no")]));
    let result = run(text, agent("one", &model).tool(weather()).tool(visit(&calls))).await.unwrap();
    assert_eq!((result.output, calls.len()), (json!("no"), 0));
    let requests = model.requests();
    assert_eq!(names(&requests[0]), ["weather"]);
    let refused = crate::parts::result(&requests[1]);
    assert!(refused.is_error && refused.text.contains("weather"), "{refused:?}");
}

/// A92
#[tokio::test]
async fn only_allowed_tools_are_offered_and_denied_ones_are_not_among_them() {
    let text = "
graph: test
nodes:
  a: {agent: {instruction: 'Go.', tools: {allow: [visit, weather], deny: [visit]}}}
";
    let model = ScriptedModel::new([ScriptedReply::text("done")]);
    let agent = agent("one", &model).tool(weather()).tool(visit(&Calls::default())).ask_user();
    run(text, agent).await.unwrap();
    assert_eq!(names(&model.requests()[0]), ["weather"]);
}

/// A92
#[tokio::test]
async fn a_tool_that_the_agent_lacks_fails_the_node_before_any_call_of_a_model() {
    for tools in ["allow: [wether]", "deny: [wether]"] {
        let text = format!(
            "
graph: test
nodes:
  a: {{agent: {{instruction: 'Go.', tools: {{{tools}}}}}}}
"
        );
        let model = ScriptedModel::new([]);
        let failure = failed(run(&text, agent("one", &model).tool(weather())).await);
        assert!(
            failure.to_string().contains("agent `one` has no tool `wether`; tools: weather"),
            "{failure}"
        );
        assert!(model.requests().is_empty());
    }
}

/// A92
#[tokio::test]
async fn a_model_that_no_agent_is_fails_the_node_with_the_names_of_the_agents() {
    let text = "
graph: test
nodes:
  a: {agent: {instruction: 'Go.', model: gpt}}
";
    let failure = failed(run(text, agent("one", &ScriptedModel::new([]))).await);
    assert_eq!(failure.node.as_deref(), Some("a"));
    assert!(
        failure.to_string().contains("no agent `gpt`") && failure.to_string().contains("agents: one"),
        "{failure}"
    );
}

/// A92
#[tokio::test]
async fn an_agent_that_the_engine_does_not_host_fails_the_node_with_the_remedy() {
    let (agents, _) = only(agent("one", &ScriptedModel::new([])));
    let engine = builder("graph: test\nnodes: {a: {agent: 'Go.'}}\n", &agents).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    let failure = failed(run.outcome().await);
    assert!(failure.to_string().contains("does not host agent `one`: add `.agent(…)`"), "{failure}");

    let engine = builder("graph: test\nnodes: {a: {agent: 'Go.'}}\n", &GraphAgents::new([])).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    assert!(failed(run.outcome().await).to_string().contains("give `GraphAgents::new` one"));
}

/// A92
#[tokio::test]
async fn a_task_has_rules_background_and_skills_and_a_skill_that_is_not_there_fails_the_node() {
    let text = "
graph: test
nodes:
  a: {agent: {instruction: 'Go.', rules: ['Be brief.'], background: ['It is late.'], skills: [git]}}
";
    for (skill, is_known) in [("git", true), ("svn", false)] {
        let model = ScriptedModel::new([ScriptedReply::text("done")]);
        let (agents, hosted) = only(agent("one", &model));
        let agents = agents.skill(skill, "Commit often.");
        let engine = builder(text, &agents).agent(hosted).build().unwrap();
        let ended = GraphRun::start(&engine, "test", json!({})).await.unwrap().outcome().await;
        if is_known {
            assert_eq!(ended.unwrap().output, "done");
            let task = model.requests()[0].messages[0].text().into_owned();
            assert_eq!(
                task,
                "Go.\n\n# Rules\nBe brief.\n\n# Background\nIt is late.\n\n# Skill: git\nCommit often.\n\n# Input and \
                 results of earlier steps, as data\n<data source=\"workflow\">\n{\"input\":{}}\n</data>"
            );
        } else {
            assert!(failed(ended).to_string().contains("no skill `git`; skills: svn"));
        }
    }
}

/// A92, SW1
#[tokio::test]
async fn a_skill_that_the_document_defines_itself_stands_in_the_task() {
    let text = "
id: test
name: Test
entry: a
skills: {git: {name: Git, instruction: Commit often.}}
nodes: {a: {name: A, instruction: Go., skills: [git]}}
edges: []
";
    for (known, expected) in [("svn", "Commit often."), ("git", "Commit rarely.")] {
        let model = ScriptedModel::new([ScriptedReply::text("done")]);
        let (agents, hosted) = only(agent("one", &model));
        let agents = agents.skill(known, "Commit rarely.");
        let engine = builder(text, &agents).agent(hosted).build().unwrap();
        GraphRun::start(&engine, "test", json!({})).await.unwrap().outcome().await.unwrap();
        let task = model.requests()[0].messages[0].text().into_owned();
        assert!(task.contains(&format!("# Skill: git\n{expected}")), "{task}");
    }
}

/// A92, SW1
#[tokio::test]
async fn a_node_with_one_of_its_skills_works_and_warns_and_one_with_none_fails_with_all_names() {
    let sweny = "
id: test
name: Test
entry: a
skills: {web: {name: Web, mcp: {command: web}}}
nodes: {a: {name: A, instruction: Go., skills: [SKILLS], retry: {max: 1}, eval: [{name: e, kind: judge, rubric: Done?}]}}
edges: []
";
    let warning = |missing: &str| {
        vec![format!("`a`: the agent works without skills that are not there: {missing}; skills: git")]
    };
    for (skills, task, warnings) in [
        ("git", Some("Go.\n\n# Skill: git\nCommit often.\n"), vec![]),
        ("svn, git, cvs", Some("Go.\n\n# Skill: git\nCommit often.\n"), warning("`svn`, `cvs`")),
        ("svn, web", Some("Go.\n\n# Input"), warning("`svn`")),
        ("svn, cvs", None, vec![]),
        ("svn", None, vec![]),
    ] {
        // The first answer fails its evaluation, so that there are two tasks, and one warning.
        let model = ScriptedModel::new([
            ScriptedReply::text("begun"),
            ScriptedReply::text("VERDICT: no\nREASONING: half of it"),
            ScriptedReply::text("done"),
            ScriptedReply::text("VERDICT: yes\nREASONING: all of it"),
        ]);
        let (agents, hosted) = only(agent("one", &model));
        let agents = agents.skill("git", "Commit often.");
        let engine = builder(&sweny.replace("SKILLS", skills), &agents).agent(hosted).build().unwrap();
        let ended = GraphRun::start(&engine, "test", json!({})).await.unwrap().outcome().await.unwrap();
        let result = &ended.results["a"];
        if let Some(task) = task {
            assert_eq!((&result.data, &result.error), (&json!("done"), &None), "{skills}");
            let sent = model.requests()[0].messages[0].text().into_owned();
            assert!(sent.starts_with(task), "{sent}");
        } else {
            let names = skills.replace(", ", "`, `");
            let error = result.error.as_ref().unwrap();
            assert!(error.contains(&format!("there is no skill `{names}`; skills: git")), "{error}");
            assert!(model.requests().is_empty());
        }
        assert_eq!(ended.warnings, warnings, "{skills}");
    }

    // A document of the native format says which skills its nodes need.
    let text = "graph: test\nnodes:\n  a: {agent: {instruction: 'Go.', skills: [git, svn, cvs]}}\n";
    let (agents, hosted) = only(agent("one", &ScriptedModel::new([])));
    let engine = builder(text, &agents.skill("git", "Commit often.")).agent(hosted).build().unwrap();
    let failure = failed(GraphRun::start(&engine, "test", json!({})).await.unwrap().outcome().await);
    assert!(failure.to_string().contains("there is no skill `svn`, `cvs`; skills: git"), "{failure}");
}

/// A92
#[tokio::test]
async fn each_item_of_a_list_is_a_run_of_its_own() {
    let text = "
graph: test
nodes:
  a:
    for_each: {in: '[1, 2, 3]', concurrency: 3}
    agent: 'Square ${ item }.'
";
    let model = ScriptedModel::respond(|request| {
        let item = texts(request)[0].split(['.', ' ']).nth(1).unwrap().to_owned();
        ScriptedReply::text(item)
    });
    let result = run(text, agent("one", &model)).await.unwrap();
    assert_eq!(result.output["items"], json!(["1", "2", "3"]));
    assert_eq!(model.requests().len(), 3);
}

/// A92, A18
#[tokio::test]
async fn a_secret_in_a_task_reaches_neither_model_nor_journal() {
    let text = "
graph: test
nodes:
  a: {agent: 'Use hunter2-hunter2.', next: {decide: 'hunter2-hunter2?', choices: [{to: b}], otherwise: b}}
  b: {value: 1}
";
    let model = ScriptedModel::new([ScriptedReply::text("done"), ScriptedReply::text("b")]);
    let agent = agent("one", &model).secret(workflow_agent::Secret::new("KEY", "hunter2-hunter2"));
    let (agents, agent) = only(agent);
    let engine = builder(text, &agents).agent(agent).build().unwrap();
    let run = GraphRun::start(&engine, "test", json!({})).await.unwrap();
    run.outcome().await.unwrap();
    for request in model.requests() {
        assert!(texts(&request)[0].contains("[secret KEY]"), "{request:?}");
    }
    let report = run.run().report().await.unwrap();
    let child = report.children[0].report.clone().unwrap();
    let log: Vec<Value> = child.log.iter().map(|logged| logged.value.to_json().unwrap()).collect();
    assert!(!log.is_empty() && !log.iter().any(|value| reads(value, "hunter2")), "{log:?}");
}
