//! Tests in a limited process: the test starts itself again in a shell that sets the limit, and runs its body there.
//! Every Linux has process limits, for any user.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the folder of the limited process.
const FOLDER: &str = "WORKFLOW_REDB_LIMITED_FOLDER";

/// The folder, if this process is the limited one.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Limits files to this many blocks of 512 bytes, until changed from outside.
pub(crate) fn to_blocks(blocks: u32) -> Command {
    let mut shell = Command::new("sh");
    // Without the trap, the signal kills the process instead of failing the write.
    shell.args(["-c", &format!("ulimit -S -f {blocks}; trap '' XFSZ; exec \"$@\""), "sh"]);
    shell
}

/// Makes file permissions apply, for root too.
pub(crate) fn to_permissions() -> Command {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let without = "--bounding-set=-dac_override,-dac_read_search";
    let mut limited = Command::new(if is_root { "setpriv" } else { "env" });
    limited.args(is_root.then_some(without));
    limited
}

/// Runs a test of this program in a limited process, and fails if the test does.
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
