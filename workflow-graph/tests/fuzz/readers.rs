//! Bytes and changed texts, for the reader of each format and the one of scripts.

use workflow_graph::ScriptedExecutor;

use crate::corpus::{corpus, format};
use crate::edits::{Edit, edit_text, few};
use crate::runs::read;
use crate::watchdog::Watchdog;
use crate::{INPUTS, TIME};

fn read_all(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let scripts = ScriptedExecutor::parse(&text, "fuzz").is_ok();
    (0..5).fold(scripts, |is_read, number| read(&text, format(number)).is_some() || is_read)
}

/// G3
#[test]
fn any_bytes_are_read_or_refused() {
    let watchdog = Watchdog::of("bytes");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<Vec<u8>>().for_each(|bytes| watchdog.watch(bytes, || read_all(bytes)));
}

/// G3
#[test]
fn a_changed_text_is_read_or_refused() {
    let watchdog = Watchdog::of("changed texts");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<(u8, Vec<Edit>)>().for_each(|input| {
        let mut text = corpus().example(input.0).text.clone().into_bytes();
        for edit in few(&input.1) {
            edit_text(&mut text, *edit, corpus());
        }
        watchdog.watch(input, || read_all(&text));
    });
}
