//! Integration tests.

#[cfg(feature = "mcp")]
mod mcp;
