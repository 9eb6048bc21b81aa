//! The turns by pydantic-ai: a script in a virtual environment of its own.

use std::path::Path;
use std::process::Command;

use crate::TURNS;

/// Runs of the script; the fastest counts.
const ROUNDS: usize = 20;

/// The microseconds of a turn.
pub(crate) fn micros_of_turn() -> f64 {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sources.join("target"), Into::into);
    let environment = target.join("pydantic-ai");
    let python = environment.join("bin/python");
    if !python.exists() {
        let base = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        run(Command::new(base).args(["-m", "venv"]).arg(&environment));
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(install).arg(sources.join("requirements.txt")));
    let script = sources.join("pydantic_ai_turns.py");
    let printed = run(Command::new(&python).arg(script).args([TURNS.to_string(), ROUNDS.to_string()]));
    printed.trim().parse().expect("the script prints a number")
}

/// The standard output of a command that must succeed.
fn run(command: &mut Command) -> String {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("the output is text")
}
