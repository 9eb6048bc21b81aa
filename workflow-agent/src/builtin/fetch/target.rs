//! URLs before a request: scheme, user, host and port, the next URL of a redirect, and the hosts that are allowed.

use std::net::IpAddr;

use reqwest::Response;
use reqwest::header::LOCATION;
use url::{Host, Url};

use super::Failure;
use super::address::is_public;

/// A host with a port, both as a parsed URL has them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// Reads `host:port`. The host takes the same way as one of a URL, so both have the same form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let is_address = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains([':', '/', '\\', '@', '?', '#', '%']) && !is_address) {
            return None;
        }
        let url = Url::parse(&format!("http://{host}/")).ok()?;
        let plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        plain.then(|| Self { port, ..Self::of(&url) })
    }

    /// The endpoint that a request for the URL would reach.
    pub(super) fn of(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().to_owned();
        Self { host, port: url.port_or_known_default().unwrap_or(0) }
    }
}

/// Reads a URL that a model wrote.
pub(super) fn parse(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text)
        .map_err(|source| Failure::NoUrl { given: text.chars().take(200).collect(), source })?;
    checked(url)
}

/// The URL that the response redirects to, if it does.
pub(super) fn redirect(from: &Url, response: &Response) -> Result<Option<Url>, Failure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| Failure::Location)?;
    let next = from.join(location).map_err(|source| Failure::NoUrl { given: location.to_owned(), source })?;
    checked(next).map(Some)
}

fn checked(url: Url) -> Result<Url, Failure> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Failure::Scheme { scheme: url.scheme().to_owned() });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::Credentials);
    }
    Ok(url)
}

/// Refuses a URL whose host is an address that is not public. `Url` has read odd forms, such as `0x7f.1`, already.
pub(super) fn check_address(url: &Url) -> Result<(), Failure> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    if is_public(address) { Ok(()) } else { Err(Failure::Address { address }) }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::Endpoint;

    /// A90
    #[test]
    fn only_a_host_with_a_port_is_an_endpoint() {
        let of = |url: &str| Endpoint::of(&Url::parse(url).unwrap());
        assert_eq!(Endpoint::parse("LocalHost:80").unwrap(), of("http://localhost/"));
        assert_eq!(Endpoint::parse("localhost:443").unwrap(), of("https://localhost/"));
        assert_eq!(Endpoint::parse("0x7f.1:8080").unwrap(), of("http://127.0.0.1:8080/x"));
        assert_eq!(Endpoint::parse("[0::1]:8080").unwrap(), of("http://[::1]:8080/"));
        let wrong = "localhost|localhost:|:80|a:0|a:70000|a:+80|http://a:80|a/b:80|u@a:80|a?b:80|a#b:80|::1:80|[::1]|a b:80|*:80%";
        for text in wrong.split('|') {
            assert_eq!(Endpoint::parse(text), None, "{text}");
        }
    }
}
