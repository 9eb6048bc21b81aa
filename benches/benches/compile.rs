//! The cost of the library for the compiler, measured in two ways.
//!
//! `hello`: a program with one step, beside one that has `tokio` and `serde_json` and nothing of ours: how many crates it
//! has, and what it takes to build both from nothing, in turns.
//!
//! `check`, `build` and `release`: what the macros and their checks cost: a workflow of 60 steps, against the same 60
//! functions written by hand and called one after the other, and against these functions where each event is written as
//! JSON and read again, as that of a workflow can be. All crates hold the same events with the same serde derives, and all
//! run under the same runtime; only the crate itself is built again in each turn, not its dependencies.
//!
//! `-- hello`, `-- check`, `-- build` or `-- release` measures only that: the programs, or the steps by this command.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use workflow_benches::figure::{Figure, Target, as_float};
use workflow_benches::sample::{Sample, Spent, workflow_core};
use workflow_benches::{Contender, compare};

const STEPS: usize = 60;

/// The ways to compile a program, with the arguments of cargo.
const COMMANDS: [(&str, &[&str]); 3] =
    [("check", &["check"]), ("build", &["build"]), ("release", &["build", "--release"])];

/// How often each program is built from nothing; the median counts.
const BUILDS: usize = 3;

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn main() {
    let names: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile");
    let mut figures = Vec::new();
    if is_wanted("hello") {
        figures.extend(hello_world(&root));
    }
    for (name, command) in COMMANDS.iter().filter(|(name, _)| is_wanted(name)) {
        let figure = steps_of_a_workflow(&root, name, command);
        figures.push(if *name == "check" { figure.target(Target::AtMost(2.0)) } else { figure });
    }
    println!("\n{}", Figure::HEADER);
    for figure in figures {
        println!("{figure}");
    }
}

/// The smallest program.
fn hello_world(root: &Path) -> Vec<Figure> {
    let common = "serde = { version = \"1\", features = [\"derive\"] }\n\
                  tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n";
    let ours = Sample::write(root, "hello", &format!("{common}{}", workflow_core()), HELLO);
    let bare = Sample::write(root, "bare", &format!("{common}serde_json = \"1\"\n"), BARE);
    let (mut of_ours, mut of_bare) = (Vec::new(), Vec::new());
    for round in 0..BUILDS {
        let mut ours = || of_ours.push(ours.build_from_scratch());
        let mut bare = || of_bare.push(bare.build_from_scratch());
        if round % 2 == 0 {
            bare();
            ours();
        } else {
            ours();
            bare();
        }
    }
    let of_both =
        |part: fn(&Spent) -> Option<Duration>| Some((median(&of_ours, part)?, median(&of_bare, part)?));
    let beside = "tokio and serde_json";
    let crates = Figure::new("hello/crates", "crates", as_float(ours.crates()), 45.0);
    let mut figures = vec![crates.target(Target::AtMost(1.0)).beside("the most that is wanted")];
    for (name, times) in [
        ("hello/time", of_both(|spent| Some(spent.time))),
        ("hello/processor", of_both(|spent| spent.processor)),
    ] {
        let figure = times.map(|(ours, bare)| {
            Figure::new(name, "s", ours.as_secs_f64(), bare.as_secs_f64())
                .target(Target::AtMost(2.2))
                .beside(beside)
        });
        figures.extend(figure);
    }
    figures
}

fn median(builds: &[Spent], part: fn(&Spent) -> Option<Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = builds.iter().filter_map(part).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Many steps.
fn steps_of_a_workflow(root: &Path, name: &str, command: &[&str]) -> Figure {
    let dependencies = format!(
        "serde = {{ version = \"1\", features = [\"derive\"] }}\n\
         serde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"rt\"] }}\n{}",
        workflow_core()
    );
    let write = |name, source: &str| Sample::write(root, name, &dependencies, source);
    let by_hand = write("by-hand", &functions(called));
    let by_hand_with_json = write("by-hand-with-json", &functions(called_with_json));
    let workflow = write("workflow", &workflow());
    by_hand.compile(command);
    by_hand_with_json.compile(command);
    workflow.compile(command);
    let contenders = vec![
        Contender::new("functions, by hand", || by_hand.compile(command)),
        Contender::new("the same, events as JSON and back", || by_hand_with_json.compile(command)),
        Contender::new("workflow, with all checks", || workflow.compile(command)),
    ];
    let title = format!("cargo {}, {STEPS} steps, per step", command.join(" "));
    let medians = compare(&title, u32::try_from(STEPS).expect("few steps"), contenders);
    Figure::new(format!("{name}/{STEPS}"), "s", medians[2].as_secs_f64(), medians[0].as_secs_f64())
        .beside("the functions, by hand")
}

const HELLO: &str = r#"use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Hello { name: String }

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Greeting { text: String }

struct Greeter;

#[workflow]
impl Greeter {
    #[step]
    async fn greet(&self, hello: &Hello) -> Greeting {
        Greeting { text: format!("Hello, {}", hello.name) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RunError> {
    let greeting = Greeter.run(Hello { name: "world".into() }).await?;
    println!("{}", greeting.text);
    Ok(())
}
"#;

const BARE: &str = r#"use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Hello { name: String }

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Greeting { text: String }

async fn greet(hello: &Hello) -> Greeting {
    Greeting { text: format!("Hello, {}", hello.name) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), serde_json::Error> {
    let hello: Hello = serde_json::from_str("{\"name\":\"world\"}")?;
    println!("{}", serde_json::to_string(&greet(&hello).await)?);
    Ok(())
}
"#;

/// The events of all crates; `derive` and `role` are what a workflow adds to them.
fn events(derive: &str, role: fn(usize) -> &'static str) -> String {
    let mut source = String::new();
    for event in 0..=STEPS {
        let _ = writeln!(source, "#[derive(Debug, Clone, Serialize, Deserialize{derive})]");
        let _ =
            writeln!(source, "{}pub struct E{event} {{ pub number: u64, pub text: String }}\n", role(event));
    }
    source
}

/// The steps of all crates.
fn steps(attribute: &str) -> String {
    let mut source = String::new();
    for step in 0..STEPS {
        let next = step + 1;
        let _ = writeln!(source, "    {attribute}async fn step{step}(&self, event: &E{step}) -> E{next} {{");
        let _ = writeln!(
            source,
            "        E{next} {{ number: event.number + self.by, text: event.text.clone() }}"
        );
        let _ = writeln!(source, "    }}\n");
    }
    source
}

/// A call of one of them.
fn called(step: usize) -> String {
    format!("let event = flow.step{step}(&event).await;")
}

/// The same, and what it returned is written and read again.
fn called_with_json(step: usize) -> String {
    let next = step + 1;
    format!(
        "let text = serde_json::to_string(&flow.step{step}(&event).await).expect(\"it is JSON\");\n        \
         let event: E{next} = serde_json::from_str(&text).expect(\"it is what was written\");"
    )
}

fn functions(call: fn(usize) -> String) -> String {
    let mut calls = String::new();
    for step in 0..STEPS {
        let _ = writeln!(calls, "        {}", call(step));
    }
    format!(
        "use serde::{{Deserialize, Serialize}};\n\n{}struct Flow {{ by: u64 }}\n\nimpl Flow {{\n{}}}\n\n{}",
        events("", |_| ""),
        steps(""),
        main_with(&format!("{calls}        event"))
    )
}

fn workflow() -> String {
    format!(
        "use serde::{{Deserialize, Serialize}};\nuse workflow_core::prelude::*;\n\n{}struct Flow {{ by: u64 }}\n\n\
         #[workflow]\nimpl Flow {{\n{}}}\n\n{}",
        events(", Event", |event| match event {
            0 => "#[event(start)]\n",
            STEPS => "#[event(stop)]\n",
            _ => "",
        }),
        steps("#[step]\n    "),
        main_with("        flow.run(event).await.expect(\"the run completes\")")
    )
}

fn main_with(body: &str) -> String {
    format!(
        "fn main() {{\n    let runtime = tokio::runtime::Builder::new_current_thread().build().expect(\"a runtime\");\n    \
         let last = runtime.block_on(async {{\n        let flow = Flow {{ by: 1 }};\n        \
         let event = E0 {{ number: 0, text: String::new() }};\n{body}\n    }});\n    println!(\"{{last:?}}\");\n}}\n"
    )
}
