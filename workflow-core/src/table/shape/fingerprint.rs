//! FNV-1a with 64 bits, as in <http://www.isthe.com/chongo/tech/comp/fnv/>: small, stable, and sufficient
//! where no one forges collisions. The hashers of the standard library are not stable, and a cryptographic
//! one would be a dependency for this purpose alone.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash as 16 hexadecimal digits.
pub(super) fn of(bytes: &[u8]) -> String {
    format!("{:016x}", hash(bytes))
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn the_hash_matches_the_published_test_vectors() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
