//! Roles of an event type (S2), as a set of flags usable in constants.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What an event is for: any combination of start, stop, display, request, external and control.
///
/// ```
/// use workflow_core::Roles;
/// const SHOWN_START: Roles = Roles::NONE.start().display();
/// assert!(SHOWN_START.is_start() && SHOWN_START.is_control());
/// assert!(!Roles::NONE.display().is_control());
/// assert_eq!(SHOWN_START.to_string(), "start, display");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roles(u8);

const START: u8 = 1;
const STOP: u8 = 2;
const DISPLAY: u8 = 4;
const REQUEST: u8 = 8;
const EXTERNAL: u8 = 16;
const CONTROL: u8 = 32;
const REPLY: u8 = 64;
const FAILURE: u8 = 128;

impl Roles {
    /// No role given: an ordinary control event.
    pub const NONE: Self = Self(0);

    /// Adds: opens a run.
    pub const fn start(self) -> Self {
        Self(self.0 | START)
    }

    /// Adds: ends its run.
    pub const fn stop(self) -> Self {
        Self(self.0 | STOP)
    }

    /// Adds: is shown to people.
    pub const fn display(self) -> Self {
        Self(self.0 | DISPLAY)
    }

    /// Adds: asks the outside and has a typed reply.
    pub const fn request(self) -> Self {
        Self(self.0 | REQUEST)
    }

    /// Adds: may be sent in from outside.
    pub const fn external(self) -> Self {
        Self(self.0 | EXTERNAL)
    }

    /// Adds: drives steps. Only needed beside [`display`](Self::display); it is the default otherwise.
    pub const fn control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    pub(crate) const fn reply(self) -> Self {
        Self(self.0 | REPLY)
    }

    pub(crate) const fn failure(self) -> Self {
        Self(self.0 | FAILURE)
    }

    /// Opens a run.
    pub const fn is_start(self) -> bool {
        self.0 & START != 0
    }

    /// Ends its run.
    pub const fn is_stop(self) -> bool {
        self.0 & STOP != 0
    }

    /// Is shown to people.
    pub const fn is_display(self) -> bool {
        self.0 & DISPLAY != 0
    }

    /// Asks the outside.
    pub const fn is_request(self) -> bool {
        self.0 & REQUEST != 0
    }

    /// May be sent in from outside.
    pub const fn is_external(self) -> bool {
        self.0 & EXTERNAL != 0
    }

    /// Is the reply to a request.
    pub const fn is_reply(self) -> bool {
        self.0 & REPLY != 0
    }

    /// Says that a step failed.
    pub const fn is_failure(self) -> bool {
        self.0 & FAILURE != 0
    }

    /// Drives steps: everything but a pure display event.
    pub const fn is_control(self) -> bool {
        self.0 != DISPLAY
    }
}

/// What a journal calls each flag.
const NAMES: [(u8, &str); 8] = [
    (START, "start"),
    (STOP, "stop"),
    (DISPLAY, "display"),
    (REQUEST, "request"),
    (EXTERNAL, "external"),
    (CONTROL, "control"),
    (REPLY, "reply"),
    (FAILURE, "failure"),
];

/// The names of the flags that are set.
impl Serialize for Roles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let set = NAMES.iter().filter(|(flag, _)| self.0 & flag != 0);
        serializer.collect_seq(set.map(|(_, name)| name))
    }
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Vec::<String>::deserialize(deserializer)?;
        given.iter().try_fold(Self::NONE, |roles, name| {
            let known = NAMES.iter().find(|(_, known)| known == name);
            let flag = known.map(|(flag, _)| flag);
            flag.map(|flag| Self(roles.0 | flag))
                .ok_or_else(|| D::Error::custom(format_args!("there is no role `{name}`")))
        })
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.is_start(), "start"),
            (self.is_stop(), "stop"),
            (self.is_display(), "display"),
            (self.is_request(), "request"),
            (self.is_external(), "external"),
            (self.is_reply(), "reply"),
            (self.is_failure(), "failure"),
            (self.is_control() && self.0 & !(CONTROL | DISPLAY) == 0, "control"),
        ];
        let mut separator = "";
        for (_, name) in names.iter().filter(|(has, _)| *has) {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roles({self})")
    }
}
