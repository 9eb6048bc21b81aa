//! The tool for commands: results, surroundings, and the death of all processes of a call.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;
use workflow_agent::builtin::{Bash, BashError};

use super::Tools;

/// The folder of a helper process, which [`a_parent_to_be_killed`] is only with this variable.
const FOLDER: &str = "WORKFLOW_AGENT_TEST_FOLDER";
/// Longer than anything here takes. It only makes a failure out of a hang.
const HANG: Duration = Duration::from_mins(1);

fn bash() -> (TempDir, Tools) {
    let folder = tempfile::tempdir().unwrap();
    let tools = Tools::of(Bash::new(folder.path()).unwrap());
    (folder, tools)
}

/// A pipe that shows the death of all processes that have it open.
struct Watch {
    /// The first line of the pipe.
    started: Option<oneshot::Receiver<String>>,
    /// The end of the pipe: no process has it open any more.
    ended: oneshot::Receiver<()>,
}

impl Watch {
    /// Makes the pipe `watch`. A command opens it by `exec 3>watch` and writes a line.
    fn new(folder: &Path) -> Self {
        let path = folder.join("watch");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (send_started, started) = oneshot::channel();
        let (send_ended, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(fs::File::open(path).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            let _ = send_started.send(line.trim().to_owned());
            pipe.read_to_end(&mut Vec::new()).unwrap();
            let _ = send_ended.send(());
        });
        Self { started: Some(started), ended }
    }

    async fn started(&mut self) -> String {
        let started = self.started.take().expect("the pipe is read once");
        tokio::time::timeout(HANG, started).await.expect("the command starts").unwrap()
    }

    async fn ended(self) {
        tokio::time::timeout(HANG, self.ended).await.expect("all processes of the group die").unwrap();
    }
}

/// The processes of a group that are not dead.
#[cfg(target_os = "linux")]
fn living(group: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path: PathBuf = entry.ok()?.path();
        fs::read_to_string(path.join("stat")).ok()
    });
    let of_group = |stat: &String| {
        // The name in parentheses can have spaces; state, parent and group follow.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let mut fields = fields.split(' ');
        let state = fields.next().unwrap_or_default();
        fields.nth(1) == Some(group) && !matches!(state, "Z" | "X")
    };
    processes.filter(of_group).collect()
}

/// A90
#[tokio::test]
async fn a_result_has_the_exit_code_and_both_streams_in_order() {
    let (_folder, tools) = bash();
    let text = tools.text("bash", json!({ "command": "echo one; echo two >&2; echo three; cat" })).await;
    assert_eq!(text, "exit code 0\none\ntwo\nthree\n");
    let failed = tools.call("bash", json!({ "command": "echo wrong >&2; exit 7" })).await.unwrap();
    assert_eq!((failed.text.as_str(), failed.is_error), ("exit code 7\nwrong\n", true));
    let ended = tools.call("bash", json!({ "command": "kill -9 $$" })).await.unwrap();
    assert_eq!((ended.text.as_str(), ended.is_error), ("ended by signal 9\n", true));
    let closed = tools.text("bash", json!({ "command": "exec >&- 2>&-; true" })).await;
    assert_eq!(closed, "exit code 0\n");
}

/// A90
#[tokio::test]
async fn a_command_sees_its_folder_and_a_cleared_environment() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let tools = Tools::of(Bash::new(folder.path()).unwrap().env("EXTRA", "1").env("LANG", "C"));
    let text = tools.text("bash", json!({ "command": "env | sort; pwd" })).await;
    let names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    // Bash itself adds `PWD`, `SHLVL` and `_`. Cargo gave this process many more.
    assert_eq!(names, ["EXTRA", "HOME", "LANG", "PATH", "PWD", "SHLVL", "_"]);
    assert!(text.contains(&format!("\nHOME={}\n", root.display())) && text.contains("\nLANG=C\n"));
    assert!(text.ends_with(&format!("\n{}\n", root.display())));
}

/// A90
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_inherits_no_file_of_the_tool() {
    let (_folder, tools) = bash();
    let list = "ls /proc/self/fd";
    // The harness may leave files open for every child, so a child without the tool shows what is usual.
    let usual = Command::new("bash").args(["-c", list]).stdin(Stdio::null()).output().unwrap();
    let text = tools.text("bash", json!({ "command": list })).await;
    assert_eq!(text, format!("exit code 0\n{}", String::from_utf8(usual.stdout).unwrap()));
}

/// A90
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_leaves_no_process_behind() {
    let (_folder, tools) = bash();
    for _ in 0..20 {
        let text = tools.text("bash", json!({ "command": "cut -d' ' -f5 /proc/self/stat" })).await;
        let group = text.lines().nth(1).unwrap();
        assert!(group.parse::<u32>().is_ok(), "{text}");
        assert_eq!(living(group), [] as [&str; 0], "the guard is gone, too");
    }
}

/// A90
#[tokio::test]
async fn background_processes_end_with_their_command() {
    let (folder, tools) = bash();
    let mut watch = Watch::new(folder.path());
    let command = "exec 3>watch; echo on >&3; sleep 1000 & (trap '' TERM HUP; sleep 1000) & exit 3";
    let output = tools.call("bash", json!({ "command": command })).await.unwrap();
    assert_eq!((output.text.as_str(), output.is_error), ("exit code 3\n", true));
    watch.started().await;
    watch.ended().await;
}

/// A90
#[tokio::test]
async fn a_timeout_kills_the_group_and_keeps_the_output() {
    let (folder, tools) = bash();
    let mut watch = Watch::new(folder.path());
    let command = "echo before; trap '' TERM INT HUP; exec 3>watch; echo on >&3; sleep 1000 & sleep 1000";
    let arguments = json!({ "command": command, "timeout_seconds": 100 });
    let call = tokio::spawn(async move { tools.call("bash", arguments).await });
    watch.started().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(101)).await;
    tokio::time::resume();
    let output = call.await.unwrap().unwrap();
    assert!(output.is_error);
    assert_eq!(output.text, "timed out after 100 s, and was killed with all its processes\nbefore\n");
    watch.ended().await;
}

/// A90, A16
#[tokio::test]
async fn cancelling_a_call_kills_the_group() {
    let (folder, tools) = bash();
    let mut watch = Watch::new(folder.path());
    let command = "trap '' TERM INT HUP; exec 3>watch; echo on >&3; sleep 1000 & sleep 1000";
    let call = tokio::spawn(async move { tools.call("bash", json!({ "command": command })).await });
    watch.started().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    watch.ended().await;
}

/// A90
#[tokio::test]
async fn the_death_of_the_parent_kills_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Watch::new(folder.path());
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "builtin::bash::a_parent_to_be_killed", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let group = watch.started().await;
    // On Unix this is SIGKILL: nothing of the parent runs any more.
    parent.kill().unwrap();
    parent.wait().unwrap();
    watch.ended().await;
    #[cfg(target_os = "linux")]
    {
        let began = std::time::Instant::now();
        while !living(&group).is_empty() {
            assert!(began.elapsed() < HANG, "{:?} outlived its parent", living(&group));
            tokio::task::yield_now().await;
        }
    }
    let _ = group;
}

/// The other process of the test before. It reports its group, after it has sent the guard what scripts send to groups.
#[tokio::test]
async fn a_parent_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let tools = Tools::of(Bash::new(folder).unwrap());
    let command = "trap '' TERM INT HUP; kill -TERM 0; kill -INT 0; kill -HUP 0; exec 3>watch; \
                   read -r stat < /proc/self/stat; set -- ${stat##*) }; echo $3 >&3; sleep 1000 & sleep 1000";
    let _ = tools.call("bash", json!({ "command": command })).await;
}

/// A90, A16
#[tokio::test]
async fn a_flood_of_output_is_read_to_its_end_and_bounded() {
    let (_folder, tools) = bash();
    let command = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last";
    let text = tools.text("bash", json!({ "command": command })).await;
    assert!(text.len() < 1024 * 1024);
    assert!(
        text.starts_with("exit code 0; the output has 20000012 bytes\nfirst\nxxx")
            && text.ends_with("x\nlast\n")
    );
    let (head, rest) = text.split_once("\n[… ").unwrap();
    let (missing, tail) = rest.split_once(" bytes are missing here …]\n").unwrap();
    let head = head.split_once('\n').unwrap().1;
    assert_eq!(head.len() + tail.len() + missing.parse::<usize>().unwrap(), 20_000_012);
}

/// A90
#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_call() {
    let (folder, tools) = bash();
    let command = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' & \
                   while [ ! -e pid ]; do read -t 0.01 < <(:); done; echo done";
    let text = tools.text("bash", json!({ "command": command })).await;
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success(), "it lived on");
    assert!(
        text.starts_with("exit code 0; a process left the group") && text.ends_with("\ndone\n"),
        "{text}"
    );
}

/// A90
#[tokio::test]
async fn commands_that_cannot_start_are_failures() {
    let (folder, tools) = bash();
    for command in ["true \0".to_owned(), "x".repeat(4 * 1024 * 1024)] {
        let failure = tools.failure("bash", json!({ "command": command })).await;
        assert!(failure.starts_with("the command cannot be started: "), "{failure}");
    }
    fs::remove_dir(folder.path()).unwrap();
    let failure = tools.failure("bash", json!({ "command": "true" })).await;
    assert!(failure.starts_with("the command cannot be started: "), "{failure}");
}

/// A90
#[test]
fn the_folder_must_exist_and_be_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file, folder.path().join("missing")] {
        let BashError::Root { path: named, .. } = Bash::new(&path).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!(named, path);
    }
}
