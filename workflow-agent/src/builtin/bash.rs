//! The tool `bash`: its options and its result. The process group of a call is in `group`, the bounded output in
//! `capture`. It deliberately confines nothing: a command can do all that the process can do.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, FusedFuture as _, select};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

mod capture;
mod group;

use capture::Capture;
use group::Group;

use crate::approval::Approval;
use crate::tool::{FnTool, Tool, ToolError, ToolOutput, ToolSet, ToolSpec};

/// The longest time of a command, unless the program sets another: ten seconds less than that of a call.
const LONGEST: Duration = Duration::from_secs(110);
/// The time in which a killed group ends and its result is made.
const END: Duration = Duration::from_secs(10);
/// The longest wait for the rest of the output after the group was killed. Only a process that left the group needs it.
const REST: Duration = Duration::from_secs(1);

/// The tool `bash`, which runs a command in a folder. Available on Unix.
///
/// # It is no sandbox
/// A command runs with the rights of your process: it reads and writes outside of its folder, uses the network, and can
/// end or deceive other processes of the same user. Three things limit it: a person approves each command, unless
/// [`approval`](Self::approval) says otherwise; its environment has no secrets of yours; and its process group ends with its
/// call.
///
/// # Surroundings of a command
/// `bash -c` runs it in the folder, without input. Its environment has `PATH` and `LANG` of your process, the folder as
/// `HOME`, and the variables of [`env`](Self::env); nothing else is inherited.
///
/// # End of a command
/// Each call has a process group of its own, which is killed with `SIGKILL`
/// - when the command ends, with its background processes;
/// - at its timeout: the model receives the output so far;
/// - when the call is cancelled, that is, its future is dropped;
/// - when your process dies, also by `SIGKILL`: a small `/bin/sh` in the group waits for that, and it ends with the call.
///
/// A process that leaves the group, with `setsid` for example, is not found again and lives on. Run your program in a
/// container, or in a cgroup of its own, if nothing may outlive it.
///
/// # Result
/// The first line has the exit code, and the output of both streams follows in the order of writing. An exit code other
/// than 0 is an error result. Of output beyond 1 MiB the middle is dropped while reading, and the first line then has
/// the size of all.
///
/// ```
/// use workflow_agent::Approval;
/// use workflow_agent::builtin::Bash;
/// use workflow_agent::tool::{ToolContext, ToolSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let needs_a_look = |arguments: &serde_json::Value| arguments["command"] != "git status";
/// let bash = Bash::new(folder)?.env("CI", "1").approval(Approval::when(needs_a_look));
/// let [tool] = &bash.into_tools()[..] else { unreachable!() };
///
/// let arguments = serde_json::json!({ "command": "echo $CI; ls missing" });
/// let output = tool.call(arguments, ToolContext::detached("1")).await.map_err(|error| error.to_string())?;
/// assert!(output.is_error && output.text.starts_with("exit code 2\n1\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bash {
    shell: Shell,
    approval: Approval,
    longest: Duration,
}

/// The surroundings of a command.
#[derive(Clone)]
struct Shell {
    root: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl Bash {
    /// The tool for the folder `root`, which becomes the working folder and `HOME` of each command.
    ///
    /// ```
    /// use workflow_agent::builtin::{Bash, BashError};
    ///
    /// assert!(matches!(Bash::new("/no/such/folder"), Err(BashError::Root { .. })));
    /// ```
    ///
    /// # Errors
    /// [`BashError::Root`] if `root` is no folder.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, BashError> {
        let path = root.as_ref();
        let root = path.canonicalize().and_then(|root| {
            let is_folder = root.metadata()?.is_dir();
            if is_folder { Ok(root) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        let root = root.map_err(|source| BashError::Root { path: path.to_owned(), source })?;
        let inherited = |name, otherwise: &str| std::env::var_os(name).unwrap_or_else(|| otherwise.into());
        let env = vec![
            ("PATH".into(), inherited("PATH", "/usr/local/bin:/usr/bin:/bin")),
            ("LANG".into(), inherited("LANG", "C.UTF-8")),
            ("HOME".into(), root.clone().into_os_string()),
        ];
        Ok(Self { shell: Shell { root, env }, approval: Approval::Always, longest: LONGEST })
    }

    /// Adds a variable to the environment of each command, or replaces it. The model can read it.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.shell.env.push((name.into(), value.into()));
        self
    }

    /// Sets which commands a person must approve. Default: all.
    #[must_use]
    pub fn approval(self, approval: Approval) -> Self {
        Self { approval, ..self }
    }

    /// Sets the longest time of a command, which is also that of one for which the model names none. Default: 110 seconds; at
    /// least one.
    #[must_use]
    pub fn timeout(self, longest: Duration) -> Self {
        Self { longest: longest.max(Duration::from_secs(1)), ..self }
    }

    fn spec(&self) -> ToolSpec {
        let most = self.longest.as_secs().max(1);
        let schema = json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The command, as for bash -c." },
                "timeout_seconds": {
                    "type": "integer", "minimum": 1, "maximum": most,
                    "description": format!("The seconds after which the command is killed. Default: {most}."),
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        ToolSpec::new("bash", DESCRIPTION, schema)
            .approval(self.approval.clone())
            .timeout(self.longest.saturating_add(END))
    }
}

#[diagnostic::do_not_recommend]
impl ToolSet for Bash {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        let spec = self.spec();
        let (shell, longest) = (Arc::new(self.shell), self.longest);
        let call = move |arguments, _| {
            let shell = Arc::clone(&shell);
            async move {
                let arguments: Arguments = serde_json::from_value(arguments)?;
                let limit = arguments.timeout_seconds.map_or(longest, Duration::from_secs).min(longest);
                run(&shell, &arguments.command, limit).await
            }
            .boxed()
        };
        vec![Arc::new(FnTool::of(spec, call))]
    }
}

/// Without the values of variables, which may be secret.
impl fmt::Debug for Bash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.shell.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Bash")
            .field("root", &self.shell.root)
            .field("env", &names)
            .field("approval", &self.approval)
            .field("longest", &self.longest)
            .finish()
    }
}

/// Why [`Bash`] cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BashError {
    /// The folder cannot be used.
    #[error("`{}` cannot be used as the folder of commands; name a folder that exists", path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

const DESCRIPTION: &str = "Runs a command with bash and returns its exit code and output. There is no input. Background \
                           processes end with the command.";

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
}

/// Runs a command to its end. If the future is dropped, `group` kills everything.
async fn run(shell: &Shell, command: &str, limit: Duration) -> Result<ToolOutput, ToolError> {
    let mut group = Group::begin().await?;
    let (mut child, pipe) = group.spawn(shell, command)?;
    let mut capture = Capture::default();
    let (status, is_complete) = {
        let mut reading = std::pin::pin!(capture.read(pipe).fuse());
        let ended = async {
            // The command can close its output long before it ends, and end long before others close it.
            match select(std::pin::pin!(child.wait()), reading.as_mut()).await {
                Either::Left((status, _)) => status,
                Either::Right(((), waiting)) => waiting.await,
            }
        };
        let status = timeout(limit, ended).await;
        group.kill();
        let is_complete = reading.is_terminated() || timeout(REST, reading).await.is_ok();
        (status, is_complete)
    };
    group.end(child).await;
    let status = status.ok().transpose()?;
    Ok(output(status, limit, is_complete, capture))
}

fn output(status: Option<ExitStatus>, limit: Duration, is_complete: bool, capture: Capture) -> ToolOutput {
    let end = match status {
        Some(status) => ended(status),
        None => format!("timed out after {} s, and was killed with all its processes", limit.as_secs_f64()),
    };
    let size =
        if capture.is_part() { format!("; the output has {} bytes", capture.bytes()) } else { String::new() };
    let escaped = if is_complete {
        ""
    } else {
        "; a process left the group, so it lives on and its output is not read"
    };
    let text = format!("{end}{size}{escaped}\n{}", capture.into_text());
    let is_success = status.is_some_and(|status| status.success());
    if is_success { ToolOutput::new(text) } else { ToolOutput::error(text) }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::Bash;
    use crate::approval::Approval;
    use crate::tool::{Schema, ToolSet as _};

    /// A90, A20
    #[test]
    fn every_command_needs_approval_unless_the_program_says_otherwise() {
        let asks = |bash: Bash| bash.into_tools()[0].spec().needs_approval(&json!({ "command": "true" }));
        let bash = Bash::new(".").unwrap();
        assert!(asks(bash.clone()));
        assert!(!asks(bash.approval(Approval::Never)));
    }

    /// A90, A10
    #[test]
    fn a_command_gets_no_more_time_than_the_program_allows() {
        let tools = Bash::new(".").unwrap().timeout(Duration::from_secs(20)).into_tools();
        let spec = tools[0].spec();
        let schema = Schema::new(spec.schema()).unwrap();
        assert!(schema.check(&json!({ "command": "true", "timeout_seconds": 20 })).is_ok());
        assert!(schema.check(&json!({ "command": "true", "timeout_seconds": 21 })).is_err());
        // The agent's own limit would drop the output.
        assert!(spec.longest() > Duration::from_secs(20));
    }

    /// A90
    #[test]
    fn the_debug_text_shows_no_value_of_a_variable() {
        let bash = Bash::new(".").unwrap().env("TOKEN", "hunter2");
        let shown = format!("{bash:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
