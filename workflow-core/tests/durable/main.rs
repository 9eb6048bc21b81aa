//! Runs that go on after their process is gone (S38–S43): from every prefix of a journal, read back from its bytes.

mod attach;
mod fixtures;
mod prefixes;
mod shapes;
