//! The pages `docs/rules*.md`: whose rules they have, and which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::number::{Letters, Number};
use crate::error::CheckError;
use crate::report::Report;
use crate::repository::Repository;

/// How a page begins; the name of its crate follows.
const TITLE: &str = "# Rules of `";

/// All pages with rules.
#[derive(Debug)]
pub(crate) struct Pages {
    rules: BTreeMap<Number, Rule>,
    count: usize,
}

/// Where a rule stands.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) number: Number,
    pub(crate) page: PathBuf,
    pub(crate) line: usize,
}

impl Pages {
    pub(crate) fn read(repository: &Repository, report: &mut Report) -> Result<Self, CheckError> {
        let mut pages = Self { rules: BTreeMap::new(), count: 0 };
        for path in repository.files("md")?.into_iter().filter(|path| is_page(path)) {
            pages.add(repository, &path, report)?;
        }
        if pages.count == 0 { Err(CheckError::NoRules) } else { Ok(pages) }
    }

    fn add(&mut self, repository: &Repository, path: &Path, report: &mut Report) -> Result<(), CheckError> {
        self.count += 1;
        let text = repository.read(path)?;
        let named = text.strip_prefix(TITLE).and_then(|rest| rest.split('`').next());
        if !named.is_some_and(|name| repository.has(&Path::new(name).join("Cargo.toml"))) {
            report.mistake(path, 1, &format!("the page begins with \"{TITLE}CRATE`\", and the crate exists"));
        }
        for (index, line) in text.lines().enumerate() {
            let Some(number) = defined(line) else { continue };
            let rule = Rule { number, page: path.to_owned(), line: index + 1 };
            if let Some(first) = self.rules.get(&number) {
                let place = format!("{}:{}", first.page.display(), first.line);
                report.mistake(path, rule.line, &format!("{place} has {number} too"));
            } else {
                self.rules.insert(number, rule);
            }
        }
        Ok(())
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn has(&self, number: Number) -> bool {
        self.rules.contains_key(&number)
    }

    /// Numbers with other letters are names of other things.
    pub(crate) fn has_letters(&self, letters: Letters) -> bool {
        self.rules.keys().any(|number| number.letters == letters)
    }
}

fn is_page(path: &Path) -> bool {
    path.parent() == Some(Path::new("docs"))
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rules"))
}

/// The rule that a line begins: `- **S12** …`.
fn defined(line: &str) -> Option<Number> {
    let (number, rest) = Number::at_start(line.strip_prefix("- **")?)?;
    rest.starts_with("**").then_some(number)
}
