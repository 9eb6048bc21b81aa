//! Times as text for people and front ends: RFC 3339 in UTC, with nine digits of a second, so that the order of such texts
//! is the order of the times (S78). Years beyond four digits have a sign and at least six digits, as ISO 8601 and
//! JavaScript have them; so every time has a text, and every text leads back to its time.
//!
//! By hand, because the crates for this either know no such years, or are large. Used as `#[serde(with = "…")]`. Records of
//! journals have times as serde has them, and such times can be read here too.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::de::{
    Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer,
};
use serde::ser::{Serialize, Serializer};

const DAY: i128 = 86_400;
const NANOS: u32 = 1_000_000_000;

/// The days from the first of March of the year 0, with which the years below begin, to the epoch.
const EPOCH: i128 = 719_468;

/// 400 years, after which the calendar repeats.
const ERA: i128 = 146_097;

/// A time whose text is that of RFC 3339.
pub(crate) struct Rfc3339(pub(crate) SystemTime);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = since_epoch(self.0);
        let ((year, month, day), second) = (date(seconds.div_euclid(DAY)), seconds.rem_euclid(DAY));
        if (0..=9_999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+07}")?;
        }
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

/// Whole seconds since the epoch, rounded down, and the nanoseconds after them.
fn since_epoch(at: SystemTime) -> (i128, u32) {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (i128::from(since.as_secs()), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let (seconds, nanos) = (-i128::from(before.as_secs()), before.subsec_nanos());
            if nanos == 0 { (seconds, 0) } else { (seconds - 1, NANOS - nanos) }
        }
    }
}

/// The date of a day since the epoch. Years begin in March here, so that the leap day is the last of a year.
fn date(days: i128) -> (i128, i128, i128) {
    let days = days + EPOCH;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (400 * era + year + i128::from(month <= 2), month, day)
}

/// The day since the epoch that has this date.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = year - i128::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    era * ERA + 365 * year + year / 4 - year / 100 + (153 * from_march + 2) / 5 + day - 1 - EPOCH
}

/// The time of a text; `None` if it is none.
fn parse(text: &str) -> Option<SystemTime> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let number = |text: Option<&str>| digits(text.filter(|text| text.len() == 2)?);
    let (date_part, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (sign, unsigned) = match date_part.strip_prefix(['+', '-']) {
        Some(rest) => (if date_part.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, date_part),
    };
    let mut parts = unsigned.split('-');
    let year_part = parts.next()?;
    let fits = if unsigned == date_part { year_part.len() == 4 } else { (6..=15).contains(&year_part.len()) };
    let year: i128 = sign * digits(year_part).filter(|_| fits)?;
    let (month, day) = (number(parts.next())?, number(parts.next())?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = time.split(':');
    let (hour, minute, second) = (number(clock.next())?, number(clock.next())?, number(clock.next())?);
    let day = Some(days(year, month, day)).filter(|days| date(*days) == (year, month, day))?;
    let is_over = parts.next().is_none() && clock.next().is_none();
    if !is_over || hour > 23 || minute > 59 || second > 59 || !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let nanos = u32::try_from(digits(&format!("{fraction:0<9}"))?).ok()?;
    let seconds = day * DAY + hour * 3_600 + minute * 60 + second;
    let apart = Duration::from_secs(u64::try_from(seconds.unsigned_abs()).ok()?);
    let whole = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(apart)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(apart)
    };
    whole?.checked_add(Duration::from_nanos(nanos.into()))
}

impl Serialize for Rfc3339 {
    /// In a format that people do not read, a time is as serde has it.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for Rfc3339 {
    /// Reads the form of records and of earlier releases too.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let is_text = from.is_human_readable();
        if is_text { from.deserialize_any(EitherForm) } else { SystemTime::deserialize(from) }.map(Self)
    }
}

pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    Rfc3339(*at).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
    Rfc3339::deserialize(from).map(|Rfc3339(at)| at)
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = SystemTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as `2026-11-29T05:21:03.123456789Z`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SystemTime, E> {
        parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SystemTime, A::Error> {
        SystemTime::deserialize(MapAccessDeserializer::new(map))
    }
}

/// The same where there may be none.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Rfc3339, Serialize, Serializer, SystemTime};

    #[expect(clippy::ref_option, reason = "serde asks so")]
    pub(crate) fn serialize<S: Serializer>(at: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
        at.map(Rfc3339).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SystemTime>, D::Error> {
        Ok(Option::<Rfc3339>::deserialize(from)?.map(|Rfc3339(at)| at))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    /// The time of so many seconds after the epoch and nanoseconds after that, if there is one.
    fn time(seconds: i64, nanos: u32) -> Option<SystemTime> {
        let (epoch, apart) = (SystemTime::UNIX_EPOCH, Duration::from_secs(seconds.unsigned_abs()));
        let whole = if seconds < 0 { epoch.checked_sub(apart) } else { epoch.checked_add(apart) };
        whole?.checked_add(Duration::from_nanos(nanos.into()))
    }

    fn text(seconds: i64, nanos: u32) -> String {
        Rfc3339(time(seconds, nanos).unwrap()).to_string()
    }

    // S78
    #[test]
    fn times_have_date_and_time_in_utc() {
        assert_eq!(text(0, 0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(text(951_782_399, 7), "2000-02-28T23:59:59.000000007Z");
        assert_eq!(text(951_782_400, 0), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(text(4_107_542_400, 0), "2100-03-01T00:00:00.000000000Z");
        assert_eq!(text(-1, 999_999_999), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(text(253_402_300_799, 0), "9999-12-31T23:59:59.000000000Z");
    }

    // S78
    #[test]
    fn years_beyond_four_digits_have_a_sign() {
        assert_eq!(text(253_402_300_800, 0), "+010000-01-01T00:00:00.000000000Z");
        assert_eq!(text(-62_167_219_200, 0), "0000-01-01T00:00:00.000000000Z");
        assert_eq!(text(-62_167_219_201, 0), "-000001-12-31T23:59:59.000000000Z");
        // The last and the first time of JavaScript's `Date`.
        assert_eq!(text(8_640_000_000_000, 0), "+275760-09-13T00:00:00.000000000Z");
        assert_eq!(text(-8_640_000_000_000, 0), "-271821-04-20T00:00:00.000000000Z");
    }

    // S78
    #[test]
    fn the_first_and_the_last_time_that_the_system_knows_can_be_written_and_read() {
        for at in [time(i64::MAX, 999_999_999), time(i64::MIN, 0)].into_iter().flatten() {
            let json = serde_json::to_string(&Written(at)).unwrap();
            assert_eq!(serde_json::from_str::<Written>(&json).unwrap(), Written(at), "{json}");
        }
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Written(#[serde(with = "super")] SystemTime);

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Maybe(#[serde(with = "super::optional")] Option<SystemTime>);

    // S78
    #[test]
    fn the_form_of_earlier_releases_is_read() {
        let at = time(1_700_000_000, 5).unwrap();
        let former = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<Written>(&former).unwrap(), Written(at));
        assert_eq!(serde_json::from_str::<Maybe>(&former).unwrap(), Maybe(Some(at)));
        assert_eq!(serde_json::from_str::<Maybe>("null").unwrap(), Maybe(None));
        assert_eq!(serde_json::to_string(&Maybe(None)).unwrap(), "null");
        assert_eq!(serde_json::to_string(&Maybe(Some(at))).unwrap(), "\"2023-11-14T22:13:20.000000005Z\"");
    }

    // S78
    #[test]
    fn text_that_is_no_time_is_refused() {
        let whole = ["2026-11-29T05:21:03Z", "2026-11-29T05:21:03.1Z", "+002026-11-29T05:21:03.123456789Z"];
        assert!(whole.iter().all(|text| parse(text).is_some()));
        for text in [
            "",
            "now",
            "2026-11-29",
            "2026-11-29T05:21:03",
            "2026-11-29T05:21:03+01:00",
            "2026-02-29T05:21:03Z",
            "2026-13-01T05:21:03Z",
            "2026-00-10T05:21:03Z",
            "2026-11-00T05:21:03Z",
            "2026-11-29T24:00:00Z",
            "2026-11-29T05:60:03Z",
            "2026-11-29T05:21:60Z",
            "2026-11-29T05:21Z",
            "2026-11-29T05:21:03:04Z",
            "2026-11-29-01T05:21:03Z",
            "2026-11-29T05:21:03.Z",
            "2026-11-29T05:21:03.1234567890Z",
            "2026-11-29T05:21:03.+1Z",
            "2026-+1-29T05:21:03Z",
            "+2026-11-29T05:21:03Z",
            "10000-11-29T05:21:03Z",
            "--002026-11-29T05:21:03Z",
            "+999999999999999-11-29T05:21:03Z",
            "+99999999999999999999999999999999999999999-11-29T05:21:03Z",
            "२०२६-११-२९T०५:२१:०३Z",
        ] {
            let json = serde_json::to_string(text).unwrap();
            let error = serde_json::from_str::<Written>(&json).unwrap_err().to_string();
            assert!(error.contains("a time such as `2026-11-29T05:21:03.123456789Z`"), "{text}: {error}");
        }
    }

    proptest! {
        // S78
        #[test]
        fn another_library_reads_the_same_time(
            seconds in -377_000_000_000_i64..=253_000_000_000,
            nanos in 0_u32..1_000_000_000,
        ) {
            let text = text(seconds, nanos);
            let theirs: Timestamp = text.parse().unwrap();
            let expected = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            prop_assert_eq!(theirs.as_nanosecond(), expected);
            prop_assert_eq!(parse(&theirs.to_string()), time(seconds, nanos));
        }

        // S78
        #[test]
        fn every_time_leads_back_to_itself(seconds: i64, nanos in 0_u32..1_000_000_000) {
            if let Some(at) = time(seconds, nanos) {
                prop_assert_eq!(parse(&Rfc3339(at).to_string()), Some(at));
            }
        }

        // S78
        #[test]
        fn the_order_of_texts_is_that_of_times(
            one in 0_i64..=253_402_300_799,
            other in 0_i64..=253_402_300_799,
            nanos in 0_u32..1_000_000_000,
        ) {
            prop_assert_eq!(text(one, nanos).cmp(&text(other, 0)), time(one, nanos).cmp(&time(other, 0)));
        }

        #[test]
        fn no_text_panics(text in "[+-]?[0-9]{0,20}-[0-9]{0,3}-[0-9]{0,3}T[0-9:.]{0,12}Z?") {
            let _ = parse(&text);
        }
    }
}
