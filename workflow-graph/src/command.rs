//! Programs that command nodes run: their bounds, and how their output becomes data. Processes are in `process` and
//! `group`, output and messages in `output`. It decides nothing about attempts and time: the caller drops the future.

use serde_json::Value;

use crate::NodeError;
use crate::document::model::Parse;

#[cfg(unix)]
mod group;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod process;
#[cfg(all(test, unix))]
mod tests;

/// The most bytes of the arguments and the environment together, of the input, and of the output.
const MOST: usize = 1024 * 1024;

/// A program with its surroundings. It has no debug text, because values of variables may be secret.
pub(crate) struct CommandSpec {
    /// The program and its arguments. A program without a slash is looked up on `PATH`.
    pub(crate) run: Vec<String>,
    /// The input; without it the program reads nothing.
    pub(crate) stdin: Option<String>,
    /// The environment. `PATH` is this process's, unless it is set here.
    pub(crate) env: Vec<(String, String)>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "commands run on Unix only"))]
    pub(crate) parse: Option<Parse>,
}

/// Runs a program without a shell, and returns its output: as text without the final newline, or parsed.
///
/// The program has a process group of its own, which is killed when the program ends, when the future is dropped, and when
/// this process dies, also by `SIGKILL`. A process that leaves the group lives on. The output is bounded; a program
/// that prints more is killed. Errors have no values of `env`. It needs a tokio runtime with I/O and time.
pub(crate) async fn run(spec: CommandSpec) -> Result<Value, NodeError> {
    spec.check()?;
    #[cfg(unix)]
    {
        let text = process::output(&spec).await?;
        match spec.parse {
            None | Some(Parse::Text) => Ok(Value::String(without_final_newline(text))),
            // The error names the place and never the text, which may have secrets.
            Some(Parse::Json) => serde_json::from_str(&text).map_err(|error| {
                let program = output::name(&spec);
                NodeError::tool(format!("the output of `{program}` cannot be read as JSON: {error}"))
            }),
        }
    }
    #[cfg(not(unix))]
    Err(NodeError::permanent("commands run on Unix only"))
}

impl CommandSpec {
    /// Refuses what no attempt can run.
    fn check(&self) -> Result<(), NodeError> {
        let Self { run, stdin, env, parse: _ } = self;
        if run.first().is_none_or(String::is_empty) {
            return Err(NodeError::permanent("the command names no program; `run` begins with one"));
        }
        // The system would read another name, or none.
        if let Some((name, _)) = env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(NodeError::permanent(format!(
                "{name:?} cannot be the name of a variable in `env`: it is empty, or has `=` or a zero byte"
            )));
        }
        let bytes =
            run.iter().map(String::len).chain(env.iter().map(|(name, value)| name.len() + value.len()));
        if bytes.fold(0, usize::saturating_add) > MOST {
            return Err(NodeError::permanent("`run` and `env` of the command have more than 1 MiB"));
        }
        if stdin.as_ref().is_some_and(|text| text.len() > MOST) {
            return Err(NodeError::permanent("`stdin` of the command has more than 1 MiB"));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn without_final_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}
