//! The roles given to an event, and which combinations make sense.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use crate::mistakes::Mistakes;

/// What an event is for, as given.
#[derive(Default)]
pub(crate) struct Roles(Vec<Ident>);

impl Roles {
    /// Whether none was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one.
    pub(crate) fn add(&mut self, role: Ident) {
        self.0.push(role);
    }

    /// The identifier that gave the role, if any did.
    pub(crate) fn given(&self, role: &str) -> Option<&Ident> {
        self.0.iter().find(|given| *given == role)
    }

    /// Whether the event has the role.
    pub(crate) fn has(&self, role: &str) -> bool {
        self.given(role).is_some()
    }

    /// Everything but a pure display event drives steps.
    pub(crate) fn drives_steps(&self) -> bool {
        !(self.has("display") && self.0.len() == 1)
    }

    /// Reports a combination that contradicts itself.
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
