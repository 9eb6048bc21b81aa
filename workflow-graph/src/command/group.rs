//! The process group of a command: its guard, and the program in it. It owns killing; output and time are the caller's.
//!
//! The guard is a `/bin/sh` that leads the group and reads from a pipe whose other end only this process has. The pipe
//! closes when this process dies, however that happens, and the guard then kills its own group. The guard lives, or lies
//! unreaped, until the group was killed, so the id of the group never belongs to processes of others.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::CommandSpec;

/// Ignores what a program may send to its own group, says so, waits for the end of the pipe, and kills the group. All are
/// builtins of the shell.
const GUARD: &str =
    "trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU; echo; read -r line; kill -s KILL 0";

/// A process group. Dropped, it is killed.
pub(super) struct Group {
    /// Not reaped before the group is killed. Its input is the pipe.
    guard: Child,
    id: Pid,
    is_killed: bool,
}

impl Group {
    /// Starts the guard, and waits until signals no longer end it.
    pub(super) async fn begin() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let guard = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = guard.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("it ended at once"))?;
        let mut group = Self { guard, id, is_killed: false };
        if let Some(mut ready) = group.guard.stdout.take() {
            ready.read_exact(&mut [0]).await?;
        }
        Ok(group)
    }

    /// Starts the program in the group.
    pub(super) fn spawn(&self, spec: &CommandSpec) -> io::Result<Child> {
        let (program, arguments) = spec.run.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(spec.env.iter().map(|(name, value)| (name, value)));
        let stdin = if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(self.id.as_raw_nonzero().get()).kill_on_drop(true).spawn()
    }

    /// Kills all processes of the group.
    pub(super) fn kill(&mut self) {
        if !self.is_killed {
            self.is_killed = true;
            // It fails only if there is no process of the group left.
            let _ = kill_process_group(self.id, Signal::KILL);
        }
    }

    /// Kills the group, and reaps its two processes that are children of this one.
    pub(super) async fn end(mut self, mut program: Child) {
        self.kill();
        let _ = program.wait().await;
        let _ = self.guard.wait().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
