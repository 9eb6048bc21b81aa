//! Names that an author may have meant. It compares spelling only.

/// Longer names are not compared, so that a look-up among thousands of names stays cheap.
const LONGEST: usize = 64;

/// The begin of a name has to be this long to mean it.
const SHORTEST_BEGIN: usize = 4;

/// At most three of `known` that are spelled like `name`, nearest first.
pub(crate) fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = folded(name);
    if wanted.len() > LONGEST {
        return Vec::new();
    }
    let most = (wanted.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for candidate in known {
        let other = folded(candidate);
        // `on_fail` for `on_failure`: the rest was forgotten.
        if wanted.len() >= SHORTEST_BEGIN && other.starts_with(&wanted) {
            found.push((most, candidate));
            continue;
        }
        if other.len() > LONGEST || other.len().abs_diff(wanted.len()) > most {
            continue;
        }
        let distance = distance(&wanted, &other);
        // A name that shares no letter is not similar, however short it is.
        if distance <= most && distance < wanted.len() {
            found.push((distance, candidate));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Whether `name` is so near to `known`, a name that is similar to it, that a value under it is read as that of `known`.
pub(crate) fn is_slip(name: &str, known: &str) -> bool {
    // The first letter is seldom wrong: `text` is not `next`.
    let first = |name: &str| folded(name).first().copied();
    first(name) == first(known)
}

/// Whether two names differ at most in upper case, hyphens and the like.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    folded(a) == folded(b)
}

/// `onFailure`, `on-failure` and `on_failure` are one spelling.
fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many insertions, removals, replacements and swaps of neighbours lead from `a` to `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
