//! The compiler's messages for mistakes. A file has the mistakes that a macro reports, each in a module named after it, or
//! one mistake that the compiler itself reports. `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn mistakes_are_compile_errors_and_everything_else_compiles() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/*.rs");
}
