//! The nearest known spelling of a word.

/// The candidate with the smallest difference, if that is small enough; of equal ones the first.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().collect();
    // One slip in a short word, two in a long one; a very short one is another word.
    let most = match word.len() {
        ..4 => return None,
        4..8 => 1,
        _ => 2,
    };
    let near = candidates.filter_map(|candidate| {
        let letters: Vec<char> = candidate.chars().collect();
        let lengths_fit = letters.len().abs_diff(word.len()) <= most;
        let distance = if lengths_fit { distance(&word, &letters) } else { usize::MAX };
        (distance <= most).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove or replace; swapped neighbours count once.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            let swapped = if swapped { before[j - 2] + 1 } else { usize::MAX };
            row.push(replaced.min(above[j] + 1).min(row[j - 1] + 1).min(swapped));
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
