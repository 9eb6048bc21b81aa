//! One execution of a program, from its start to the end of its group, and its failures.

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, FusedFuture as _, select, try_join3};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::time::timeout;

use super::CommandSpec;
use super::group::Group;
use super::output::{self, Cut, Tail};
use crate::NodeError;

/// The longest wait for the end of the streams after the group was killed. Only a process that left the group needs it:
/// the output of the program itself is there by then.
const REST: Duration = Duration::from_secs(1);

/// Runs the program to its end, and returns its output. If the future is dropped, `Group` kills everything.
pub(super) async fn output(spec: &CommandSpec) -> Result<String, NodeError> {
    let mut group = Group::begin().await.map_err(|error| unguarded(&error))?;
    let mut child = group.spawn(spec).map_err(|error| unstarted(spec, &error))?;
    let (mut text, mut errors) = (Vec::new(), Tail::new(&spec.env));
    let ended = {
        // All at once: a program may print before it has read its input, and wait until that is read.
        let streams = try_join3(
            output::read(child.stdout.take(), &mut text),
            errors.read(child.stderr.take()).map(Ok),
            feed(child.stdin.take(), spec.stdin.as_deref()).map(Ok),
        );
        let mut streams = pin!(streams.fuse());
        // The program can close its streams long before it ends, and end long before others close them.
        let ended = match select(pin!(child.wait()), streams.as_mut()).await {
            Either::Left((status, _)) => status.map_err(Cut::Failed),
            Either::Right((Ok(_), waiting)) => waiting.await.map_err(Cut::Failed),
            Either::Right((Err(cut), _)) => Err(cut),
        };
        group.kill();
        if streams.is_terminated() {
            ended
        } else {
            match timeout(REST, streams).await {
                Ok(Err(cut)) => Err(cut),
                Ok(Ok(_)) | Err(_) => ended,
            }
        }
    };
    group.end(child).await;
    match ended {
        Ok(status) if status.success() => Ok(lossy(text)),
        Ok(status) => Err(failed(spec, status, &errors)),
        Err(Cut::TooMuch) => Err(too_much(spec)),
        Err(Cut::Failed(error)) => Err(lost(spec, &error)),
    }
}

/// Writes the input and closes it. A program need not read its input, so a failure says nothing.
async fn feed(pipe: Option<ChildStdin>, text: Option<&str>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn failed(spec: &CommandSpec, status: ExitStatus, errors: &Tail) -> NodeError {
    let (program, end, errors) = (output::name(spec), end(status), errors.text(&spec.env));
    let text = if errors.is_empty() { String::new() } else { format!(":\n{errors}") };
    NodeError::tool(format!("`{program}` {end}{text}"))
}

fn end(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("failed with {status}"),
    }
}

fn too_much(spec: &CommandSpec) -> NodeError {
    let program = output::name(spec);
    NodeError::tool(format!("`{program}` printed more than 1 MiB, so it was killed"))
}

fn lost(spec: &CommandSpec, error: &io::Error) -> NodeError {
    let program = output::name(spec);
    NodeError::transient(format!("the end of `{program}` cannot be read: {error}"))
}

fn unguarded(error: &io::Error) -> NodeError {
    let text = format!(
        "the command was not run, because `/bin/sh`, the guard of its processes, cannot start: {error}"
    );
    by_kind(error.kind(), text)
}

fn unstarted(spec: &CommandSpec, error: &io::Error) -> NodeError {
    let program = output::name(spec);
    let text = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the program `{program}` is not found; name one on `PATH`, or a path")
        }
        // Documents can contain zero bytes, and programs cannot receive them.
        io::ErrorKind::InvalidInput => format!("`{program}` cannot start: `run` or `env` has a zero byte"),
        _ => format!("`{program}` cannot start: {error}"),
    };
    by_kind(error.kind(), text)
}

/// Whether a program could start later is a matter of the reason: a missing one stays missing, but a system without free
/// processes recovers.
fn by_kind(kind: io::ErrorKind, text: String) -> NodeError {
    use io::ErrorKind as Kind;

    match kind {
        Kind::NotFound
        | Kind::PermissionDenied
        | Kind::InvalidInput
        | Kind::ArgumentListTooLong
        | Kind::NotADirectory
        | Kind::IsADirectory => NodeError::permanent(text),
        _ => NodeError::transient(text),
    }
}
