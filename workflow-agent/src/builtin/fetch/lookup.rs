//! From names to addresses: the client connects to nothing but what these resolvers return, so the checked addresses are
//! those of the connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// Looks a name up.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The look-up of the operating system.
pub(super) fn system() -> Lookup {
    Arc::new(|name| {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    })
}

/// Refuses names that lead to addresses that are not public.
pub(super) struct Checked(pub(super) Lookup);

/// Takes names as they are: for hosts that are allowed.
pub(super) struct Unchecked(pub(super) Lookup);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let looked_up = (self.0)(name.as_str().to_owned());
        Box::pin(async move {
            let found = looked_up.await?;
            // One of several is enough: the client would try them all, and an attacker would choose the order.
            if found.iter().all(|address| is_public(*address)) {
                Ok(addresses(found))
            } else {
                Err(NotPublic.into())
            }
        })
    }
}

impl Resolve for Unchecked {
    fn resolve(&self, name: Name) -> Resolving {
        let looked_up = (self.0)(name.as_str().to_owned());
        Box::pin(async move { Ok(addresses(looked_up.await?)) })
    }
}

/// The client replaces the port by that of the URL.
fn addresses(found: Vec<IpAddr>) -> Addrs {
    Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)))
}

/// A name has an address that is not public. The address itself stays out: a model need not learn a network's plan.
#[derive(Debug, thiserror::Error)]
#[error("the name has an address that is not public")]
pub(super) struct NotPublic;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use reqwest::dns::Resolve as _;

    use super::{Checked, NotPublic};

    /// A90
    #[tokio::test]
    async fn the_addresses_to_connect_to_are_the_checked_ones_of_one_answer() {
        let answers: [&[&str]; 3] = [&["9.9.9.9", "2620:fe::fe"], &["127.0.0.1"], &["9.9.9.9", "10.0.0.1"]];
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let checked = Checked(Arc::new(move |_| {
            let answer = answers[counted.fetch_add(1, Ordering::Relaxed)];
            let answer = answer.iter().map(|address| address.parse().unwrap()).collect::<Vec<IpAddr>>();
            async { Ok(answer) }.boxed()
        }));
        let name = || "changing.example".parse().unwrap();
        let first: Vec<SocketAddr> = checked.resolve(name()).await.unwrap().collect();
        assert_eq!(first, ["9.9.9.9:0".parse().unwrap(), "[2620:fe::fe]:0".parse().unwrap()]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        for _ in 0..2 {
            assert!(checked.resolve(name()).await.err().unwrap().is::<NotPublic>());
        }
    }
}
