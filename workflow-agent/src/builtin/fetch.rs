//! The tool `fetch`: its options, and the way from request to request until one is no redirect. Addresses are judged in
//! `address`, names are looked up in `lookup`, URLs are checked in `target`, and `page` makes the result. It deliberately
//! sends nothing but `GET` and `HEAD`, and keeps no cookies.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

mod address;
mod lookup;
mod page;
mod target;

use lookup::{Checked, Lookup, NotPublic, Unchecked};
use target::Endpoint;

use crate::approval::Approval;
use crate::tool::{FnTool, Tool, ToolError, ToolOutput, ToolSet};

/// The most redirects of a call.
const REDIRECTS: usize = 5;
/// The longest time of a call.
const LONGEST: Duration = Duration::from_secs(30);

/// The tool `fetch`, which requests a page by `GET` or `HEAD`.
///
/// # Addresses
/// The tool reaches `http` and `https` at public addresses only. It refuses loopback, private, link-local, shared (carrier
/// grade NAT), multicast, unspecified, reserved and documentation addresses of IPv4, everything of IPv6 but its global
/// unicast range, and IPv6 addresses that lead to such ones of IPv4: mapped, compatible, and NAT64 ones are judged by the
/// address inside, and 6to4 and Teredo ones are refused. The check concerns the address of the connection: a name is
/// looked up once, and the tool connects to nothing but the addresses that it checked. If one of a name's addresses is
/// not public, the name is refused. All this holds anew for each redirect, of which a call follows five.
///
/// [`allow`](Self::allow) makes exceptions. The proxies of the environment (`HTTP_PROXY` and so on) are not used, since a
/// proxy would connect to any address. URLs with a user or a password are refused.
///
/// Two things stay yours. The tool can fetch all that your network serves at a public address. And a model can send data
/// to anybody by a URL: if a conversation has secrets, let a person approve calls by [`approval`](Self::approval), which
/// sees the URL but not its redirects.
///
/// # Bounds
/// A call takes 30 seconds at most, and reads 5 MiB of a body.
///
/// # Result
/// The first line has the status, the next ones have the URL after redirects and the content type, and the text follows
/// after an empty line, as it came. A status of 400 or above is an error result. Of a body that is no text only type and
/// size are shown.
///
/// ```
/// use workflow_agent::builtin::Fetch;
/// use workflow_agent::tool::{ToolContext, ToolSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let [tool] = &Fetch::new().into_tools()[..] else { unreachable!() };
/// let arguments = serde_json::json!({ "url": "http://0x7f.1/admin" });
/// let refused = tool.call(arguments, ToolContext::detached("1")).await.unwrap_err();
/// assert!(refused.to_string().contains("127.0.0.1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fetch {
    allowed: BTreeSet<Endpoint>,
    lookup: Lookup,
    longest: Duration,
    approval: Approval,
}

impl Fetch {
    /// The tool for public addresses.
    pub fn new() -> Self {
        Self {
            allowed: BTreeSet::new(),
            lookup: lookup::system(),
            longest: LONGEST,
            approval: Approval::Never,
        }
    }

    /// Allows one host with one port, at any address. Other ports of the host, and other names of it, stay
    /// refused.
    ///
    /// ```
    /// use workflow_agent::builtin::Fetch;
    ///
    /// let fetch = Fetch::new().allow("wiki.intern:8080")?.allow("[::1]:3000")?;
    /// assert!(fetch.allow("wiki.intern").is_err());
    /// # Ok::<_, workflow_agent::builtin::FetchError>(())
    /// ```
    ///
    /// # Errors
    /// [`FetchError::NoEndpoint`] if the text is not a host, `:` and a port.
    pub fn allow(mut self, host_and_port: &str) -> Result<Self, FetchError> {
        let endpoint = Endpoint::parse(host_and_port)
            .ok_or_else(|| FetchError::NoEndpoint { given: host_and_port.to_owned() })?;
        self.allowed.insert(endpoint);
        Ok(self)
    }

    /// Sets the longest time of a call, redirects and body included. Default: 30 seconds; at least a millisecond.
    #[must_use]
    pub fn timeout(self, longest: Duration) -> Self {
        Self { longest: longest.max(Duration::from_millis(1)), ..self }
    }

    /// Sets which calls a person must approve. Default: none.
    ///
    /// ```
    /// use workflow_agent::Approval;
    /// use workflow_agent::builtin::Fetch;
    ///
    /// let is_known = |url: &str| url.starts_with("https://docs.rs/");
    /// let unknown = Approval::when(move |arguments| !arguments["url"].as_str().is_some_and(is_known));
    /// let fetch = Fetch::new().approval(unknown);
    /// # let _ = fetch;
    /// ```
    #[must_use]
    pub fn approval(self, approval: Approval) -> Self {
        Self { approval, ..self }
    }

    /// Sets how names are looked up, instead of by the operating system. The addresses are checked all the same.
    ///
    /// ```
    /// use std::net::{IpAddr, Ipv4Addr};
    /// use workflow_agent::builtin::Fetch;
    ///
    /// let fetch = Fetch::new().resolve_with(|_name| async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) });
    /// # let _ = fetch;
    /// ```
    #[must_use]
    pub fn resolve_with<F>(self, lookup: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self { lookup: Arc::new(move |name| lookup(name).boxed()), ..self }
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("allowed", &self.allowed)
            .field("longest", &self.longest)
            .field("approval", &self.approval)
            .finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl ToolSet for Fetch {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        let (longest, approval) = (self.longest, self.approval.clone());
        let clients = Clients::new(self).map(Arc::new).map_err(Arc::new);
        let call = move |arguments: FetchPage, _| {
            let clients = clients.clone();
            async move {
                let clients = clients.map_err(ToolError::new)?;
                match tokio::time::timeout(longest, clients.fetch(&arguments)).await {
                    Ok(result) => Ok(result?),
                    Err(_) => Err(ToolError::new(Failure::Timeout { seconds: longest.as_secs_f64() })),
                }
            }
        };
        let end = longest.saturating_add(Duration::from_secs(10));
        vec![Arc::new(FnTool::new("fetch", DESCRIPTION, call).read_only().approval(approval).timeout(end))]
    }
}

/// Why an option of [`Fetch`] cannot be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The text names no host with a port.
    #[error("`{given}` is no host with a port; write `host:port`, such as `localhost:8080` or `[::1]:8080`")]
    NoEndpoint {
        /// The text.
        given: String,
    },
}

const DESCRIPTION: &str = "Fetches a web page or file by its URL, and returns status, content type and text. Only public \
                           addresses can be reached.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FetchPage {
    /// The URL, with http or https.
    url: String,
    /// The method. HEAD returns no text. Default: GET.
    method: Option<FetchMethod>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum FetchMethod {
    Get,
    Head,
}

/// The clients of a tool. Neither keeps connections, follows redirects, or asks the environment for proxies.
struct Clients {
    allowed: BTreeSet<Endpoint>,
    /// Connects to public addresses only.
    public: Client,
    /// Connects to what is allowed.
    exempt: Client,
}

impl Clients {
    fn new(fetch: Fetch) -> Result<Self, reqwest::Error> {
        Ok(Self {
            allowed: fetch.allowed,
            public: builder().dns_resolver(Checked(Arc::clone(&fetch.lookup))).build()?,
            exempt: builder().dns_resolver(Unchecked(fetch.lookup)).build()?,
        })
    }

    async fn fetch(&self, arguments: &FetchPage) -> Result<ToolOutput, Failure> {
        let method = match arguments.method {
            Some(FetchMethod::Head) => Method::HEAD,
            Some(FetchMethod::Get) | None => Method::GET,
        };
        let mut url = target::parse(&arguments.url)?;
        for redirects in 0..=REDIRECTS {
            let response = self.request(&method, &url).await?;
            match target::redirect(&url, &response)? {
                Some(next) => url = next,
                None if method == Method::HEAD => return Ok(page::head(&url, &response, redirects > 0)),
                None => return page::read(&url, response, redirects > 0).await,
            }
        }
        Err(Failure::Redirects)
    }

    async fn request(&self, method: &Method, url: &Url) -> Result<Response, Failure> {
        let client = if self.allowed.contains(&Endpoint::of(url)) {
            &self.exempt
        } else {
            // An address in a URL is not looked up, so the check at looking up does not see it.
            target::check_address(url)?;
            &self.public
        };
        client.request(method.clone(), url.clone()).send().await.map_err(|error| Failure::of(url, error))
    }
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("workflow-agent/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .pool_max_idle_per_host(0)
}

/// Why a page cannot be fetched. The model reads it.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("`{given}` is no URL")]
    NoUrl { given: String, source: url::ParseError },
    #[error("URLs with `{scheme}:` cannot be fetched; use `http:` or `https:`")]
    Scheme { scheme: String },
    #[error("a URL with a user or a password cannot be fetched")]
    Credentials,
    #[error("`{address}` is no public address, so it cannot be fetched")]
    Address { address: IpAddr },
    #[error("`{host}` has an address that is not public, so it cannot be fetched")]
    Host { host: String },
    #[error("the page redirects to an address that is no text")]
    Location,
    #[error("the page redirects more than {REDIRECTS} times")]
    Redirects,
    #[error("the page was not complete after {seconds} s")]
    Timeout { seconds: f64 },
    #[error("the page cannot be fetched")]
    Http(#[source] reqwest::Error),
}

impl Failure {
    /// Finds the refusal of an address among the causes: the errors around it would hide it.
    fn of(url: &Url, error: reqwest::Error) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            if one.is::<NotPublic>() {
                return Self::Host { host: url.host_str().unwrap_or_default().to_owned() };
            }
            cause = one.source();
        }
        Self::Http(error.without_url())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Fetch;
    use crate::approval::Approval;
    use crate::tool::ToolSet as _;

    /// A90, A20
    #[test]
    fn a_call_changes_nothing_and_needs_approval_only_if_asked_for() {
        let asks = |fetch: Fetch| {
            let tools = fetch.into_tools();
            assert!(tools[0].spec().is_read_only());
            tools[0].spec().needs_approval(&json!({ "url": "https://example.org/" }))
        };
        assert!(!asks(Fetch::new()));
        assert!(asks(Fetch::new().approval(Approval::Always)));
    }
}
