//! The chain by LangGraph: a script in a virtual environment of its own.

use std::path::Path;
use std::process::Command;

use crate::NODES;

/// Runs of the script; the fastest counts.
const ROUNDS: usize = 10;

/// The microseconds of a visit.
pub(crate) fn micros_of_visit() -> f64 {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sources.join("target"), Into::into);
    let environment = target.join("langgraph");
    let python = environment.join("bin/python");
    if !python.exists() {
        let base = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        run(Command::new(base).args(["-m", "venv"]).arg(&environment));
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(install).arg(sources.join("requirements.txt")));
    let script = sources.join("langgraph_chain.py");
    let printed = run(Command::new(&python).arg(script).args([NODES.to_string(), ROUNDS.to_string()]));
    printed.trim().parse().expect("the script prints a number")
}

/// The standard output of a command that must succeed.
fn run(command: &mut Command) -> String {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("the output is text")
}
