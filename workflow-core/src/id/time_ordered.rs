//! UUIDs of version 7, as RFC 9562 has them: those of a process are in the order in which they were made.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};

/// How many bits of a moment are parts of a millisecond (the RFC's method 3).
const FRACTION: u32 = 12;

/// A UUID that is greater than all that this process has made.
pub(super) fn time_ordered() -> Uuid {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let moment = later_than(&LAST, now());
    let random = random(moment);
    let mut bytes = [0; 10];
    // The version takes the first four bits of these, and the variant the first two of the others.
    bytes[..2].copy_from_slice(&moment.to_be_bytes()[6..]);
    bytes[2..].copy_from_slice(&random.to_be_bytes());
    Builder::from_unix_timestamp_millis(moment >> FRACTION, &bytes).into_uuid()
}

/// Milliseconds since 1970, and parts of one.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::from(since.subsec_nanos());
    let millis = since.as_secs() * 1_000 + nanos / 1_000_000;
    (millis << FRACTION) | (((nanos % 1_000_000) << FRACTION) / 1_000_000)
}

/// The moment, or the one after the last that was handed out: each is handed out once.
fn later_than(last: &AtomicU64, now: u64) -> u64 {
    let last = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
    last.map_or(now, |last| now.max(last + 1))
}

/// A keyed hash of the moment. The system draws the keys for this process, so that two processes differ.
fn random(moment: u64) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_process_are_in_the_order_in_which_they_were_made() {
        let made: Vec<Uuid> = (0..10_000).map(|_| time_ordered()).collect();
        assert!(made.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn their_first_part_is_the_time_in_milliseconds() {
        let before = now() >> FRACTION;
        let made = time_ordered().as_u128() >> 80;
        assert!(made >= u128::from(before) && made <= u128::from(before) + 60_000);
    }

    #[test]
    fn the_standard_recognises_them() {
        let made = time_ordered();
        assert_eq!((made.get_version_num(), made.get_variant()), (7, uuid::Variant::RFC4122));
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_moment_twice() {
        let last = AtomicU64::new(0);
        assert_eq!([7, 3, 3, 9].map(|now| later_than(&last, now)), [7, 8, 9, 10]);
    }
}
