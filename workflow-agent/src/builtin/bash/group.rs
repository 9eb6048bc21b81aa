//! The process group of a call: its guard, and the command in it. It owns killing; time and output are the caller's.
//!
//! The guard is a `/bin/sh` that leads the group and reads from a pipe whose other end only this process has. The pipe
//! closes when this process dies, however that happens, and the guard then kills its own group. Since the guard lives,
//! or lies unreaped, until the group was killed, the id of the group never belongs to processes of others.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};

use super::Shell;

/// Ignores what a command may send to its own group, says so, waits for the end of the pipe, and kills the group. All are
/// builtins of the shell.
const GUARD: &str =
    "trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU; echo; read -r line; kill -s KILL 0";

/// A process group. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Group {
    /// Not reaped before the group is killed. Its input is the pipe.
    guard: Box<dyn ChildWrapper>,
    id: i32,
    is_killed: bool,
}

impl Group {
    /// Starts the guard, and waits until signals no longer end it.
    pub(super) async fn begin() -> Result<Self, GroupError> {
        let mut command = CommandWrap::with_new("/bin/sh", |command| {
            command.args(["-c", GUARD]).env_clear().current_dir("/");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        });
        let guard =
            command.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().map_err(GroupError::Guard)?;
        let id = guard.id().and_then(|id| i32::try_from(id).ok()).ok_or(GroupError::NoGuard)?;
        let mut group = Self { guard, id, is_killed: false };
        let mut ready = group.guard.stdout().take().ok_or(GroupError::NoGuard)?;
        ready.read_exact(&mut [0]).await.map_err(GroupError::Guard)?;
        Ok(group)
    }

    /// Starts a command in the group. The pipe has its output and its errors in the order of writing.
    pub(super) fn spawn(&self, shell: &Shell, script: &str) -> Result<(Child, ChildStdout), GroupError> {
        let (reader, writer) = io::pipe().map_err(GroupError::Command)?;
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-c", script]);
        command.env_clear().envs(shell.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&shell.root).process_group(self.id).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(GroupError::Command)?).stderr(writer);
        let child = command.spawn().map_err(GroupError::Command)?;
        // `command` holds the writing end, and ends here: otherwise the pipe would never close.
        drop(command);
        let pipe = ChildStdout::from_std(OwnedFd::from(reader).into()).map_err(GroupError::Command)?;
        Ok((child, pipe))
    }

    /// Kills all processes of the group.
    pub(super) fn kill(&mut self) {
        if !self.is_killed {
            self.is_killed = true;
            // It fails only if there is no process of the group left.
            let _ = self.guard.start_kill();
        }
    }

    /// Kills the group and reaps its two processes that are children of this one.
    pub(super) async fn end(mut self, mut child: Child) {
        self.kill();
        let _ = child.wait().await;
        // The wrapper's own `wait` would reap every child of the group, and block a thread for it.
        let _ = self.guard.inner_mut().wait().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum GroupError {
    #[error("the command was not run, because the guard of its processes cannot be started")]
    Guard(#[source] io::Error),
    #[error("the command was not run, because the guard of its processes ended at once")]
    NoGuard,
    #[error("the command cannot be started")]
    Command(#[source] io::Error),
}
