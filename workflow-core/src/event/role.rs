//! The roles of an event type (S2), as a set of flags for use in constants.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The roles of an event: start, stop, display, request, external, control.
///
/// Roles can be combined. Replies and failures have roles of their own, which only the library sets.
///
/// ```
/// use workflow_core::signature::Roles;
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
    /// No role: an ordinary control event.
    pub const NONE: Self = Self(0);

    /// Adds the role start: the event opens a run.
    pub const fn start(self) -> Self {
        Self(self.0 | START)
    }

    /// Adds the role stop: the event ends its run.
    pub const fn stop(self) -> Self {
        Self(self.0 | STOP)
    }

    /// Adds the role display: the event is shown to people.
    pub const fn display(self) -> Self {
        Self(self.0 | DISPLAY)
    }

    /// Adds the role request: the event asks the outside for a typed reply.
    pub const fn request(self) -> Self {
        Self(self.0 | REQUEST)
    }

    /// Adds the role external: clients may send the event.
    pub const fn external(self) -> Self {
        Self(self.0 | EXTERNAL)
    }

    /// Adds the role control: the event drives steps. Needed only beside [`display`](Self::display), since it
    /// is the default otherwise.
    pub const fn control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    pub(crate) const fn reply(self) -> Self {
        Self(self.0 | REPLY)
    }

    pub(crate) const fn failure(self) -> Self {
        Self(self.0 | FAILURE)
    }

    /// Whether the event opens a run.
    pub const fn is_start(self) -> bool {
        self.0 & START != 0
    }

    /// Whether the event ends its run.
    pub const fn is_stop(self) -> bool {
        self.0 & STOP != 0
    }

    /// Whether the event is shown to people.
    pub const fn is_display(self) -> bool {
        self.0 & DISPLAY != 0
    }

    /// Whether the event asks the outside.
    pub const fn is_request(self) -> bool {
        self.0 & REQUEST != 0
    }

    /// Whether clients may send the event.
    pub const fn is_external(self) -> bool {
        self.0 & EXTERNAL != 0
    }

    /// Whether the event is the reply to a request.
    pub const fn is_reply(self) -> bool {
        self.0 & REPLY != 0
    }

    /// Whether the event reports the failure of a step.
    pub const fn is_failure(self) -> bool {
        self.0 & FAILURE != 0
    }

    /// Whether the event drives steps. Only a pure display event does not.
    pub const fn is_control(self) -> bool {
        self.0 != DISPLAY
    }
}

/// The name of each flag in a journal.
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

/// Serialises the names of the flags.
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
