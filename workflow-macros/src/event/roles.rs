//! The roles of an event as declared, and the combinations that are allowed.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use crate::mistakes::Mistakes;

/// The declared roles.
#[derive(Default)]
pub(crate) struct Roles(Vec<Ident>);

impl Roles {
    /// Whether no role is declared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a role.
    pub(crate) fn add(&mut self, role: Ident) {
        self.0.push(role);
    }

    /// The identifier of the role in the attribute; `None` if it is not declared.
    pub(crate) fn given(&self, role: &str) -> Option<&Ident> {
        self.0.iter().find(|given| *given == role)
    }

    /// Whether the event has the role.
    pub(crate) fn has(&self, role: &str) -> bool {
        self.given(role).is_some()
    }

    /// Whether the event drives steps: all but a pure display event do.
    pub(crate) fn drives_steps(&self) -> bool {
        !(self.has("display") && self.0.len() == 1)
    }

    /// Reports contradicting roles.
    pub(crate) fn validate(&self, mistakes: &mut Mistakes) {
        if let (true, Some(stop)) = (self.has("start"), self.given("stop")) {
            mistakes.at(stop, "an event cannot both open a run and end it: leave out `start` or `stop`");
        }
    }
}

impl ToTokens for Roles {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let roles = &self.0;
        tokens.extend(quote!(Roles::NONE #(.#roles())*));
    }
}
