//! Integration tests.

mod builtin;
