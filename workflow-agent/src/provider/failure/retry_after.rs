//! The time for which a provider asks to wait, from the headers of its answer.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The longest time that counts: no provider means more, and a step cannot wait for ever.
const LONGEST: f64 = 24.0 * 60.0 * 60.0;

/// `retry-after-ms`, or `Retry-After` as seconds or as a date.
pub(super) fn of_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(delay) =
        text("retry-after-ms").and_then(|text| seconds_of(text.parse::<f64>().ok()? / 1_000.0))
    {
        return Some(delay);
    }
    let after = text(RETRY_AFTER.as_str())?;
    seconds(after).or_else(|| {
        let date = httpdate::parse_http_date(after).ok()?;
        // The provider's own clock, if the answer has it: ours may differ.
        let sent = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
        let delay = date.duration_since(sent.unwrap_or_else(SystemTime::now)).unwrap_or_default();
        seconds_of(delay.as_secs_f64())
    })
}

/// A number of seconds, also with a fraction.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    seconds_of(text.parse().ok()?)
}

fn seconds_of(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::of_headers;

    fn delay(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        of_headers(&headers.collect::<HeaderMap>())
    }

    /// A80
    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        assert_eq!(delay(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(delay(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            delay(&[("retry-after", "7"), ("retry-after-ms", "1500")]),
            Some(Duration::from_millis(1_500))
        );
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            delay(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")]),
            Some(Duration::from_mins(1))
        );
        assert_eq!(delay(&[date, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(Duration::ZERO));
        for odd in ["-1", "NaN", "soon", ""] {
            assert_eq!(delay(&[("retry-after", odd)]), None, "{odd}");
        }
        assert_eq!(delay(&[("retry-after", "inf")]), Some(Duration::from_hours(24)));
        assert_eq!(delay(&[]), None);
    }
}
