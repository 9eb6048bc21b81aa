//! The codes of problems, with their names and severities. Messages are written where a problem is found.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Severity;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $severity:ident,)*) => {
        /// The kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes, in the order of the format's page.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The code as reports write it, such as `unknown-key`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Whether a problem of this code keeps a document from running.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The file is no YAML or JSON.
    Syntax = "syntax" Error,
    /// A map has one key twice, a file one graph, or a registry two things of one name.
    DuplicateKey = "duplicate-key" Error,
    /// The format has no such key here.
    UnknownKey = "unknown-key" Error,
    /// A required key is absent.
    MissingKey = "missing-key" Error,
    /// A value has another type than the format asks for.
    WrongType = "wrong-type" Error,
    /// A name has characters that names cannot have.
    BadName = "bad-name" Error,
    /// An id is a word that expressions use otherwise.
    ReservedName = "reserved-name" Error,
    /// A duration is none of `250ms`, `30s`, `10m`, `48h`, `7d`.
    BadDuration = "bad-duration" Error,
    /// A schema is no valid JSON Schema.
    BadSchema = "bad-schema" Error,
    /// An expression cannot be read.
    BadExpression = "bad-expression" Error,
    /// A regular expression cannot be read.
    BadPattern = "bad-pattern" Error,
    /// A file is not there, or cannot be read.
    FileNotFound = "file-not-found" Error,
    /// A file lies outside of the folder of the document.
    FileOutsideRoot = "file-outside-root" Error,
    /// A bound is exceeded.
    TooLarge = "too-large" Error,
    /// `start` names no node.
    UnknownStart = "unknown-start" Error,
    /// A route, `reads` or `join` names no node.
    UnknownNode = "unknown-node" Error,
    /// An expression or `set` names a variable that is not declared.
    UnknownVar = "unknown-var" Error,
    /// An expression reads a field that the schema does not have.
    UnknownField = "unknown-field" Error,
    /// A node runs a graph that neither the file nor the registry has.
    UnknownGraph = "unknown-graph" Error,
    /// No route leads to a node.
    UnreachableNode = "unreachable-node" Error,
    /// An unbounded route leads to its own node.
    SelfLoop = "self-loop" Error,
    /// A cycle has no bound.
    UnboundedCycle = "unbounded-cycle" Error,
    /// Two routes or choices of a node have one name.
    AmbiguousRoutes = "ambiguous-routes" Error,
    /// A route stands behind one that always holds.
    DeadRoute = "dead-route" Error,
    /// An expression reads a node that cannot have run.
    NeverReadBefore = "never-read-before" Error,
    /// An expression reads a value that is not always there.
    MaybeMissing = "maybe-missing" Warning,
    /// An operator is used on values of types that it does not take.
    TypeMismatch = "type-mismatch" Error,
    /// A value is compared with one that its schema excludes.
    NeverEqual = "never-equal" Warning,
    /// `${` stands where nothing is interpolated.
    NotInterpolated = "not-interpolated" Warning,
    /// A variable has no first value and no node sets it.
    UnsetVar = "unset-var" Warning,
    /// An agent node has `retry`.
    RetryOnAgent = "retry-on-agent" Error,
    /// A route leads from elsewhere into a branch.
    EnteredFromOutside = "entered-from-outside" Error,
    /// Two branches reach one node and have no join.
    NoCommonJoin = "no-common-join" Error,
    /// No branch reaches the join.
    JoinNotReached = "join-not-reached" Error,
    /// Two branches can set one variable, and `conflicts` is not stated.
    BranchConflict = "branch-conflict" Warning,
    /// No route of a list always holds, and `on_no_match` is not stated.
    NoDefault = "no-default" Warning,
    /// A person is asked without a schema of the reply.
    MissingReplySchema = "missing-reply-schema" Warning,
    /// A check is incomplete or contradicts itself.
    BadCheck = "bad-check" Error,
    /// A key of a former version of an imported format.
    LegacyKey = "legacy-key" Error,
    /// An imported document uses what this crate does not have.
    Unsupported = "unsupported" Error,
    /// A document declares more judges than its budget allows.
    JudgeBudget = "judge-budget" Warning,
    /// The registry has no such function.
    UnknownFunction = "unknown-function" Error,
    /// The executor of tools has no such tool.
    UnknownTool = "unknown-tool" Error,
    /// The registry has no such workflow.
    UnknownWorkflow = "unknown-workflow" Error,
    /// A node needs an executor that the registry does not have.
    NoExecutor = "no-executor" Error,
    /// The registry allows no commands.
    CommandsNotAllowed = "commands-not-allowed" Error,
    /// `with` lacks a field that the input requires.
    MissingInput = "missing-input" Error,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
