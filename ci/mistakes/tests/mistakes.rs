//! The compiler's messages for mistakes: in workflows one file per rule, named after it; in tools a file has the mistakes that
//! a macro reports, each in a module named after it, or one mistake that the compiler itself reports.
//! `TRYBUILD=overwrite` rewrites the expected messages.

/// Programs without a mistake, compiled with these tests and run. So the cases are only checked, and no machine code is made of
/// what they depend on.
#[path = "ui/pass"]
mod pass {
    mod counts_by_name;
    mod generic_workflow;
    mod graphs_without_mistakes;
    mod parameters_that_only_wire;
    mod renamed_dependency;
    mod renamed_imports;
    mod type_aliases;
}

/// The same for tools.
#[path = "tools/pass"]
mod pass_tools {
    mod forms_of_tools;
    mod names_beside_a_tool;
    mod renamed_dependency;
    mod type_aliases;
}

#[test]
fn mistakes_are_compile_errors() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.compile_fail("tests/tools/*.rs");
}
