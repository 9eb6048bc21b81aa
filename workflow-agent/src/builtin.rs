//! Tools that ship with the crate: files of a folder, a shell, web pages. Each is a feature of its own, and no agent has
//! one unless you add it.
//!
//! | set | feature | tools | limits |
//! |---|---|---|---|
//! | `Files` | `files` | `read_file`, `write_file`, `list_files` | nothing outside of its folder |
//! | `Bash` (Unix) | `bash` | `bash` | a person approves each command; no sandbox |
//! | `Fetch` | `fetch` | `fetch` | public addresses, and those that you allow |
//!
//! This module deliberately has no sandbox: a command of `Bash` can do all that your process can do. Run the process in
//! a container if a model that errs, or that somebody talked into something, must not reach the rest of the machine.

#[cfg(all(unix, feature = "bash"))]
mod bash;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "files")]
mod files;

#[cfg(all(unix, feature = "bash"))]
pub use bash::{Bash, BashError};
#[cfg(feature = "fetch")]
pub use fetch::{Fetch, FetchError};
#[cfg(feature = "files")]
pub use files::{Files, FilesError};
