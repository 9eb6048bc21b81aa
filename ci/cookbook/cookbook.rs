//! The cookbook, compiled and run: a module per page of `docs/cookbook`, with the page's program and its tests. The build
//! script makes them. `cargo test -p workflow-cookbook saga` runs one page.

use std::process::{ExitCode, Termination};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The index of the pages.
const INDEX: &str = include_str!("../../docs/cookbook/README.md");

fn assert_succeeds(ended: impl Termination) {
    assert_eq!(ended.report(), ExitCode::SUCCESS, "the program of the page fails");
}

#[test]
fn the_index_names_every_page() {
    for entry in std::fs::read_dir("../../docs/cookbook").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name == "README.md" || INDEX.contains(&format!("({name})")),
            "the index does not name {name}"
        );
    }
}
