//! Stems of English words, by M. F. Porter's algorithm of 1980: "repaired", "repairs" and "repairing" become one
//! search word. It does not know other languages: words with other letters than a to z stay.

/// The stem of a word in lower case.
pub(super) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = word.to_owned();
    plural(&mut stem);
    past_or_gerund(&mut stem);
    if let Some(rest) = stem.strip_suffix('y').filter(|rest| has_vowel(rest)) {
        stem = format!("{rest}i");
    }
    replace_longest(&mut stem, DOUBLE_SUFFIXES);
    replace_longest(&mut stem, SINGLE_SUFFIXES);
    remove_longest(&mut stem);
    final_letters(&mut stem);
    stem
}

/// Suffixes that consist of two, and the one that remains.
const DOUBLE_SUFFIXES: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const SINGLE_SUFFIXES: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const LAST_SUFFIXES: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

fn plural(word: &mut String) {
    let cut = match word.as_str() {
        w if w.ends_with("sses") || w.ends_with("ies") => 2,
        w if w.ends_with("ss") => 0,
        w if w.ends_with('s') => 1,
        _ => 0,
    };
    word.truncate(word.len() - cut);
}

fn past_or_gerund(word: &mut String) {
    if let Some(rest) = word.strip_suffix("eed") {
        if measure(rest) > 0 {
            word.pop();
        }
        return;
    }
    let rest = word.strip_suffix("ed").or_else(|| word.strip_suffix("ing"));
    let Some(rest) = rest.filter(|rest| has_vowel(rest)) else { return };
    word.truncate(rest.len());
    if ["at", "bl", "iz"].iter().any(|end| word.ends_with(end)) {
        word.push('e');
    } else if ends_double(word) && !word.ends_with(['l', 's', 'z']) {
        word.pop();
    } else if measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

/// Replaces the longest of the suffixes, if a syllable stands before it.
fn replace_longest(word: &mut String, suffixes: &[(&str, &str)]) {
    let longest = suffixes.iter().filter(|(suffix, _)| word.ends_with(suffix)).max_by_key(|(s, _)| s.len());
    if let Some((suffix, new)) = longest {
        let rest = word.len() - suffix.len();
        if measure(&word[..rest]) > 0 {
            word.truncate(rest);
            word.push_str(new);
        }
    }
}

/// Removes the longest of the last suffixes, if two syllables stand before it.
fn remove_longest(word: &mut String) {
    let longest = LAST_SUFFIXES.iter().filter(|suffix| word.ends_with(**suffix)).max_by_key(|s| s.len());
    if let Some(suffix) = longest {
        let rest = &word[..word.len() - suffix.len()];
        let fits = *suffix != "ion" || rest.ends_with(['s', 't']);
        if fits && measure(rest) > 1 {
            word.truncate(rest.len());
        }
    }
}

fn final_letters(word: &mut String) {
    if let Some(rest) = word.strip_suffix('e') {
        let syllables = measure(rest);
        if syllables > 1 || (syllables == 1 && !ends_short(rest)) {
            word.pop();
        }
    }
    if word.ends_with("ll") && measure(word) > 1 {
        word.pop();
    }
}

/// Which letters are vowels; a `y` is one after a consonant.
fn vowels(word: &str) -> impl Iterator<Item = bool> {
    word.bytes().scan(true, |after_vowel, letter| {
        let vowel = matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u') || (letter == b'y' && !*after_vowel);
        *after_vowel = vowel;
        Some(vowel)
    })
}

fn has_vowel(word: &str) -> bool {
    vowels(word).any(|vowel| vowel)
}

/// The number of times that a consonant follows a vowel: roughly the syllables.
fn measure(word: &str) -> usize {
    let mut before = false;
    vowels(word).filter(|vowel| std::mem::replace(&mut before, *vowel) && !vowel).count()
}

fn ends_double(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() > 1 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && vowels(word).last() == Some(false)
}

/// Whether the word ends as "hop" does: consonant, vowel, consonant other than w, x and y.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<bool> = vowels(word).collect();
    kinds.ends_with(&[false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::stem;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            "repair repairs repaired repairing",
            "book books booked booking",
            "decide decides decided deciding",
            "party parties",
            "hop hopped hopping",
            "connect connected connection connections connective",
            "relate relates related relating",
            "install installs installed installing",
            "agree agreed agrees",
        ] {
            let stems: Vec<_> = forms.split(' ').map(stem).collect();
            assert!(stems.iter().all(|form| *form == stems[0]), "{forms}: {stems:?}");
        }
    }

    #[test]
    fn stems_are_those_of_the_published_algorithm() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("feed", "feed"),
            ("plastered", "plaster"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("vietnamization", "vietnam"),
            ("hopefulness", "hope"),
            ("electrical", "electr"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("controlling", "control"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("roll", "roll"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn every_word_has_a_stem(word in "[a-z]{0,12}|\\PC{0,8}") {
            prop_assert_eq!(stem(&word).is_empty(), word.is_empty());
        }
    }
}
