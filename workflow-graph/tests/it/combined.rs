//! Documents with ten mistakes of different kinds, in every combination: each problem that is there is reported, at its
//! place, and nothing that is not there.

use workflow_graph::{Document, Format};

mod hive;
mod native;
mod sweny;

/// Stands before the place of a problem.
const MARK: char = '«';

/// A mistake: the code of its problem, a name that is similar, and its texts for the places of its number.
///
/// A text has the place of a mistake as `@0`; the mark `«` in its text stands before the problem.
struct Mistake {
    code: &'static str,
    similar: Option<&'static str>,
    /// By place, in the order of the text: the right text, and the wrong one.
    edits: &'static [(&'static str, &'static str)],
}

const fn mistake(code: &'static str, edits: &'static [(&'static str, &'static str)]) -> Mistake {
    Mistake { code, similar: None, edits }
}

/// A mistake in a name that is near to another.
const fn slip(
    code: &'static str,
    similar: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> Mistake {
    Mistake { code, similar: Some(similar), edits }
}

/// A problem as far as a test expects it: line, column, code, and a name that is similar.
type Found = (u32, u32, String, Option<String>);

/// The text with the mistakes of `set`, and the problems that it has.
fn written(template: &str, mistakes: &[Mistake], set: usize) -> (String, Vec<Found>) {
    let mut text = template.to_owned();
    let mut marks = Vec::new();
    for (number, mistake) in mistakes.iter().enumerate().rev() {
        let place = format!("@{number}");
        assert_eq!(text.matches(&place).count(), mistake.edits.len(), "{place}");
        for (right, wrong) in mistake.edits {
            let is_wrong = set >> number & 1 == 1;
            // A mark of its own for each mistake, so that it is known which problem it stands for.
            let own = format!("{MARK}{number};");
            let edit = if is_wrong { wrong.replace(MARK, &own) } else { (*right).to_owned() };
            text = text.replacen(&place, &edit, 1);
        }
    }
    let mut clean = String::new();
    let (mut line, mut column) = (1, 1);
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        if next == MARK {
            let (number, behind) = rest[MARK.len_utf8()..].split_once(';').unwrap();
            let mistake = &mistakes[number.parse::<usize>().unwrap()];
            marks.push((line, column, mistake.code.to_owned(), mistake.similar.map(str::to_owned)));
            rest = behind;
            continue;
        }
        (line, column) = if next == '\n' { (line + 1, 1) } else { (line, column + 1) };
        clean.push(next);
        rest = &rest[next.len_utf8()..];
    }
    marks.sort();
    (clean, marks)
}

/// Tries every combination of the mistakes, none among them.
fn every_combination(template: &str, mistakes: &[Mistake], format: &Format) {
    for set in 0..1 << mistakes.len() {
        let (text, expected) = written(template, mistakes, set);
        let problems = match Document::parse_as(&text, "g.yaml", format.clone()) {
            Ok(document) => document.warnings().to_vec(),
            Err(error) => error.problems,
        };
        let mut found: Vec<Found> = problems
            .iter()
            .map(|problem| {
                let at = &problem.location;
                let first = problem.similar.first().cloned();
                (at.line, at.column, problem.code.to_string(), first)
            })
            .collect();
        found.sort();
        let list = crate::support::lines(&problems);
        assert_eq!(found, expected, "combination {set:#b}:\n{text}\n{list}");
    }
}
