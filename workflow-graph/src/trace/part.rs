//! The names of steps and events, as parts of nodes. Their forms are those of [`state::names`](crate::state::names).

use crate::part::Part;

/// A step: a part of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepName<'n> {
    pub(crate) node: &'n str,
    pub(crate) part: Part,
}

impl<'n> StepName<'n> {
    /// The node and the part that the name of a step says; nothing if it has another form.
    pub(crate) fn of(name: &'n str) -> Option<Self> {
        match name.split_once(':') {
            Some((node, part)) => Some(Self { node, part: Part::named(part)? }),
            None => Some(Self { node: name, part: Part::Visit }),
        }
    }
}

/// The subject of an event of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventName<'n> {
    /// A result, or one that a join publishes.
    Result(&'n str),
    /// A route that was taken, or the begin of a branch.
    Token {
        from: &'n str,
        to: &'n str,
    },
    /// All branches of the node have ended.
    Joined(&'n str),
    /// Visits of the node that left no result.
    Count(&'n str),
    /// The node asks people.
    Ask(&'n str),
    /// A branch, or the work of an item, begins.
    Item,
    Other,
}

impl<'n> EventName<'n> {
    pub(crate) fn of(name: &'n str) -> Self {
        if let Some((from, to)) = name.split_once("=>").or_else(|| name.split_once("->")) {
            return Self::Token { from, to };
        }
        match name.split_once(':') {
            Some((node, "joined")) => Self::Joined(node),
            Some((node, "count")) => Self::Count(node),
            Some((node, "ask")) => Self::Ask(node),
            Some((_, "item" | "each-item")) => Self::Item,
            None if !name.contains('.') => Self::Result(name),
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::names;

    /// G1
    #[test]
    fn names_of_steps_and_events_lead_back_to_nodes() {
        assert_eq!(StepName::of("a-b"), Some(StepName { node: "a-b", part: Part::Visit }));
        let reply = names::of("a", "reply");
        assert_eq!(StepName::of(&reply), Some(StepName { node: "a", part: Part::Reply }));
        assert_eq!(StepName::of("a:other"), None);
        let token = names::token("a-", "b");
        assert_eq!(EventName::of(&token), EventName::Token { from: "a-", to: "b" });
        let opening = names::opening("a-", "b");
        assert_eq!(EventName::of(&opening), EventName::Token { from: "a-", to: "b" });
        assert_eq!(EventName::of("a"), EventName::Result("a"));
        assert_eq!(EventName::of(names::INPUT), EventName::Other);
        assert_eq!(EventName::of(&names::variable("x")), EventName::Other);
    }
}
