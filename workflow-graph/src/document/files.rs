//! Files that a document names: below its folder, bounded, and never from a network.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::problem::Code;
use crate::problem::sink::{At, Problems};

/// The largest file that a document may name.
const MOST_BYTES: u64 = 1 << 20;
/// The most bytes of all files that a document names.
const MOST_BYTES_TOGETHER: usize = 64 << 20;

/// Code, message and remedy.
type Refusal = (Code, String, &'static str);

/// The folder of a document, and the texts of its files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Without symbolic links. Absent: the document has no folder, and may name no files.
    root: Option<PathBuf>,
    known: HashMap<PathBuf, Arc<str>>,
    bytes: usize,
}

impl Files {
    /// The files below `folder`.
    pub(crate) fn below(folder: &Path) -> io::Result<Self> {
        // The folder of `name.yaml` is the present one.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Ok(Self { root: Some(folder.canonicalize()?), ..Self::default() })
    }

    /// The text of the file at `path`, relative to the document.
    pub(crate) fn read(&mut self, path: &str, at: At, problems: &mut Problems) -> Option<Arc<str>> {
        let Some(root) = &self.root else {
            let message =
                format!("`{path}` cannot be found: a document that is parsed from a text has no folder");
            problems.add(Code::FileNotFound, at, message, "load the document from its file");
            return None;
        };
        let outside = || {
            (
                Code::FileOutsideRoot,
                format!("`{path}` lies outside of the folder of the document"),
                "move the file below it, and name it relative to the document",
            )
        };
        let absent = |reason: &str| {
            let message = format!("the file `{path}` {reason}");
            (Code::FileNotFound, message, "name it relative to the document, as a text in UTF-8")
        };
        let found = match root.join(path).canonicalize() {
            // Links are resolved by now, so this is where the file really lies.
            Ok(found) if found.starts_with(root) => self.load(&found, absent),
            Ok(_) => Err(outside()),
            Err(_) if leads_out(path) => Err(outside()),
            Err(error) => Err(absent(&reason(&error))),
        };
        match found {
            Ok(text) => Some(text),
            Err((code, message, remedy)) => {
                problems.add(code, at, message, remedy);
                None
            }
        }
    }

    fn load(&mut self, path: &Path, absent: impl Fn(&str) -> Refusal) -> Result<Arc<str>, Refusal> {
        if let Some(text) = self.known.get(path) {
            return Ok(text.clone());
        }
        // Opening a pipe would wait for who writes to it.
        if !path.is_file() {
            return Err(absent("is no file"));
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            return Err(absent(&reason(&error)));
        }
        let too_large = |most: String| {
            let message = format!("the file `{}` exceeds {most}", path.display());
            (Code::TooLarge, message, "shorten it")
        };
        if bytes.len() as u64 > MOST_BYTES {
            return Err(too_large(format!("the {MOST_BYTES} bytes of one file")));
        }
        self.bytes += bytes.len();
        if self.bytes > MOST_BYTES_TOGETHER {
            return Err(too_large(format!("the {MOST_BYTES_TOGETHER} bytes of all files of a document")));
        }
        let Ok(text) = String::from_utf8(bytes) else { return Err(absent("is no text in UTF-8")) };
        let text: Arc<str> = text.into();
        self.known.insert(path.to_owned(), text.clone());
        Ok(text)
    }
}

/// Whether a path leads out of the folder in which it begins, by its text alone: the files need not exist.
fn leads_out(path: &str) -> bool {
    use std::path::Component;
    let mut depth = 0_i32;
    Path::new(path).components().any(|component| {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => depth = i32::MIN,
        }
        depth < 0
    })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}
