//! Paths of checks: `any:a.b[*].c`. They are evaluated elsewhere.

use super::Reading;
use crate::document::model::{Path, Segment};
use crate::document::tree::Tree;
use crate::problem::Code;

impl Reading<'_> {
    pub(crate) fn path(&mut self, tree: &Tree, key: &str) -> Option<Path> {
        let text = self.text(tree, key)?;
        let (is_any, written) = match text.value.strip_prefix("any:") {
            Some(rest) => (true, rest),
            None => (false, &*text.value),
        };
        let Some(segments) = segments(written.trim()) else {
            let message = format!("`{}` is no path", text.value);
            self.problems.add(Code::BadCheck, tree.at, message, "write it as `a.b`, `a[0].b` or `a[*].b`");
            return None;
        };
        Some(Path { at: tree.at, source: text.value.clone(), is_any, segments })
    }
}

fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    for part in path.split('.') {
        let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c == ']') {
            return None;
        }
        segments.push(Segment::Key(name.into()));
        while !rest.is_empty() {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            segments.push(match inside {
                "*" => Segment::Every,
                quoted if quoted.starts_with(['"', '\'']) => {
                    let quote = quoted.chars().next()?;
                    Segment::Key(quoted.strip_prefix(quote)?.strip_suffix(quote)?.into())
                }
                index => Segment::Index(index.parse().ok()?),
            });
            rest = after;
        }
    }
    Some(segments)
}
