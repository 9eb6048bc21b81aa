//! `list_files`: the entries of a folder, level by level, bounded. It never descends through a link.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, FileType};

use super::ListFiles;
use super::access::{AccessError, Root, relative};

/// The most entries of a listing.
const LISTED: usize = 1000;
/// The most entries that one listing looks at.
const SCANNED: usize = 100_000;
/// The most levels.
const DEPTH: usize = 32;

pub(super) fn list(root: &Root, arguments: &ListFiles) -> Result<String, AccessError> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let dir = root.dir().open_dir(relative(path)?).map_err(AccessError::io(path))?;
    let mut listing = Listing::default();
    listing.walk(&dir, arguments.depth.unwrap_or(1).clamp(1, DEPTH)).map_err(AccessError::io(path))?;
    Ok(listing.text())
}

/// The entries so far.
#[derive(Default)]
struct Listing {
    lines: Vec<String>,
    scanned: usize,
    is_part: bool,
}

impl Listing {
    /// Lists level by level, so that one large folder hides nothing that stands above it.
    fn walk(&mut self, dir: &Dir, depth: usize) -> io::Result<()> {
        let mut inner = VecDeque::new();
        self.folder(dir, "", 1, depth, &mut inner)?;
        // Each folder of the queue is a line of the listing, so the queue is as bounded as that.
        while let Some((path, level)) = inner.pop_front() {
            if self.lines.len() >= LISTED {
                self.is_part = true;
                break;
            }
            // A folder that is gone or forbidden by now does not spoil the rest.
            if let Ok(folder) = dir.open_dir_nofollow(&path) {
                let _ = self.folder(&folder, &format!("{path}/"), level, depth, &mut inner);
            }
        }
        Ok(())
    }

    /// Adds the entries of one folder, those first by name if not all have room.
    fn folder(
        &mut self,
        dir: &Dir,
        prefix: &str,
        level: usize,
        depth: usize,
        inner: &mut VecDeque<(String, usize)>,
    ) -> io::Result<()> {
        let room = LISTED - self.lines.len();
        let mut first = BTreeMap::new();
        for entry in dir.entries()? {
            if self.scanned == SCANNED {
                self.is_part = true;
                break;
            }
            self.scanned += 1;
            let entry = entry?;
            first.insert(entry.file_name(), entry.file_type()?);
            if first.len() > room {
                first.pop_last();
                self.is_part = true;
            }
        }
        for (name, kind) in first {
            let path = format!("{prefix}{}", name.to_string_lossy());
            self.lines.push(format!("{}{}", printable(&path), mark(kind)));
            if kind.is_dir() && level < depth {
                inner.push_back((path, level + 1));
            }
        }
        Ok(())
    }

    fn text(mut self) -> String {
        if self.lines.is_empty() && !self.is_part {
            return "[the folder is empty]".into();
        }
        self.lines.sort_unstable();
        if self.is_part {
            self.lines.push("[there are more entries; list an inner folder]".into());
        }
        self.lines.join("\n")
    }
}

fn mark(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "/",
        kind if kind.is_symlink() => "@",
        kind if kind.is_file() => "",
        _ => "|",
    }
}

/// A name with a line break must not look like two names.
fn printable(path: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    path.chars().map(escaped).collect()
}
