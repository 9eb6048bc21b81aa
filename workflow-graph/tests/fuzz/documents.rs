//! Documents that are nearly examples: those that can be bound are run with a script.

use crate::corpus::{corpus, format};
use crate::edits::{Edit, edit_text, edit_tree, few, text};
use crate::runs::try_text;
use crate::watchdog::Watchdog;
use crate::{INPUTS, TIME, pick};

/// The example, the format to read it with, the case, and the edits.
type Input = (u8, u8, u32, Vec<Edit>);

/// G3, G11, G14, G23
#[test]
fn an_edited_tree_is_refused_or_runs() {
    let watchdog = Watchdog::of("edited trees");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<Input>().for_each(|input| {
        let (example, _, case, edits) = input;
        let example = corpus().example(*example);
        let mut documents = example.documents.clone();
        for edit in few(edits) {
            let which = pick(edit.1.rotate_left(8), documents.len());
            edit_tree(&mut documents[which], *edit, corpus());
        }
        let text = text(&documents);
        watchdog.watch(input, || try_text(&text, None, example.case(*case)));
    });
}

/// G3, G11, G14, G23
#[test]
fn an_edited_text_is_refused_or_runs() {
    let watchdog = Watchdog::of("edited texts");
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    check.with_type::<Input>().for_each(|input| {
        let (example, as_format, case, edits) = input;
        let example = corpus().example(*example);
        let mut text = example.text.clone().into_bytes();
        for edit in few(edits) {
            edit_text(&mut text, *edit, corpus());
        }
        let text = String::from_utf8_lossy(&text);
        // Another format than the text's refuses it early, so that is tried less.
        let as_format = if as_format % 16 == 0 { format(as_format / 16) } else { None };
        watchdog.watch(input, || try_text(&text, as_format.clone(), example.case(*case)));
    });
}

/// The examples as they are run, so that edits begin with documents that do.
#[test]
fn every_example_runs_as_it_is() {
    for example in &corpus().examples {
        let runs = |text: &str| example.cases.iter().filter(|case| try_text(text, None, case)).count();
        let refused = example.cases.iter().filter(|case| case["expect"].get("refused").is_some()).count();
        let name = example.name;
        assert_eq!(runs(&example.text), example.cases.len() - refused, "{name}");
        assert_eq!(runs(&text(&example.documents)), example.cases.len() - refused, "{name}");
    }
}
