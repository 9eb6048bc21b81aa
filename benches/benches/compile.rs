//! Measures the compile time of the macros and their checks: a workflow of 60 steps, compared with the same 60
//! functions called one after the other, and with these functions where each event is written as JSON and read again.
//! All crates have the same events with the same serde derives and the same runtime. Each turn builds only the crate
//! itself, not its dependencies.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use workflow_benches::{Contender, compare};

const STEPS: usize = 60;

fn main() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile");
    let by_hand = Sample::write(&root, "by-hand", &functions(called));
    let by_hand_with_json = Sample::write(&root, "by-hand-with-json", &functions(called_with_json));
    let workflow = Sample::write(&root, "workflow", &workflow());
    for command in [["check"].as_slice(), &["build"], &["build", "--release"]] {
        by_hand.compile(command);
        by_hand_with_json.compile(command);
        workflow.compile(command);
        compare(
            &format!("cargo {}, {STEPS} steps, per step", command.join(" ")),
            u32::try_from(STEPS).expect("few steps"),
            vec![
                Contender::new("functions, by hand", || by_hand.compile(command)),
                Contender::new("the same, events as JSON and back", || by_hand_with_json.compile(command)),
                Contender::new("workflow, with all checks", || workflow.compile(command)),
            ],
        );
    }
}

/// A crate to compile.
struct Sample {
    root: PathBuf,
}

impl Sample {
    fn write(root: &Path, name: &str, source: &str) -> Self {
        let root = root.join(name);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             serde = {{ version = \"1\", features = [\"derive\"] }}\n\
             serde_json = \"1\"\n\
             tokio = {{ version = \"1\", features = [\"rt\"] }}\n\
             workflow-core = {{ path = '{}' }}\n",
            workspace.join("workflow-core").display()
        );
        std::fs::create_dir_all(root.join("src")).expect("a folder for the crate");
        std::fs::write(root.join("Cargo.toml"), manifest).expect("a manifest");
        std::fs::write(root.join("src/main.rs"), source).expect("a source");
        std::fs::copy(workspace.join("Cargo.lock"), root.join("Cargo.lock"))
            .expect("the workspace's lock file");
        Self { root }
    }

    /// Compiles the crate again; its dependencies stay compiled.
    fn compile(&self, command: &[&str]) -> u64 {
        let source = self.root.join("src/main.rs");
        let text = std::fs::read(&source).expect("the source");
        std::fs::write(&source, text).expect("the source, written again");
        let output = Command::new(env!("CARGO"))
            .args(command)
            .args(["--quiet", "--offline", "--target-dir"])
            .arg(self.root.join("../target"))
            .env("CARGO_INCREMENTAL", "0")
            .current_dir(&self.root)
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        u64::from(output.status.success())
    }
}

/// The events of all crates, with the `derive` and `role` that a workflow adds.
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

/// The same, with the result written and read again.
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
