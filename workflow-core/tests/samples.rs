//! Whole crates, built by cargo as their authors would: checks the output, and that they run. Their sources are in
//! `tests/samples`. The tests write the manifests, because only they know where this crate is.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Its marked parameters may run their steps more often than intended.
const RERUNS: &str = include_str!("samples/reruns/src/main.rs");

/// It depends on the library under another name.
const RENAMED: &str = include_str!("samples/renamed/src/main.rs");

/// The compiler's warnings about parameters; the first words are the mark in the source.
const SENTENCES: [&str; 2] = [
    "an optional input may run its step twice, once without the event and once when it arrives: write \
     `#[step(precondition = …)]` to say when it may run, or `#[step(reruns)]` if that is meant",
    "a list input runs its step for every arrival, each time with a longer list: write \
     `#[step(precondition = …)]` to say when the list is complete, or `#[step(reruns)]` if that is meant",
];

// S10
#[test]
fn every_parameter_that_may_run_its_step_again_draws_a_warning_where_it_stands() {
    let built = Sample::new("reruns", "workflow-core", RERUNS).cargo("build");
    let expected = marked(RERUNS);
    assert!(SENTENCES.iter().all(|sentence| expected.iter().any(|(_, said)| said == sentence)));
    assert_eq!(warnings(&built), expected, "{}", built.stderr);
}

// S10
#[test]
fn no_warning_is_left_where_every_step_says_that_it_reruns() {
    assert_builds_without_warnings("reruns_said", "#[step(reruns)]");
}

// S10
#[test]
fn no_warning_is_left_where_every_step_has_a_precondition() {
    assert_builds_without_warnings("reruns_asked", "#[step(precondition = always)]");
}

#[test]
fn a_crate_that_knows_the_library_by_another_name_compiles_and_runs() {
    let ran = Sample::new("renamed", "flow", RENAMED).cargo("run");
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "Up Down, 5 words\n4 chapters read\ncounted to 10\n");
}

/// Mistakes that only a build finds, where a function with type parameters is used: the compiler's message, and the place of
/// the use. Each file of `tests/ui/built` has the messages beside it.
#[test]
fn mistakes_in_the_use_of_generic_functions_are_errors_of_the_build() {
    let folder = this_crate().join("tests/ui/built");
    let mut cases = 0;
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".rs")) else {
            continue;
        };
        let source = fs::read_to_string(&file).unwrap();
        let printed = Sample::new(name, "workflow-core", &source).fails();
        let place = format!("tests/ui/built/{name}.rs:");
        let expected = fs::read_to_string(file.with_extension("stderr")).unwrap();
        let is_place = |line: &str| line.trim_start().starts_with("--> ") && line.contains(&place);
        let mut wanted =
            expected.lines().filter(|line| line.starts_with("error") || is_place(line)).peekable();
        assert!(wanted.peek().is_some(), "{name}.stderr has neither an error nor a place");
        for line in wanted {
            let line = line.trim().replace(&place, "src/main.rs:");
            assert!(printed.contains(&line), "{name}: no `{line}` in\n{printed}");
        }
        cases += 1;
    }
    assert!(cases >= 5, "only {cases} cases");
}

/// The sample that warns, changed only in the attributes of steps without one.
fn assert_builds_without_warnings(name: &str, attribute: &str) {
    let source = RERUNS.replace("#[step]", attribute);
    assert_ne!(source, RERUNS);
    let built = Sample::new(name, "workflow-core", &source).cargo("build");
    assert!(!built.stderr.contains("warning"), "{}", built.stderr);
}

/// The marked places in the source, with their expected warnings.
fn marked(source: &str) -> Vec<(String, String)> {
    let marked = source.lines().enumerate().filter_map(|(index, line)| {
        let (parameter, mark) = line.split_once("// warns: ")?;
        let sentence = SENTENCES.iter().find(|sentence| sentence.starts_with(mark)).unwrap();
        let (name, _) = parameter.split_once(": ").unwrap();
        let (line, column) = (index + 1, name.len() + ": ".len() + 1);
        Some((
            format!("{}:{line}:{column}", Path::new("src").join("main.rs").display()),
            (*sentence).to_owned(),
        ))
    });
    in_any_order(marked)
}

/// The places and texts of the compiler's warnings.
fn warnings(built: &Built) -> Vec<(String, String)> {
    let warned = built.stderr.lines().filter_map(|line| line.split_once(": warning: "));
    in_any_order(warned.map(|(place, said)| {
        // Before that, the compiler names the function by which the library makes it warn.
        let sentence = said.split_once("::check`: ").map_or(said, |(_, sentence)| sentence);
        (place.to_owned(), sentence.to_owned())
    }))
}

fn in_any_order(warnings: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut warnings: Vec<_> = warnings.collect();
    warnings.sort();
    warnings
}

/// A separate crate. All of them share one target folder, so that dependencies are built once.
struct Sample {
    folder: PathBuf,
}

/// What cargo printed.
struct Built {
    stdout: String,
    stderr: String,
}

impl Sample {
    /// Writes the crate; `library` is its name for the library. The workspace's lock file gives it the workspace's
    /// versions, so the build needs no network.
    fn new(name: &str, library: &str, source: &str) -> Self {
        let folder = scratch().join(name);
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), manifest(name, library)).unwrap();
        fs::write(folder.join("Cargo.lock"), fs::read(this_crate().join("../../Cargo.lock")).unwrap())
            .unwrap();
        fs::write(folder.join("src/main.rs"), source).unwrap();
        Self { folder }
    }

    /// Has cargo build it, or build and run it.
    fn cargo(&self, command: &str) -> Built {
        let output = self.output(command, "short");
        let built = Built::of(&output);
        assert!(output.status.success(), "{}{}", built.stdout, built.stderr);
        built
    }

    /// Has cargo build what it refuses, and returns the compiler's messages.
    fn fails(&self) -> String {
        let output = self.output("build", "human");
        let built = Built::of(&output);
        assert!(!output.status.success(), "it builds: {}", built.stderr);
        built.stderr
    }

    fn output(&self, command: &str, messages: &str) -> Output {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        env::vars_os().filter(|(name, _)| name.to_str().is_some_and(changes_output)).for_each(|(name, _)| {
            cargo.env_remove(name);
        });
        cargo.args([command, "--offline", "--color=never", "--message-format", messages, "--target-dir"]);
        cargo.arg(scratch().join("target")).current_dir(&self.folder).output().unwrap()
    }
}

impl Built {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Whether a variable of this test's build would change the output for a sample.
fn changes_output(variable: &str) -> bool {
    let exact = ["CARGO_BUILD_TARGET", "CARGO_BUILD_WARNINGS"].contains(&variable);
    exact || variable.ends_with("RUSTFLAGS") || variable.starts_with("CARGO_TERM_")
}

fn manifest(name: &str, library: &str) -> String {
    let path = this_crate().join("../../workflow-core");
    let path = path.display();
    format!(
        r#"[package]
name = "{name}"
version = "0.0.0"
edition = "2024"
publish = false

# A workspace of its own: the folder lies in that of another one.
[workspace]

[dependencies]
{library} = {{ package = "workflow-core", path = '{path}' }}
serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"
tokio = {{ version = "1", features = ["macros", "rt"] }}

[profile.dev]
debug = false
incremental = false
"#
    )
}

fn this_crate() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples")
}
