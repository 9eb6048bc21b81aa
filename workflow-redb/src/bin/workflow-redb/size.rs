//! Sizes as people read them.

/// A number of bytes: `812 bytes`, `12.4 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((unit, of)) = units.into_iter().find(|(_, of)| bytes >= *of) else {
        return format!("{bytes} bytes");
    };
    let tenths = u128::from(bytes) * 10 / u128::from(of);
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_and_a_tenth() {
        let all = [0, 1_023, 1_024, 13_002_343, 5 << 30].map(size);
        assert_eq!(all, ["0 bytes", "1023 bytes", "1.0 KiB", "12.4 MiB", "5.0 GiB"]);
    }
}
