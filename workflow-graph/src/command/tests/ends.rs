//! The end of a command: of all its processes, however it comes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::{CommandSpec, run};
use super::{spec, text};

/// The folder of a helper process, which [`a_parent_to_be_killed`] is only with this variable.
const FOLDER: &str = "WORKFLOW_GRAPH_TEST_FOLDER";
/// Longer than anything here takes. It only makes a failure out of a hang.
const HANG: Duration = Duration::from_mins(1);

/// A pipe that shows the death of all processes that have it open.
struct Watch {
    /// The first line of the pipe.
    started: Option<oneshot::Receiver<String>>,
    /// The end of the pipe: no process has it open any more.
    ended: oneshot::Receiver<()>,
}

/// Opens the pipe in folder `$1`, and writes the group of the process to it.
const ON: &str = "exec 3>\"$1/watch\"; set -- $(ps -o pgid= -p $$); echo $1 >&3; ";

impl Watch {
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

    fn spec(folder: &Path, script: &str) -> CommandSpec {
        spec(["sh", "-c", &format!("{ON}{script}"), "sh", folder.to_str().unwrap()])
    }

    async fn started(&mut self) -> String {
        let started = self.started.take().expect("the pipe is read once");
        let group = tokio::time::timeout(HANG, started).await.expect("the program starts").unwrap();
        assert!(group.parse::<u32>().is_ok(), "{group:?}");
        group
    }

    async fn ended(self) {
        tokio::time::timeout(HANG, self.ended).await.expect("all processes of the group die").unwrap();
    }
}

/// The processes of a group that live, and those of this process's children that are not reaped.
#[cfg(target_os = "linux")]
fn left(group: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let own = std::process::id().to_string();
    let is_left = |stat: &String| {
        // The name in parentheses can have spaces; state, parent and group follow.
        let fields: Vec<&str> =
            stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').take(3).collect();
        matches!(fields[..], [state, parent, of] if of == group && (parent == own || !matches!(state, "Z" | "X")))
    };
    processes.filter(is_left).collect()
}

/// Lets the runtime reap, until nothing is left of a group.
async fn none_left(group: &str) {
    #[cfg(target_os = "linux")]
    {
        let began = std::time::Instant::now();
        while !left(group).is_empty() {
            assert!(began.elapsed() < HANG, "{:?} are left", left(group));
            tokio::task::yield_now().await;
        }
    }
    let _ = group;
}

// G28
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_leaves_no_process_behind() {
    for _ in 0..20 {
        let group = text(spec(["cut", "-d ", "-f5", "/proc/self/stat"])).await;
        assert!(group.parse::<u32>().is_ok(), "{group}");
        assert_eq!(left(&group), [] as [&str; 0], "the guard is gone, too");
    }
}

// G28
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_inherits_no_open_file() {
    let list = ["-c", "ls /proc/self/fd"];
    // The harness may leave files open for every child, so a child without the crate shows what is usual.
    let usual = Command::new("sh").args(list).stdin(Stdio::null()).output().unwrap();
    assert_eq!(text(spec(["sh", list[0], list[1]])).await + "\n", String::from_utf8(usual.stdout).unwrap());
}

// G28
#[tokio::test]
async fn background_processes_end_with_their_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Watch::new(folder.path());
    let script = "sleep 1000 & (trap '' TERM HUP; sleep 1000) & echo done";
    assert_eq!(text(Watch::spec(folder.path(), script)).await, "done");
    let group = watch.started().await;
    watch.ended().await;
    none_left(&group).await;
}

// G28
#[tokio::test]
async fn a_dropped_attempt_ends_the_whole_group() {
    // The second program stops itself and its guard.
    for script in ["sleep 1000 & (sleep 1000; :)", "sleep 1000 & kill -STOP 0; sleep 1000"] {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(folder.path());
        let spec = Watch::spec(folder.path(), &format!("trap '' TERM INT HUP; {script}"));
        let attempt = tokio::spawn(run(spec));
        let group = watch.started().await;
        attempt.abort();
        assert!(attempt.await.unwrap_err().is_cancelled());
        watch.ended().await;
        none_left(&group).await;
    }
}

// G28
#[tokio::test]
async fn the_death_of_this_process_ends_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Watch::new(folder.path());
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "command::tests::ends::a_parent_to_be_killed", "--nocapture"])
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
    none_left(&group).await;
}

/// The other process of the test before. It reports its group, after it has sent the guard what scripts send to groups.
#[tokio::test]
async fn a_parent_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let signals = "trap '' TERM INT HUP; kill -TERM 0; kill -INT 0; kill -HUP 0; ";
    let mut spec = Watch::spec(Path::new(&folder), "sleep 1000 & sleep 1000");
    spec.run[2].insert_str(0, signals);
    let _ = run(spec).await;
}

// G28
#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    let script = "setsid sh -c 'echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 1000' \"$0\" & \
                  until [ -e \"$0\" ]; do :; done; echo done";
    assert_eq!(text(spec(["sh", "-c", script, path.to_str().unwrap()])).await, "done");
    let pid = fs::read_to_string(path).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success(), "it lived on");
}
