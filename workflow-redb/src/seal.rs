//! The checksum in front of a stored value. It covers the value's key too, so that a value under a wrong key is found.
//! `format` says which values have one.
//!
//! Values of files of format 1 have none, and stay so until they are written again. Their first byte tells them apart: no
//! change of a single bit turns one form into the other.

use std::borrow::Cow;

use crate::error::Malformed;

/// The first byte of a value with a checksum.
const SEALED: u8 = 0x84;

/// The bytes before the value itself.
const LENGTH: usize = 5;

/// The first byte of a record without a checksum, which is JSON.
const RECORD: u8 = b'{';

/// The first byte of an entry without a checksum: of a journal's end, which is below 2^56.
const ENTRY: u8 = 0;

/// Reserves the room of a checksum in front of a value. Returns where it is.
pub(crate) fn reserve(bytes: &mut Vec<u8>) -> usize {
    let at = bytes.len();
    bytes.extend_from_slice(&[SEALED, 0, 0, 0, 0]);
    at
}

/// Fills in the checksum at this place, of the value behind it.
pub(crate) fn fill(bytes: &mut [u8], at: usize, key: &[u8]) {
    let sum = checksum(key, &bytes[at + LENGTH..]).to_be_bytes();
    bytes[at + 1..at + LENGTH].copy_from_slice(&sum);
}

/// A record with a checksum, also if it was stored without.
pub(crate) fn sealed<'a>(key: &[u8], record: &'a [u8]) -> Cow<'a, [u8]> {
    if record.first() != Some(&RECORD) {
        return Cow::Borrowed(record);
    }
    let mut bytes = Vec::with_capacity(LENGTH + record.len());
    let at = reserve(&mut bytes);
    bytes.extend_from_slice(record);
    fill(&mut bytes, at, key);
    Cow::Owned(bytes)
}

/// The JSON of a stored record.
pub(crate) fn record<'a>(key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
    opened(key, bytes, RECORD)
}

/// A stored entry without its checksum.
pub(crate) fn entry<'a>(key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
    opened(key, bytes, ENTRY)
}

fn opened<'a>(key: &[u8], bytes: &'a [u8], unsealed: u8) -> Result<&'a [u8], Malformed> {
    let differs = Malformed("matching checksum");
    match bytes.split_first_chunk::<LENGTH>() {
        Some(([SEALED, sum @ ..], value)) if *sum == checksum(key, value).to_be_bytes() => Ok(value),
        _ if bytes.first() == Some(&unsealed) => Ok(bytes),
        _ => Err(differs),
    }
}

/// CRC-32 as zlib and Ethernet have it. It finds every change of up to 32 neighbouring bits.
fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_back_with_its_key_only() {
        let sealed = sealed(b"key", b"{}");
        assert_eq!(record(b"key", &sealed).unwrap(), b"{}");
        assert!(record(b"kex", &sealed).is_err());
        // Of the key and the value: CRC-32 of `key{}`.
        assert_eq!(*sealed, [&[SEALED][..], &crc32fast::hash(b"key{}").to_be_bytes(), b"{}"].concat());
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let old = br#"{"run_kept":{}}"#;
        let new = sealed(b"key", old).into_owned();
        for bit in 0..8 * new.len() {
            let mut flipped = new.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(record(b"key", &flipped).is_err(), "bit {bit}");
        }
        // The first byte of a value without a checksum.
        for bit in 0..8 {
            let (mut flipped, mut flipped_entry) = (old.to_vec(), [0; 18]);
            flipped[0] ^= 1 << bit;
            flipped_entry[0] ^= 1 << bit;
            assert!(record(b"key", &flipped).is_err() && entry(b"key", &flipped_entry).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_value_without_a_checksum_is_read_as_it_is() {
        assert_eq!(record(b"key", b"{}").unwrap(), b"{}");
        assert_eq!(entry(b"key", &[0; 18]).unwrap(), [0; 18]);
        assert!(record(b"key", b"").is_err() && entry(b"key", b"{}").is_err());
    }
}
