//! From the description of a provider to its model: key, address and HTTP client. It sends nothing.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::client::{Client, fixed_headers};
use super::failure::Subject;
use super::kind::Kind;
use super::redact::Secrets;
use super::wire::Target;
use super::{Backend, Key, Provider, ProviderError, ProviderModel, Source};
use crate::model::ModelLimits;

impl Source {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let own = Kind::of_name(name).map(Self::Own);
        #[cfg(feature = "genai")]
        let own = own.or_else(|| super::genai::Adapter::of_name(name).map(Self::Genai));
        own
    }

    /// The names of all providers.
    pub(super) fn names() -> Vec<&'static str> {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        #[cfg(feature = "genai")]
        let names = [names, super::genai::Adapter::names()].concat();
        names
    }

    /// The same as a text.
    pub(super) fn known() -> String {
        Self::names().join(", ")
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own(kind) => kind.name(),
            #[cfg(feature = "genai")]
            Self::Genai(adapter) => adapter.name(),
        }
    }

    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Own(kind) => kind.variable(),
            #[cfg(feature = "genai")]
            Self::Genai(adapter) => adapter.variable(),
        }
    }
}

impl Provider {
    /// The model.
    ///
    /// # Errors
    /// A [`ProviderError`] if the key is missing, or if a setting is unusable.
    pub fn build(self) -> Result<ProviderModel, ProviderError> {
        if self.idle_timeout.is_zero() {
            return Err(ProviderError::NoTime { name: self.name() });
        }
        let endpoint = self.endpoint.as_deref().map(|url| self.parsed(url)).transpose()?;
        let key = self.read_key()?;
        let secrets = key.iter().cloned().chain(self.headers.iter().map(|(_, value)| value.clone()));
        let subject = Arc::new(self.subject(endpoint.as_ref(), secrets.collect()));
        let http = self.http()?;
        match self.source {
            Source::Own(kind) => {
                let limits = self.priced(kind.limits());
                let base = endpoint.map_or_else(|| self.parsed(kind.endpoint()), Ok)?;
                let client = Client {
                    http,
                    kind,
                    address: kind.address(&base, &self.model, self.streaming),
                    headers: self.all_headers(kind, key.as_deref())?,
                    target: self.target(kind, limits),
                    options: self.checked_options(kind)?,
                    idle_timeout: self.idle_timeout,
                    subject: Arc::clone(&subject),
                };
                let backend = Backend::Own(Arc::new(client));
                Ok(ProviderModel {
                    backend,
                    name: self.model,
                    subject,
                    limits,
                    native_output: self.native_output,
                })
            }
            #[cfg(feature = "genai")]
            Source::Genai(adapter) => self.build_genai(adapter, http, key, endpoint.as_ref(), subject),
        }
    }

    /// Provider and model.
    pub(super) fn name(&self) -> String {
        format!("{}::{}", self.source.name(), self.model)
    }

    /// The limits with the price.
    pub(super) fn priced(&self, default: ModelLimits) -> ModelLimits {
        let limits = self.limits.unwrap_or(default);
        self.price.map_or(limits, |price| limits.price(price))
    }

    pub(super) fn subject(&self, endpoint: Option<&Url>, secrets: Vec<String>) -> Subject {
        let variable = match &self.key {
            Key::Variable(variable) => Some(variable.as_str()),
            Key::Default | Key::Text(_) | Key::None => self.source.variable(),
        };
        Subject {
            name: self.name().into(),
            origin: endpoint.map(|url| url.origin().ascii_serialization().into()),
            variable: variable.map(Into::into),
            secrets: Secrets::new(secrets),
        }
    }

    pub(super) fn target(&self, kind: Kind, limits: ModelLimits) -> Target {
        let host = self.endpoint.as_deref().and_then(|url| Url::parse(url).ok());
        let provider: Arc<str> = match host {
            None => kind.name().into(),
            Some(url) => format!("{}@{}", kind.name(), url.origin().ascii_serialization()).into(),
        };
        Target {
            model: Arc::clone(&self.model),
            provider,
            is_original: self.endpoint.is_none(),
            streaming: self.streaming,
            context: limits.context,
        }
    }

    fn parsed(&self, endpoint: &str) -> Result<Url, ProviderError> {
        let unusable =
            |reason: &str| ProviderError::UnusableEndpoint { name: self.name(), reason: reason.to_owned() };
        let url = Url::parse(endpoint).map_err(|error| unusable(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("it must begin with `https://` or `http://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unusable("it must not have a user or a password: use `key` or `header`"));
        }
        if url.fragment().is_some() {
            return Err(unusable("it must not have a fragment"));
        }
        Ok(url)
    }

    fn read_key(&self) -> Result<Option<String>, ProviderError> {
        let variable = match &self.key {
            Key::Text(key) => return Ok(Some(key.clone())),
            Key::None => return Ok(None),
            Key::Variable(variable) => variable.as_str(),
            Key::Default => match self.source.variable() {
                Some(variable) => variable,
                None => return Ok(None),
            },
        };
        let key = std::env::var(variable).unwrap_or_default();
        let key = key.trim();
        if key.is_empty() {
            return Err(ProviderError::MissingKey { name: self.name(), variable: variable.to_owned() });
        }
        Ok(Some(key.to_owned()))
    }

    fn http(&self) -> Result<reqwest::Client, ProviderError> {
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // The agent retries, and nothing else does.
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(self.idle_timeout);
        let builder = match &self.proxy {
            None => builder,
            Some(url) => {
                let proxy = reqwest::Proxy::all(url.as_str());
                builder.proxy(proxy.map_err(|_| ProviderError::UnusableProxy { name: self.name() })?)
            }
        };
        let failed =
            |error: reqwest::Error| ProviderError::Client { name: self.name(), reason: error.to_string() };
        builder.build().map_err(failed)
    }

    fn all_headers(&self, kind: Kind, key: Option<&str>) -> Result<HeaderMap, ProviderError> {
        let mut headers = fixed_headers(kind);
        let (header, before) = kind.key_header();
        let key = key.map(|key| (header.to_owned(), format!("{before}{key}")));
        for (name, value) in key.iter().chain(&self.headers) {
            let unusable = || ProviderError::UnusableHeader { name: self.name(), header: name.clone() };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }

    fn checked_options(
        &self,
        kind: Kind,
    ) -> Result<serde_json::Map<String, serde_json::Value>, ProviderError> {
        match self.options.keys().find(|option| kind.reserved().contains(&option.as_str())) {
            Some(option) => Err(ProviderError::ReservedOption { name: self.name(), option: option.clone() }),
            None => Ok(self.options.clone()),
        }
    }
}
