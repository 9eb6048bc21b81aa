//! Which call of a streamed reply a fragment belongs to. Servers differ: some send ids and an index with each fragment, some
//! only with the first one, some one index for all calls, and some nothing of both.

use std::collections::HashMap;

use serde_json::Value;

use super::super::assembly::{Assembly, CallAt};
use super::super::failure::Failure;
use super::super::wire::str_of;

/// The calls of a streamed reply so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: HashMap<String, CallAt>,
    by_index: HashMap<u64, CallAt>,
    /// The call that was written last.
    last: Option<CallAt>,
}

/// A fragment of a call.
struct Fragment<'a> {
    id: &'a str,
    index: Option<u64>,
    name: &'a str,
    arguments: Option<&'a Value>,
    /// Whether another fragment stands before it in the same list.
    is_beside: bool,
}

impl<'a> Fragment<'a> {
    fn of(value: &'a Value, is_beside: bool) -> Self {
        let function = value.get("function").unwrap_or(&Value::Null);
        Self {
            id: str_of(value, "id"),
            index: value.get("index").and_then(Value::as_u64),
            name: str_of(function, "name"),
            arguments: function.get("arguments").filter(|arguments| !arguments.is_null()),
            is_beside,
        }
    }

    fn has_arguments(&self) -> bool {
        self.arguments.is_some_and(|arguments| arguments.as_str() != Some(""))
    }
}

impl Calls {
    /// Adds the fragments of one event.
    pub(super) fn add(&mut self, assembly: &mut Assembly, list: &[Value]) -> Result<(), Failure> {
        for (place, value) in list.iter().enumerate() {
            let fragment = Fragment::of(value, place > 0);
            if fragment.id.is_empty() && fragment.name.is_empty() && !fragment.has_arguments() {
                continue;
            }
            let at = match self.known(assembly, &fragment) {
                Some(at) => at,
                None => assembly.call(fragment.id, fragment.name)?,
            };
            if !fragment.id.is_empty() {
                self.by_id.insert(fragment.id.to_owned(), at);
            }
            // An index that came without id and name may be that of no call at all.
            if let Some(index) =
                fragment.index.filter(|_| !fragment.id.is_empty() || !fragment.name.is_empty())
            {
                self.by_index.insert(index, at);
            }
            self.last = Some(at);
            write(assembly, at, &fragment, value);
        }
        Ok(())
    }

    /// The earlier call that a fragment belongs to. Without one, it begins a call.
    fn known(&self, assembly: &Assembly, fragment: &Fragment<'_>) -> Option<CallAt> {
        if let Some(at) = self.by_id.get(fragment.id) {
            return Some(*at).filter(|at| !assembly.has_other_name(*at, fragment.name));
        }
        let by_index = fragment.index.and_then(|index| self.by_index.get(&index)).copied();
        let before = match by_index {
            Some(at) => at,
            // A name under a new index, or beside another fragment, is that of a new call.
            None if !fragment.name.is_empty() && (fragment.index.is_some() || fragment.is_beside) => {
                return None;
            }
            None => self.last?,
        };
        if !fragment.id.is_empty() && assembly.has_id(before) {
            return None;
        }
        let is_header = !fragment.name.is_empty() && assembly.has_name(before);
        if !is_header {
            return Some(before);
        }
        // The name again. It belongs to the call whose arguments still come; one that comes after them begins a call.
        let goes_on = if fragment.id.is_empty() {
            !assembly.is_complete(before) || by_index.is_some() && !fragment.has_arguments()
        } else {
            by_index.is_some() && !assembly.has_arguments(before)
        };
        Some(before).filter(|at| goes_on && !assembly.has_other_name(*at, fragment.name))
    }
}

/// Adds a whole call.
pub(super) fn whole(assembly: &mut Assembly, value: &Value) -> Result<(), Failure> {
    let fragment = Fragment::of(value, false);
    let at = assembly.call(fragment.id, fragment.name)?;
    write(assembly, at, &fragment, value);
    Ok(())
}

fn write(assembly: &mut Assembly, at: CallAt, fragment: &Fragment<'_>, value: &Value) {
    assembly.id(at, fragment.id);
    assembly.name(at, fragment.name);
    match fragment.arguments {
        Some(Value::String(piece)) => assembly.arguments(at, piece),
        Some(whole) => assembly.whole_arguments(at, Some(whole)),
        None => {}
    }
    if let Some(extra) = value.get("extra_content").filter(|extra| !extra.is_null()) {
        assembly.sign_call(at, extra.clone());
    }
}
