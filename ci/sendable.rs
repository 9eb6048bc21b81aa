//! Whether the futures of a crate's public functions can move between threads, and whether a test names each of these
//! functions. A part of the tests of each crate, which include it by its path.

use std::collections::BTreeSet;

/// A function that returns a `Send` future for arguments of these types.
pub(crate) trait Sendable<Arguments> {}

impl<F, R> Sendable<()> for F
where
    F: FnOnce() -> R,
    R: Future + Send,
{
}

macro_rules! sendable {
    ($($argument:ident)*) => {
        impl<F, R, $($argument),*> Sendable<($($argument,)*)> for F
        where
            F: FnOnce($($argument),*) -> R,
            R: Future + Send,
        {
        }
    };
}

sendable!(A);
sendable!(A B);
sendable!(A B C);
sendable!(A B C D);

/// Compiles only if the future of the function is `Send`.
pub(crate) fn is_send<Arguments>(_: impl Sendable<Arguments>) {}

/// Compiles only for values that threads can share.
pub(crate) fn is_shared<T: Send + Sync>() {}

/// Compares the functions that a test names with the async ones among the public items of a crate.
pub(crate) fn assert_complete(list: &str, named: &[&str]) {
    let listed: BTreeSet<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("pub async fn "))
        .map(|line| name(line.trim()))
        .collect();
    let named: BTreeSet<String> = named.iter().map(|path| name(path)).collect();
    let missing: Vec<_> = listed.difference(&named).collect();
    let gone: Vec<_> = named.difference(&listed).collect();
    assert!(missing.is_empty(), "the test does not name these public functions: {missing:#?}");
    assert!(gone.is_empty(), "these functions are not public any more: {gone:#?}");
}

/// The type and the name of a function, without generic arguments, parameters and spaces.
fn name(path: &str) -> String {
    let (mut name, mut depth) = (String::new(), 0_usize);
    // The arrow of a function type closes no argument.
    for character in path.replace("->", "").chars() {
        match character {
            '(' if depth == 0 => break,
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ' ' | '\n' => {}
            other if depth == 0 => name.push(other),
            _ => {}
        }
    }
    // The arguments of a path stand behind colons of their own, and modules may be named in several ways.
    let mut parts: Vec<&str> = name.split("::").filter(|part| !part.is_empty()).collect();
    parts.split_off(parts.len().saturating_sub(2)).join("::")
}

/// Checks each function, and that the list of public items has no other async one.
macro_rules! each_future_is_send {
    ($list:expr; $($(#[$feature:meta])? $function:path => $arguments:ty;)*) => {
        $($(#[$feature])? $crate::sendable::functions::is_send::<$arguments>($function);)*
        $crate::sendable::functions::assert_complete($list, &[$(stringify!($function)),*]);
    };
}
pub(crate) use each_future_is_send;
