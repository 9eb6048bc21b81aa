//! The process of a server: its start, its environment, its standard error, its end. It does not know the protocol.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::{Command, Mcp, McpError};
use crate::tool::terminal_safe;

/// The bytes of standard error that are stored.
const STDERR: usize = 64 * 1024;
/// The bytes of standard error that an error shows.
const SHOWN: usize = 2 * 1024;
/// The longest wait for a killed process, and then for the rest of its standard error.
const AFTERMATH: Duration = Duration::from_secs(2);

/// Words of a server besides messages: the end of the standard error of all its processes, and the first oddity of the
/// standard output of the latest.
#[derive(Clone, Default)]
pub(super) struct Asides(Arc<Mutex<Said>>);

#[derive(Default)]
struct Said {
    stderr: VecDeque<u8>,
    oddity: String,
}

impl Asides {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) {
        let stderr = &mut self.said().stderr;
        stderr.extend(bytes);
        let excess = stderr.len().saturating_sub(STDERR);
        stderr.drain(..excess);
    }

    /// The stored standard error, without control sequences.
    pub(super) fn stderr(&self) -> String {
        terminal_safe(&String::from_utf8_lossy(self.said().stderr.make_contiguous())).into_owned()
    }

    /// The end of the standard error, for errors.
    pub(super) fn last_words(&self) -> String {
        let text = self.stderr();
        let text = text.trim();
        let mut from = text.len().saturating_sub(SHOWN);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text[from..].trim_start().to_owned()
    }

    /// Remembers the first oddity of a process.
    pub(super) fn note(&self, oddity: impl FnOnce() -> String) {
        let said = &mut self.said().oddity;
        if said.is_empty() {
            *said = oddity();
        }
    }

    pub(super) fn oddity(&self) -> String {
        self.said().oddity.clone()
    }
}

/// A running process with its group. Dropping it kills the group.
pub(super) struct Process {
    /// Empty after the end.
    child: Mutex<Option<Box<dyn ChildWrapper>>>,
    drain: AbortHandle,
    /// Closed when the standard error has been read to its end.
    drained: watch::Receiver<()>,
}

impl Process {
    pub(super) fn spawn(
        mcp: &Mcp,
        command: &Command,
        asides: &Asides,
    ) -> Result<(Arc<Self>, ChildStdin, ChildStdout), McpError> {
        let server = || Arc::clone(&mcp.name);
        let Some(program) = command.line.first() else {
            return Err(McpError::NoCommand { server: server() });
        };
        let shown = program.to_string_lossy().into_owned();
        // A missing folder and a missing program are one error of the system.
        if let Some(folder) = command.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(McpError::FolderNotFound { server: server(), folder: folder.clone() });
        }
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => McpError::CommandNotFound { server: server(), program: shown.clone() },
            _ => McpError::Spawn { server: server(), program: shown.clone(), source },
        };
        let mut child = wrapped(program, command).spawn().map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin().take(), child.stdout().take(), child.stderr().take())
        else {
            return Err(failed(io::Error::other("the process has no pipes")));
        };
        asides.said().oddity.clear();
        let (drain, drained) = drain(stderr, asides.clone());
        let process = Self { child: Mutex::new(Some(child)), drain, drained };
        Ok((Arc::new(process), stdin, stdout))
    }

    /// Kills the group, without waiting for its end.
    pub(super) fn kill(&self) {
        let Some(mut child) = self.killed() else { return };
        // Reaps the process; without a runtime, dropping the handle leaves that to the next one.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { child.wait().await });
        }
    }

    /// Kills the group, and waits for its end and for the rest of the standard error.
    pub(super) async fn end(&self) {
        if let Some(mut child) = self.killed() {
            let _ = timeout(AFTERMATH, child.wait()).await;
        }
        // An error means that the writing end is gone: all is read.
        let _ = timeout(AFTERMATH, self.drained.clone().changed()).await;
    }

    /// Kills before anything waits, so that the number of the group cannot have been given to another.
    fn killed(&self) -> Option<Box<dyn ChildWrapper>> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // An error means that the group has ended by itself.
        let _ = child.start_kill();
        Some(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // A process that left the group may hold the pipe open.
        self.drain.abort();
    }
}

fn wrapped(program: &OsStr, command: &Command) -> CommandWrap {
    let mut wrapped = CommandWrap::with_new(program, |process| {
        process.args(&command.line[1..]).env_clear();
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                process.env(name, value);
            }
        }
        process.envs(command.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &command.folder {
            process.current_dir(folder);
        }
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    #[cfg(unix)]
    wrapped.wrap(ProcessGroup::leader());
    wrapped.wrap(KillOnDrop);
    wrapped
}

/// Reads the standard error always, so that a talkative server never blocks.
fn drain(mut stderr: ChildStderr, asides: Asides) -> (AbortHandle, watch::Receiver<()>) {
    let (open, drained) = watch::channel(());
    let task = tokio::spawn(async move {
        let _open = open;
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            asides.push(&buffer[..read]);
        }
    });
    (task.abort_handle(), drained)
}

#[cfg(test)]
mod tests {
    use super::{Asides, SHOWN, STDERR};

    /// A81
    #[test]
    fn the_last_64_kib_of_standard_error_stay_and_errors_show_their_end() {
        let asides = Asides::default();
        asides.push(&b"early\n".repeat(20_000));
        asides.push("ä".repeat(4_000).as_bytes());
        asides.push(b"\x1b[31mlast words\x1b[0m\n");
        assert!(asides.stderr().len() <= STDERR && asides.stderr().contains("early"));
        assert!(asides.last_words().len() <= SHOWN);
        assert!(asides.last_words().ends_with("älast words"), "{}", asides.last_words());
    }
}
