//! Finds out whether a name may be a typing error for another one.

/// Whether one name may be a typing error for the other: a few letters differ.
pub(crate) fn near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    shorter >= 3 && distance(&one, &other) <= 1 + shorter / 5
}

/// The number of letters to add, remove or change.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut left = at + 1;
        let mut corner = std::mem::replace(&mut row[0], left);
        for (column, other) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != other);
            corner = row[column + 1];
            left = changed.min(corner + 1).min(left + 1);
            row[column + 1] = left;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_name_is_near_another_if_a_few_letters_differ() {
        assert!(near("redy", "ready") && near("ready_now", "raedy_now"));
        assert!(!near("done", "ready") && !near("a", "b"));
    }
}
