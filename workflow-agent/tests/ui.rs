//! The compiler's messages for mistakes: one file per rule, named after it. `TRYBUILD=overwrite` rewrites the expected
//! messages.

#[test]
fn mistakes_are_compile_errors_and_everything_else_compiles() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/*.rs");
}
