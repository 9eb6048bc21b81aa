//! Integration tests.

mod memory;
