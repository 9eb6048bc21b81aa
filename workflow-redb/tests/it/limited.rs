//! Tests whose process is limited: it starts itself again, in a shell that sets the limit, and does there what the test
//! is about. Limits of a process are what every Linux has, whoever runs the tests.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the limited process finds its folder.
const FOLDER: &str = "WORKFLOW_REDB_LIMITED_FOLDER";

/// The folder, if this process is the limited one.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Files are no greater than so many blocks of 512 bytes, until that is changed from outside.
pub(crate) fn to_blocks(blocks: u32) -> Command {
    let mut shell = Command::new("sh");
    // Without the trap the process is killed instead of told.
    shell.args(["-c", &format!("ulimit -S -f {blocks}; trap '' XFSZ; exec \"$@\""), "sh"]);
    shell
}

/// What files and folders say of who may do what holds, for root too.
pub(crate) fn to_permissions() -> Command {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let without = "--bounding-set=-dac_override,-dac_read_search";
    let mut limited = Command::new(if is_root { "setpriv" } else { "env" });
    limited.args(is_root.then_some(without));
    limited
}

/// Runs a test of this program in a limited process, and fails if it does.
pub(crate) fn run(mut limited: Command, test: &str, folder: &Path) {
    let program = std::env::current_exe().unwrap();
    limited.arg(program).args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    let ran = limited.output().unwrap_or_else(|error| panic!("{limited:?} cannot be run: {error}"));
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{}\n{said}\n{}",
        ran.status,
        String::from_utf8_lossy(&ran.stderr)
    );
}
