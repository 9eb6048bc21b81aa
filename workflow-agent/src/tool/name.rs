//! Names of tools, as all providers accept them.

/// The longest name.
const LONGEST: usize = 64;

/// Whether all providers accept the name: one to 64 ASCII letters, digits, `_` or `-`.
pub(crate) fn is_fit(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A fit name for any name: other characters become `_`, and a name that changed or is too long ends with a hash, so
/// that different names stay different.
pub(crate) fn fitted(name: &str) -> String {
    if is_fit(name) {
        return name.to_owned();
    }
    let fit = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    let plain: String = name.chars().map(|c| if fit(c) { c } else { '_' }).take(LONGEST - 9).collect();
    format!("{plain}_{:08x}", hash(name))
}

/// FNV-1a: the same in each process.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::{fitted, is_fit};

    /// A17
    #[test]
    fn every_name_gets_a_fit_one_and_fit_ones_stay() {
        for name in ["", "weather", "with space", "größe", &"x".repeat(65), &"ä".repeat(80)] {
            assert!(is_fit(&fitted(name)), "{name}");
        }
        assert_eq!(fitted("get-weather_2"), "get-weather_2");
        assert_ne!(fitted("a b"), fitted("a.b"));
    }
}
