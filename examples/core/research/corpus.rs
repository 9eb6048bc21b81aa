//! Reads a folder into passages. This module knows files and Markdown's outline, but no questions.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kinds of file that are read.
const EXTENSIONS: [&str; 4] = ["md", "markdown", "txt", "text"];
/// Longer files are not documents for people.
const LONGEST_FILE: u64 = 8 << 20;
/// A longer list or table is cut before its next item.
const LONG_PASSAGE: usize = 500;
/// The project itself, the default folder.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PROJECT_DOCS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "docs"];

/// The documents of a folder, as passages.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) passages: Vec<Passage>,
    pub(crate) files: usize,
    pub(crate) skipped: Vec<Skipped>,
}

/// A paragraph, a list or a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passage {
    /// The path below the folder.
    pub(crate) file: String,
    /// The line where it begins, from 1.
    pub(crate) line: usize,
    /// Its heading; empty above the first one.
    pub(crate) heading: String,
    pub(crate) text: String,
}

/// A file that could not be read; the other files are read.
#[derive(Debug, thiserror::Error)]
#[error("`{file}` is skipped: {reason}")]
pub(crate) struct Skipped {
    file: String,
    reason: SkipReason,
}

#[derive(Debug, thiserror::Error)]
enum SkipReason {
    #[error("it is not UTF-8 (at byte {at})")]
    NotUtf8 { at: usize },
    #[error("it has {bytes} bytes, and no more than {LONGEST_FILE} are read")]
    TooLong { bytes: u64 },
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}

/// The reason why there are no passages.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CorpusError {
    #[error("the folder `{}` does not exist", .0.display())]
    Missing(PathBuf),
    #[error("`{}` is not a folder: name the folder it is in", .0.display())]
    NotAFolder(PathBuf),
    #[error("the folder `{}` cannot be listed: {source}", path.display())]
    Unlistable { path: PathBuf, source: io::Error },
    #[error("no .md or .txt files in `{}`", .0.display())]
    Empty(PathBuf),
    #[error("none of the files in `{}` holds text that can be read\n{}", folder.display(), list(skipped))]
    AllUnreadable { folder: PathBuf, skipped: Vec<Skipped> },
}

fn list(skipped: &[Skipped]) -> String {
    skipped.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Corpus {
    /// Reads every document below the folder, in the order of their paths.
    pub(crate) fn read(folder: Option<&Path>) -> Result<Self, CorpusError> {
        let (root, starts) = match folder {
            Some(folder) => (folder, vec![folder.to_owned()]),
            None => (Path::new(PROJECT), PROJECT_DOCS.map(|path| Path::new(PROJECT).join(path)).into()),
        };
        if folder.is_some() && !root.exists() {
            return Err(CorpusError::Missing(root.into()));
        }
        if !root.is_dir() {
            return Err(CorpusError::NotAFolder(root.into()));
        }
        let mut files = Vec::new();
        for start in starts.iter().filter(|start| start.exists()) {
            collect(start, &mut files)?;
        }
        files.sort();
        Self::of_files(root, &files)
    }

    fn of_files(root: &Path, files: &[PathBuf]) -> Result<Self, CorpusError> {
        if files.is_empty() {
            return Err(CorpusError::Empty(root.into()));
        }
        let mut corpus = Self::default();
        for path in files {
            let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
            match read_text(path) {
                Ok(text) => corpus.add(&file, &text),
                Err(reason) => corpus.skipped.push(Skipped { file, reason }),
            }
        }
        if corpus.passages.is_empty() {
            return Err(CorpusError::AllUnreadable { folder: root.into(), skipped: corpus.skipped });
        }
        Ok(corpus)
    }

    fn add(&mut self, file: &str, text: &str) {
        self.files += 1;
        self.passages.extend(passages(file, text));
    }
}

/// Skips hidden entries and links, so that no walk goes round in circles.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), CorpusError> {
    if path.is_file() {
        files.extend(is_document(path).then(|| path.to_owned()));
        return Ok(());
    }
    let unlistable = |source| CorpusError::Unlistable { path: path.into(), source };
    for entry in fs::read_dir(path).map_err(unlistable)? {
        let entry = entry.map_err(unlistable)?;
        let kind = entry.file_type().map_err(unlistable)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && (kind.is_dir() || kind.is_file()) {
            collect(&entry.path(), files)?;
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

fn read_text(path: &Path) -> Result<String, SkipReason> {
    let bytes = fs::metadata(path)?.len();
    if bytes > LONGEST_FILE {
        return Err(SkipReason::TooLong { bytes });
    }
    String::from_utf8(fs::read(path)?)
        .map_err(|error| SkipReason::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

/// Cuts a text at blank lines and headings. Skips fenced code, because quotations should be prose.
pub(crate) fn passages(file: &str, text: &str) -> Vec<Passage> {
    let mut cut = Cut { file, ..Cut::default() };
    for (i, line) in text.lines().enumerate() {
        cut.take(i + 1, line);
    }
    cut.end();
    cut.passages
}

/// Whether a line begins an item of a list or a row of a table.
fn begins_item(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ ", ". ", "|"].iter().any(|mark| line.starts_with(mark))
}

#[derive(Default)]
struct Cut<'a> {
    file: &'a str,
    heading: String,
    line: usize,
    lines: Vec<&'a str>,
    fenced: bool,
    passages: Vec<Passage>,
}

impl<'a> Cut<'a> {
    fn take(&mut self, number: usize, line: &'a str) {
        let fence = line.trim_start().starts_with("```");
        if self.fenced || fence {
            self.fenced ^= fence;
            return self.end();
        }
        if line.trim().is_empty() {
            return self.end();
        }
        match line.trim_start_matches('#').strip_prefix(' ') {
            Some(heading) if line.starts_with('#') => {
                self.end();
                heading.trim().clone_into(&mut self.heading);
            }
            _ => {
                if self.is_long() && begins_item(line) {
                    self.end();
                }
                self.push(number, line);
            }
        }
    }

    fn is_long(&self) -> bool {
        self.lines.iter().map(|line| line.len()).sum::<usize>() > LONG_PASSAGE
    }

    fn push(&mut self, number: usize, line: &'a str) {
        if self.lines.is_empty() {
            self.line = number;
        }
        self.lines.push(line);
    }

    fn end(&mut self) {
        let text = self.lines.join("\n");
        self.lines.clear();
        // Rules, badges and stray marks say nothing.
        if text.chars().filter(|c| c.is_alphanumeric()).count() < 20 {
            return;
        }
        let (file, heading) = (self.file.to_owned(), self.heading.clone());
        self.passages.push(Passage { file, line: self.line, heading, text });
    }
}
