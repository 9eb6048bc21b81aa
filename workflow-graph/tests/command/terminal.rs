//! The command on a pseudo-terminal: live progress, and questions that people answer.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::Place;

const TEXT: &str = "
graph: refund
nodes:
  find: {function: orders.find, next: approve}
  approve:
    human: {ask: \"Refund \\e[31m${ find.cents } cents?\", reply: {type: boolean}}
    next: done
  done: {value: \"${ approve }\"}
";

/// Reads what the terminal shows until it has this text, or the command has ended.
fn read_until(terminal: &mut File, text: &str) -> String {
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let so_far = String::from_utf8_lossy(&shown).into_owned();
        if so_far.contains(text) {
            return so_far;
        }
        match terminal.read(&mut buffer) {
            // The system reports the end of the command as an error.
            Ok(0) | Err(_) => return so_far,
            Ok(read) => shown.extend(&buffer[..read]),
        }
    }
}

// G38
#[test]
fn progress_moves_and_questions_are_asked_on_a_terminal() {
    let script = "nodes: {find: [{data: {cents: 500}, after: 300ms}]}";
    let place = Place::new(&[("refund.yaml", TEXT), ("script.yaml", script)]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    let mut terminal = File::from(terminal);
    let mut command = place.command(&["run", "refund.yaml", "--script", "script.yaml"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.stdin(side.try_clone().unwrap()).stderr(side).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // Only the command has the other side now.
    drop(command);

    let shown = read_until(&mut terminal, "answer (yes or no)> ");
    assert!(shown.contains("\x1b[") && shown.contains("find"), "a line that changes: {shown:?}");
    assert!(shown.contains("find: success"), "{shown:?}");
    assert!(shown.contains("approve asks: Refund \\u{1b}[31m500 cents?"), "{shown:?}");
    terminal.write_all(b"perhaps\n").unwrap();
    let refused = read_until(&mut terminal, "refused: answer with yes or no");
    assert!(refused.contains("refused"), "{refused:?}");
    terminal.write_all(b"yes\n").unwrap();
    read_until(&mut terminal, "completed at");
    let ran = child.wait_with_output().unwrap();
    assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(0), &b"true\n"[..]));
}
