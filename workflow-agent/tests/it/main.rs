//! Integration tests.

mod smoke;
