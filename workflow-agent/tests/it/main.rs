//! Integration tests.

#[cfg(feature = "providers")]
mod providers;
#[cfg(feature = "providers")]
mod validate;
