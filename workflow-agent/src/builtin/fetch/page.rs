//! The result of a fetch: head lines, and the body if it is text.

use encoding_rs::{Encoding, UTF_8};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use url::Url;

use super::Failure;
use crate::tool::ToolOutput;

/// The most bytes of a body.
const BODY: usize = 5 * 1024 * 1024;

/// Status, URL after redirects, type and size.
pub(super) fn head(url: &Url, response: &Response, is_redirected: bool) -> ToolOutput {
    let lines = lines(url, response, is_redirected);
    let length = header(response, CONTENT_LENGTH);
    let length = length.map(|length| format!("content-length: {length}\n")).unwrap_or_default();
    output(response.status(), lines + &length)
}

/// The same, and the text.
pub(super) async fn read(
    url: &Url,
    mut response: Response,
    is_redirected: bool,
) -> Result<ToolOutput, Failure> {
    let lines = lines(url, &response, is_redirected);
    let shown = text(&mut response).await.map_err(|error| Failure::of(url, error))?;
    Ok(output(response.status(), format!("{lines}\n{shown}")))
}

/// The body as text, or a remark about it.
async fn text(response: &mut Response) -> Result<String, reqwest::Error> {
    let media_type = header(response, CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    if !media_type.is_empty() && !is_text(&media_type) {
        return Ok(no_text(header(response, CONTENT_LENGTH).unwrap_or("an unknown number of")));
    }
    let (body, is_part) = body(response).await?;
    if media_type.is_empty() && body.contains(&0) {
        return Ok(no_text(&body.len().to_string()));
    }
    let text = decoded(&media_type, &body);
    if is_part {
        return Ok(format!("{text}\n[the body has more than {BODY} bytes; the rest was not read]"));
    }
    Ok(text)
}

fn no_text(size: &str) -> String {
    format!("[the body is no text; it has {size} bytes, which are not shown]")
}

fn output(status: StatusCode, text: String) -> ToolOutput {
    if status.as_u16() >= 400 { ToolOutput::error(text) } else { ToolOutput::new(text) }
}

fn lines(url: &Url, response: &Response, is_redirected: bool) -> String {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let url = if is_redirected { format!("url: {url}\n") } else { String::new() };
    let media_type = header(response, CONTENT_TYPE);
    let media_type = media_type.map(|kind| format!("content-type: {kind}\n")).unwrap_or_default();
    format!("{} {reason}\n{url}{media_type}", status.as_u16())
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}

/// The body, or its first part and `true`. Nothing beyond the bound is stored, also if the server declares another length.
async fn body(response: &mut Response) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = BODY - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}

/// Whether people can read the type.
fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let Some((kind, form)) = essence.split_once('/') else { return false };
    let is_known = matches!(
        form,
        "json"
            | "xml"
            | "javascript"
            | "ecmascript"
            | "x-javascript"
            | "yaml"
            | "x-yaml"
            | "toml"
            | "sql"
            | "graphql"
            | "x-ndjson"
            | "ndjson"
            | "x-sh"
            | "x-www-form-urlencoded"
            | "rtf"
    );
    kind == "text" || (kind == "application" && is_known) || form.ends_with("+json") || form.ends_with("+xml")
}

/// The text by the declared character set, or else as UTF-8. A byte order mark wins.
fn decoded(media_type: &str, body: &[u8]) -> String {
    let declared = media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim() == "charset").then(|| value.trim().trim_matches('"'))
    });
    let encoding = declared.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::{decoded, is_text};

    /// A90
    #[test]
    fn types_that_people_can_read_are_text() {
        let text =
            "text/html; charset=utf-8|application/json|application/ld+json|image/svg+xml|application/xml";
        assert!(text.split('|').all(is_text));
        assert!(
            !"image/png|application/octet-stream|application/pdf|video/mp4|nonsense".split('|').any(is_text)
        );
    }

    /// A90
    #[test]
    fn the_declared_character_set_counts() {
        assert_eq!(decoded("text/plain; charset=iso-8859-1", b"Z\xfcrich"), "Zürich");
        assert_eq!(decoded("text/plain; x=y; charset=\"shift_jis\"", b"\x93\xfa\x96{"), "日本");
        assert_eq!(decoded("text/plain; charset=nonsense", "Zürich".as_bytes()), "Zürich");
        assert_eq!(decoded("text/plain", b"Z\xfcrich"), "Z\u{fffd}rich");
    }
}
