//! Configuration in layers: defaults, file, environment, run.

use serde_json::json;
use workflow_core::errors::{BuildProblem, ConfigError};
use workflow_core::prelude::*;
use workflow_core::{ConfigLayers, ConfigOrigin, RunOptions, StartError};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Search {
    top_k: u32,
    store: Store,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Store {
    path: String,
    cache: bool,
}

fn defaults() -> Search {
    Search { top_k: 3, store: Store { path: "memory".into(), cache: true } }
}

/// The configuration that a step read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Found(String);

struct Searching;

#[workflow]
impl Searching {
    #[step]
    async fn search(&self, _begin: &Begin, config: &Config<Search>) -> Found {
        Found(format!("{} {} {}", config.top_k, config.store.path, config.store.cache))
    }
}

async fn search(layers: ConfigLayers<Search>, options: RunOptions) -> String {
    let engine = Engine::builder().workflow(Searching).config::<Search>(layers).build().unwrap();
    engine.start_with::<Searching>(Begin(0), options).await.unwrap().outcome().await.unwrap().0
}

#[tokio::test]
async fn a_value_written_in_the_program_is_the_first_layer() {
    let run = Scenario::new(Searching).config(defaults()).start(Begin(0)).await;
    run.assert_output(&Found("3 memory true".into()));
}

#[tokio::test]
async fn layers_are_merged_key_by_key_however_deep() {
    let layers = ConfigLayers::defaults(defaults()).layer(json!({ "store": { "path": "/var/index" } }));
    assert_eq!(search(layers, RunOptions::new()).await, "3 /var/index true");
}

#[tokio::test]
async fn a_file_is_a_layer() {
    let file = std::env::temp_dir().join(format!("workflow-config-{}.json", std::process::id()));
    std::fs::write(&file, r#"{ "store": { "cache": false } }"#).unwrap();
    let layers = ConfigLayers::defaults(defaults()).json_file(&file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(search(layers, RunOptions::new()).await, "3 memory false");
}

#[tokio::test]
async fn the_environment_is_a_layer() {
    // Cargo sets `CARGO_PKG_…` for every test it runs: no other variable has to be changed.
    let layers = ConfigLayers::<Package>::new().layer(json!({ "name": "unset" })).env("CARGO_PKG");
    let engine = Engine::builder().workflow(Naming).config::<Package>(layers).build().unwrap();
    let found = engine.start::<Naming>(Begin(0)).await.unwrap().outcome().await.unwrap();
    assert_eq!(found, Found("workflow-core-tests".into()));
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
}

struct Naming;

#[workflow]
impl Naming {
    #[step]
    async fn name(&self, _begin: &Begin, package: Config<Package>) -> Found {
        Found(package.name.clone())
    }
}

#[tokio::test]
async fn a_runs_own_layer_wins_over_every_other() {
    let layers = ConfigLayers::defaults(defaults()).layer(json!({ "top_k": 4 }));
    let options = RunOptions::new().config::<Search>(json!({ "top_k": 5, "store": { "cache": false } }));
    assert_eq!(search(layers, options).await, "5 memory false");
}

#[tokio::test]
async fn a_runs_own_layer_is_that_runs_alone() {
    let engine = Engine::builder().workflow(Searching).config::<Search>(defaults()).build().unwrap();
    let options = RunOptions::new().config::<Search>(json!({ "top_k": 9 }));
    let with = engine.start_with::<Searching>(Begin(0), options).await.unwrap().outcome().await.unwrap();
    let without = engine.start::<Searching>(Begin(0)).await.unwrap().outcome().await.unwrap();
    assert_eq!([with.0, without.0], ["9 memory true", "3 memory true"]);
}

#[tokio::test]
async fn a_runs_own_layer_that_does_not_fit_is_refused_with_its_path() {
    let engine = Engine::builder().workflow(Searching).config::<Search>(defaults()).build().unwrap();
    let options = RunOptions::new().config::<Search>(json!({ "store": { "cache": "maybe" } }));
    let error = engine.start_with::<Searching>(Begin(0), options).await.unwrap_err();
    let StartError::Config(ConfigError::Invalid { path, origin, .. }) = &error else { panic!("{error}") };
    assert_eq!((&**path, origin.as_ref()), ("store.cache", Some(&ConfigOrigin::Run)));
    assert!(engine.running().is_empty());
}

#[test]
fn a_layer_that_does_not_fit_is_a_build_error_that_names_path_and_layer() {
    let layers = ConfigLayers::defaults(defaults()).layer(json!({ "store": { "cache": 7 } }));
    let built = Engine::builder().workflow(Searching).config::<Search>(layers).build();
    let error = built.unwrap_err();
    let [BuildProblem::Config { workflow, source: ConfigError::Invalid { path, origin, .. } }] =
        &error.problems[..]
    else {
        panic!("{error}")
    };
    assert_eq!((&**workflow, &**path), ("Searching", "store.cache"));
    assert_eq!(*origin, Some(ConfigOrigin::Layer { position: 2 }));
}

#[derive(Debug, Deserialize)]
struct Model {
    #[expect(dead_code, reason = "only its absence matters")]
    name: String,
}

struct NeedsTwo;

#[workflow]
impl NeedsTwo {
    #[step]
    async fn search(&self, begin: &Begin, _search: &Config<Search>) -> Item {
        Item(begin.0)
    }

    #[step(precondition = with_model)]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[precondition]
    fn with_model(_model: &Config<Model>) -> bool {
        true
    }
}

#[test]
fn every_missing_configuration_is_reported_by_the_build() {
    let error = Engine::builder().workflow(NeedsTwo).build().unwrap_err();
    let missing: Vec<&str> = error
        .problems
        .iter()
        .filter_map(|problem| match problem {
            BuildProblem::Config { source: ConfigError::Invalid { type_name, .. }, .. } => Some(*type_name),
            _ => None,
        })
        .collect();
    assert_eq!(missing.len(), 2, "{error}");
    assert!(missing[0].ends_with("Search") && missing[1].ends_with("Model"));
    assert!(error.to_string().contains(".config::<…>(…)"));
}

#[test]
fn every_layer_that_cannot_be_read_is_reported_by_the_build() {
    let layers = ConfigLayers::<Search>::new().json_file("/no/such/file.json").json_file("/nor/this.json");
    let built = Engine::builder().workflow(Searching).config::<Search>(layers).build();
    let error = built.unwrap_err();
    let unreadable = error
        .problems
        .iter()
        .filter(|problem| matches!(problem, BuildProblem::ConfigLayer(ConfigError::Unreadable { .. })));
    assert_eq!(unreadable.count(), 2, "{error}");
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lenient {
    retries: u32,
}

struct WithDefaults;

#[workflow]
impl WithDefaults {
    #[step]
    async fn end(&self, begin: &Begin, lenient: &Config<Lenient>) -> Done {
        Done(begin.0 + lenient.retries)
    }
}

#[tokio::test]
async fn a_type_with_a_default_for_every_field_needs_no_layer() {
    assert_eq!(WithDefaults.run(Begin(1)).await.unwrap(), Done(1));
}

#[tokio::test]
async fn the_one_line_form_reports_a_missing_configuration() {
    let error = NeedsTwo.run(Begin(1)).await.unwrap_err();
    assert!(matches!(&error, RunError::Build(build) if build.problems.len() == 2), "{error}");
}

// S6
#[tokio::test]
async fn a_configuration_that_no_parameter_declares_is_not_at_hand() {
    let error = Undeclared.run(Begin(1)).await.unwrap_err();
    assert!(error.to_string().contains("is not among the parameters of any step"), "{error}");
}

struct Smuggled;

impl workflow_core::StepInput for Smuggled {
    const SPEC: workflow_core::signature::InputSpec =
        workflow_core::signature::InputSpec::injected("Smuggled");
    type Item<'a> = Self;

    fn fill(slot: workflow_core::signature::Slot<'_>) -> Result<Self, StepError> {
        slot.config::<Lenient>().map(|_| Self)
    }
}

struct Undeclared;

#[workflow]
impl Undeclared {
    #[step]
    async fn end(&self, begin: &Begin, _smuggled: Smuggled) -> Done {
        Done(begin.0)
    }
}
