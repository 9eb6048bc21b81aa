//! The set of tools for the files of one folder: its options and the arguments of its tools. Confinement is in `access`,
//! the tools are in `read`, `write` and `list`. It deliberately has no tool that removes or renames.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use schemars::JsonSchema;
use serde::Deserialize;

mod access;
mod list;
mod read;
mod write;

use access::Root;

use crate::approval::Approval;
use crate::tool::{FnTool, Tool, ToolSet};

/// The tools `read_file`, `write_file` and `list_files` for one folder.
///
/// # Writing needs no approval by default
/// As with your own tools, a model may call `write_file` without asking, and it may overwrite any file of the folder.
/// [`approval`](Self::approval) makes a person approve, and [`read_only`](Self::read_only) removes the tool.
///
/// # Confinement
/// The set opens its folder once and reaches everything from that handle. The operating system, or the crate `cap-std`
/// step by step, refuses each path that leads outside: absolute ones, `..` above the folder, and symbolic links to other
/// places, also if another process exchanges folders and links meanwhile. Links from one place of the folder to another
/// work for reading; `write_file` refuses to replace a link or to write through one.
///
/// Only regular files are read and written: pipes, devices and sockets are refused without waiting for them.
///
/// Two things stay yours. A hard link is the file itself, so one to a file elsewhere can be read (it is never changed:
/// `write_file` replaces the name, and refuses to append to a file with several names). And a folder mounted inside
/// counts as inside.
///
/// # Bounds
/// `read_file` reads the first 8 MiB of a file, and `list_files` lists 1,000 entries. Cancelling a call does not take
/// back a write that has begun. A file that is replaced has either its former or its new text, never a part of one.
///
/// ```
/// use workflow_agent::Approval;
/// use workflow_agent::builtin::Files;
/// use workflow_agent::tool::{ToolContext, ToolSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// std::fs::write(folder.join("notes.txt"), "one\ntwo\n")?;
/// let tools = Files::new(folder)?.approval(Approval::Acts).into_tools();
/// let read = tools.iter().find(|tool| tool.spec().name() == "read_file").ok_or("no such tool")?;
///
/// let arguments = serde_json::json!({ "path": "notes.txt", "from_line": 2 });
/// let output = read.call(arguments, ToolContext::detached("1")).await.map_err(|error| error.to_string())?;
/// assert_eq!(output.text, "two\n");
///
/// let outside = serde_json::json!({ "path": "../secret" });
/// assert!(read.call(outside, ToolContext::detached("2")).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Files {
    root: Root,
    writes: bool,
    approval: Approval,
}

impl Files {
    /// Tools for the folder `root`. Opens it: the tools stay with this folder if another one takes its name.
    ///
    /// ```
    /// use workflow_agent::builtin::{Files, FilesError};
    ///
    /// assert!(matches!(Files::new("/no/such/folder"), Err(FilesError::Root { .. })));
    /// ```
    ///
    /// # Errors
    /// [`FilesError::Root`] if `root` is no folder, or cannot be opened.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, FilesError> {
        let path = root.as_ref();
        let dir = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|source| FilesError::Root { path: path.to_owned(), source })?;
        Ok(Self { root: Root::new(dir), writes: true, approval: Approval::Never })
    }

    /// Leaves `write_file` out.
    ///
    /// ```
    /// use workflow_agent::builtin::Files;
    /// use workflow_agent::tool::ToolSet;
    ///
    /// let tools = Files::new(".")?.read_only().into_tools();
    /// assert!(tools.iter().all(|tool| tool.spec().is_read_only()));
    /// # Ok::<_, workflow_agent::builtin::FilesError>(())
    /// ```
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { writes: false, ..self }
    }

    /// Sets which calls of `write_file` a person must approve. Default: none.
    #[must_use]
    pub fn approval(self, approval: Approval) -> Self {
        Self { approval, ..self }
    }

    fn read_tool(&self) -> FnTool {
        let root = self.root.clone();
        let call = move |arguments: ReadFile, _| {
            let root = root.clone();
            access::blocking(move || read::read(&root, &arguments))
        };
        FnTool::new("read_file", READ, call).read_only()
    }

    fn list_tool(&self) -> FnTool {
        let root = self.root.clone();
        let call = move |arguments: ListFiles, _| {
            let root = root.clone();
            access::blocking(move || list::list(&root, &arguments))
        };
        FnTool::new("list_files", LIST, call).read_only()
    }

    fn write_tool(&self) -> FnTool {
        let root = self.root.clone();
        let call = move |arguments: WriteFile, _| {
            let root = root.clone();
            access::blocking(move || write::write(&root, &arguments))
        };
        FnTool::new("write_file", WRITE, call).approval(self.approval.clone())
    }
}

#[diagnostic::do_not_recommend]
impl ToolSet for Files {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(self.list_tool()), Arc::new(self.read_tool())];
        if self.writes {
            tools.push(Arc::new(self.write_tool()));
        }
        tools
    }
}

/// Why [`Files`] cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The folder cannot be opened.
    #[error("`{}` cannot be opened as the folder of the file tools; name a folder that exists", path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

const READ: &str = "Reads a text file. Use from_line and lines to read a part of a long one. Paths are relative to the \
                    folder of the files.";
const LIST: &str = "Lists a folder, at most 1000 entries. Paths are relative to the folder of the files. Folders end with \
                    `/`, symbolic links with `@`, and pipes, sockets and devices with `|`.";
const WRITE: &str = "Writes a text file: replaces the whole file, or appends to it. Creates the file and its folders if they \
                     are missing. Paths are relative to the folder of the files.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// The path of the file.
    path: String,
    /// The first line to read; 1 is the first of the file. Default: 1.
    #[schemars(range(min = 1))]
    from_line: Option<usize>,
    /// The number of lines to read. Default: all.
    #[schemars(range(min = 1))]
    lines: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// The path of the folder. Default: the folder of the files itself.
    path: Option<String>,
    /// The number of levels to list. Default: 1, without the contents of inner folders.
    #[schemars(range(min = 1, max = 32))]
    depth: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// The path of the file.
    path: String,
    /// The text.
    text: String,
    /// Whether to append the text to the file. Default: false, replace the file.
    #[serde(default)]
    append: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Files;
    use crate::approval::Approval;
    use crate::tool::ToolSet as _;

    /// A90, A20
    #[test]
    fn writes_need_approval_only_if_asked_for() {
        let asks = |files: Files| {
            let tools = files.into_tools();
            tools
                .iter()
                .filter(|tool| tool.spec().needs_approval(&json!({})))
                .map(|tool| tool.spec().name().to_owned())
                .collect::<Vec<_>>()
        };
        let files = Files::new(".").unwrap();
        assert!(asks(files.clone()).is_empty());
        assert_eq!(asks(files.approval(Approval::Acts)), ["write_file"]);
    }
}
