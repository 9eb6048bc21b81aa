//! Failures of calls and their classes, for every kind. It does not send anything, and it does not know which key or
//! model a call has: `Subject` adds these.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use workflow_core::ErrorClass;

use super::redact::Secrets;
use crate::model::ModelError;

mod retry_after;

/// The longest text of a provider in an error, in characters.
const TEXT: usize = 1_000;

/// A failure before it is an error of a certain model.
#[derive(Debug)]
pub(crate) struct Failure {
    class: ErrorClass,
    status: Option<u16>,
    retry_after: Option<Duration>,
    message: String,
    /// The message is the beginning of a longer one.
    was_cut: bool,
    hint: Hint,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The hint of a failure that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint {
    None,
    Key,
    Model,
    Account,
}

impl Failure {
    fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            retry_after: None,
            message: message.into(),
            was_cut: false,
            hint: Hint::None,
            source: None,
        }
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient, message)
    }

    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Permanent, message)
    }

    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Model, message)
    }

    pub(crate) fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// A stream that ended before its reply did.
    pub(crate) fn broken_off() -> Self {
        Self::transient("the stream ended before the reply did")
    }

    /// An unknown reason for the end of a reply: nothing says that the reply is whole.
    pub(crate) fn unknown_finish(reason: &str) -> Self {
        Self::unusable(format!("the reply ended with the unknown reason `{reason}`"))
    }

    pub(crate) fn no_json(error: &serde_json::Error) -> Self {
        Self::transient(format!("the provider sent broken JSON: {error}"))
    }

    /// An answer with a status that is no success.
    pub(crate) fn of_answer(status: u16, headers: &HeaderMap, body: &[u8], was_cut: bool) -> Self {
        let text = String::from_utf8_lossy(body);
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let report = Report::of(&value);
        let retry_after = retry_after::of_headers(headers).or_else(|| report.retry_after());
        let message = if (300..400).contains(&status) {
            "it redirects, and redirects are not followed: set the endpoint".to_owned()
        } else if report.message.is_empty() {
            text.trim().to_owned()
        } else {
            report.message.clone()
        };
        let class = report.class_of_status(status).unwrap_or(ErrorClass::Permanent);
        Self {
            status: Some(status),
            retry_after,
            was_cut,
            hint: report.hint(Some(status)),
            ..Self::new(class, format!("status {status}: {message}"))
        }
    }

    /// An error that a provider reports within a reply.
    pub(crate) fn reported(value: &Value) -> Self {
        let report = Report::of(value);
        let message = if report.message.is_empty() { value.to_string() } else { report.message.clone() };
        Self {
            status: report.status,
            retry_after: report.retry_after(),
            hint: report.hint(report.status),
            ..Self::new(report.class(), format!("the provider reports: {message}"))
        }
    }
}

/// The code of an account whose quota is used up.
const QUOTA: &str = "insufficient_quota";

/// The codes of a key that is missing, wrong, or without a permission.
const KEYS: [&str; 5] =
    ["invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthenticated"];

/// The facts of an error body.
struct Report<'a> {
    error: &'a Value,
    message: String,
    /// Code, type and status, as far as they are words.
    codes: Vec<&'a str>,
    status: Option<u16>,
}

impl<'a> Report<'a> {
    fn of(value: &'a Value) -> Self {
        // Some servers put the error into a list.
        let value = value.get(0).unwrap_or(value);
        let error = ["error", "detail"].iter().find_map(|key| value.get(key).filter(|e| !e.is_null()));
        let error = error.unwrap_or(value);
        let message =
            error.as_str().or_else(|| error.get("message")?.as_str()).unwrap_or_default().to_owned();
        let words = ["code", "type", "status"].into_iter().filter_map(|key| error.get(key)?.as_str());
        let number = |key| error.get(key).and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = number("code").or_else(|| number("status")).filter(|code| (300..600).contains(code));
        Self { error, message, codes: words.collect(), status }
    }

    fn is_context_limit(&self) -> bool {
        const CODES: [&str; 4] = [
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ];
        const TEXTS: [&str; 15] = [
            "context_length_exceeded",
            "prompt is too long",
            "prompt is longer than the context",
            "maximum context length",
            "exceed context limit",
            "exceeds the context window",
            "exceeds the context length",
            "exceeds the available context size",
            "exceed_context_size",
            "exceeds the maximum number of tokens",
            "input token count exceeds",
            "input is too long",
            "input length exceeds",
            "larger than the context",
            "reduce the length of the messages",
        ];
        let message = self.message.to_lowercase();
        self.codes.iter().any(|code| CODES.contains(code)) || TEXTS.iter().any(|text| message.contains(text))
    }

    /// The class that a status has, if it is that of a failure.
    fn class_of_status(&self, status: u16) -> Option<ErrorClass> {
        match status {
            400 | 413 | 422 | 500 if self.is_context_limit() => Some(ErrorClass::ContextLimit),
            // The status is that of a rate limit, and no wait helps.
            429 if self.has_code(QUOTA) => Some(ErrorClass::Permanent),
            408 | 409 | 429 | 500..=599 => Some(ErrorClass::Transient),
            300..=499 => Some(ErrorClass::Permanent),
            _ => None,
        }
    }

    /// The class of an error without an HTTP status of its own.
    fn class(&self) -> ErrorClass {
        const PERMANENT: [&str; 12] = [
            "invalid_request_error",
            "authentication_error",
            "permission_error",
            "permission_denied",
            "not_found_error",
            "billing_error",
            "invalid_prompt",
            "invalid_api_key",
            "model_not_found",
            "invalid_argument",
            "unauthenticated",
            "not_found",
        ];
        if self.is_context_limit() {
            return ErrorClass::ContextLimit;
        }
        if let Some(class) = self.status.and_then(|status| self.class_of_status(status)) {
            return class;
        }
        let is_permanent = self.has_code(QUOTA)
            || self.codes.iter().any(|code| PERMANENT.contains(&code.to_lowercase().as_str()));
        if is_permanent { ErrorClass::Permanent } else { ErrorClass::Transient }
    }

    fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|own| own.eq_ignore_ascii_case(code))
    }

    /// The hint. The words of an error choose no class, but they tell a wrong key from an account without credit.
    fn hint(&self, status: Option<u16>) -> Hint {
        let message = self.message.to_lowercase();
        let has_any = |codes: &[&str]| codes.iter().any(|code| self.has_code(code));
        let is_account = status == Some(402)
            || has_any(&[QUOTA, "billing_error"])
            || ["credit", "billing", "quota", "insufficient balance"]
                .iter()
                .any(|word| message.contains(word));
        match status {
            _ if is_account => Hint::Account,
            Some(401 | 403) => Hint::Key,
            Some(404) => Hint::Model,
            _ if has_any(&["model_not_found", "not_found_error", "not_found"]) => Hint::Model,
            _ if has_any(&KEYS) || message.contains("api key") => Hint::Key,
            _ => Hint::None,
        }
    }

    /// Gemini says in the body how long to wait.
    fn retry_after(&self) -> Option<Duration> {
        let details = self.error.get("details")?.as_array()?;
        let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
        retry_after::seconds(delay.strip_suffix('s')?)
    }
}

/// The model whose calls fail: what its errors name, and what they must not show.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Provider and model, such as `anthropic::claude-sonnet-5`.
    pub(crate) name: Arc<str>,
    /// Scheme, host and port, if an endpoint was set.
    pub(crate) origin: Option<Arc<str>>,
    /// The variable of the key, if the kind has one.
    pub(crate) variable: Option<Arc<str>>,
    pub(crate) secrets: Secrets,
}

impl Subject {
    /// The failure as an error of the model, without keys.
    pub(crate) fn error(&self, failure: Failure) -> ModelError {
        let clean = self.secrets.redact(&failure.message, failure.was_cut);
        let short: String = clean.chars().take(TEXT).collect();
        let mut message = self.name.to_string();
        if let Some(origin) = &self.origin {
            message.push_str(" at ");
            message.push_str(origin);
        }
        message.push_str(": ");
        message.push_str(&short);
        if failure.class == ErrorClass::Permanent {
            self.hint(&mut message, failure.hint);
        }
        let error = ModelError::new(failure.class, message);
        let error = match failure.status {
            Some(status) => error.status(status),
            None => error,
        };
        let error = match failure.retry_after {
            Some(delay) => error.retry_after(delay),
            None => error,
        };
        match failure.source {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

impl Subject {
    fn hint(&self, message: &mut String, hint: Hint) {
        match (hint, &self.variable) {
            (Hint::None, _) | (Hint::Key, None) => {}
            (Hint::Key, Some(variable)) => {
                message.push_str(" (check the key, by default that of ");
                message.push_str(variable);
                message.push(')');
            }
            (Hint::Model, _) => message.push_str(" (check the model's name and the endpoint)"),
            (Hint::Account, _) => message.push_str(" (check the credit of the account)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use serde_json::json;
    use workflow_core::ErrorClass::{ContextLimit, Permanent, Transient};

    use super::super::redact::Secrets;
    use super::{Failure, Subject};

    fn subject() -> Subject {
        Subject {
            name: "openai::gpt".into(),
            origin: None,
            variable: Some("OPENAI_API_KEY".into()),
            secrets: Secrets::new(["sk-secret-0123456789".to_owned()]),
        }
    }

    /// A80
    #[test]
    fn context_errors_are_recognised_by_the_words_of_each_provider() {
        let bodies = [
            json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
            json!({"error": {"message": "This model's maximum context length is 8192 tokens."}}),
            json!({"error": {"message": "Your input exceeds the context window of this model."}}),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}),
            json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}}),
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
            json!({"error": "the prompt is longer than the context length currently available to the model"}),
            json!({"error": "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\"}}"}),
            json!([{"error": {"message": "Please reduce the length of the messages."}}]),
        ];
        for body in bodies {
            let text = body.to_string();
            let answer = Failure::of_answer(400, &HeaderMap::new(), text.as_bytes(), false);
            assert_eq!(subject().error(answer).class, ContextLimit, "{text}");
            assert_eq!(subject().error(Failure::reported(&body)).class, ContextLimit, "{text}");
        }
        let rate = json!({"error": {"message": "maximum context length", "code": 429}});
        let rate = Failure::of_answer(429, &HeaderMap::new(), rate.to_string().as_bytes(), false);
        assert_eq!(subject().error(rate).class, Transient);
    }

    /// A80
    #[test]
    fn reported_errors_have_the_class_of_their_code() {
        let class = |value| subject().error(Failure::reported(&value)).class;
        assert_eq!(class(json!({"error": {"type": "overloaded_error", "message": "Overloaded"}})), Transient);
        assert_eq!(class(json!({"error": {"code": 503, "status": "UNAVAILABLE"}})), Transient);
        assert_eq!(class(json!({"error": {"code": 400, "status": "INVALID_ARGUMENT"}})), Permanent);
        assert_eq!(
            class(json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"})),
            Transient
        );
        assert_eq!(class(json!({"code": "invalid_prompt", "message": "no"})), Permanent);
        assert_eq!(class(json!({"error": "llama runner process has terminated"})), Transient);
    }

    /// A80
    #[test]
    fn gemini_says_in_the_body_how_long_to_wait() {
        let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}});
        let failure = Failure::of_answer(429, &HeaderMap::new(), body.to_string().as_bytes(), false);
        assert_eq!(subject().error(failure).retry_after, Some(std::time::Duration::from_millis(34_500)));
    }

    /// A80
    #[test]
    fn an_error_body_of_any_bytes_becomes_an_error_without_the_key() {
        let check = bolero::check!().with_iterations(2_000);
        check.with_type::<(u16, Vec<u8>, bool, u8)>().for_each(|(status, body, cut, at)| {
            let mut body = body.clone();
            let key = b" sk-secret-0123456789";
            let at = usize::from(*at) % (body.len() + 1);
            body.splice(at..at, key.iter().copied());
            let error = subject().error(Failure::of_answer(*status, &HeaderMap::new(), &body, *cut));
            assert!(!error.message().contains("sk-secret"));
            assert!(error.message().len() <= 4 * 1_000 + 200);
        });
    }
}
