//! JSON of values whose type is erased.
//!
//! The serialiser is compiled with this crate. For each type of event, only the calls to it are compiled
//! where the type is defined, which keeps builds of users short. The result equals that of
//! `serde_json::to_value`, with the keys of each object sorted (S52). For values that a store must read back, [`fit()`] refuses parts that JSON would
//! lose.
//!
//! A [`JsonWriter`] has four uses: it builds a `Value`; it counts bytes without building anything (`count`);
//! it checks that the value can be read back (`checks`); or it marks each `Some`, for a comparison
//! (`marks_some`).

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Map, Value};

use crate::panics::caught;

mod count;
mod difference;
mod fit;
mod place;
mod read;
pub(crate) mod rfc3339;
mod verbatim;

use count::Count;
pub(crate) use count::size_of;
pub(crate) use difference::{Difference, difference};
use fit::Checks;
pub use fit::MAX_JSON_DEPTH;
pub(crate) use fit::{Misfit, fit};
pub(crate) use place::failing_at;
pub(crate) use read::read_json;

use crate::error::UnfitValue;

/// The names that `serde_json` gives to structs whose text is JSON already.
const VERBATIM: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

/// A value whose type is erased.
pub(crate) trait ToJson {
    /// Serialises the value into the writer.
    fn write(&self, to: &mut JsonWriter) -> Result<(), Error>;
}

impl<T: Serialize + ?Sized> ToJson for T {
    fn write(&self, to: &mut JsonWriter) -> Result<(), Error> {
        self.serialize(to)
    }
}

/// The value as JSON.
pub(crate) fn to_json(value: &(impl ToJson + ?Sized)) -> Result<Value, Error> {
    let mut writer = JsonWriter::default();
    written(value, &mut writer)?;
    writer.done.ok_or_else(|| Error::custom("nothing was written"))
}

/// Lets the value write itself. A panic of its `Serialize` becomes an error.
fn written(value: &(impl ToJson + ?Sized), to: &mut JsonWriter) -> Result<(), Error> {
    caught(|| value.write(to)).unwrap_or_else(|panic| Err(Error::custom(panic)))
}

/// The schema that a user's type makes of itself; `None` also if that panics.
pub(crate) fn schema(make: Option<fn() -> Value>) -> Option<Value> {
    caught(make?).ok()
}

/// Takes one value, part by part.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    /// The lists and objects that are open, the innermost last.
    open: Vec<Open>,
    done: Option<Value>,
    /// If set, the writer only counts bytes and builds nothing.
    count: Option<Count>,
    /// If set, the writer refuses a value that cannot be read back. Otherwise it writes such a value as
    /// `serde_json` does.
    checks: Option<Box<Checks>>,
    /// Whether to mark each `Some`, which plain JSON does not show. Set for comparisons.
    marks_some: bool,
}

#[derive(Debug)]
enum Open {
    List(Vec<Value>),
    Object {
        entries: Map<String, Value>,
        key: String,
    },
    /// A text that is JSON already. It is no level of its own: its value goes to what is open around it.
    Verbatim,
    /// A list or an object that is only counted, and whether it has an entry yet.
    Counted(bool),
}

impl JsonWriter {
    /// Whether it marks what plain JSON does not show, for a comparison of Rust values.
    pub(crate) fn marks(&self) -> bool {
        self.marks_some
    }

    fn put(&mut self, value: Value) -> Result<(), Error> {
        match self.open.last_mut() {
            None if self.count.is_some() => return self.counted(&value),
            Some(Open::Counted(_)) => return self.counted(&value),
            _ => self.note_size(&value)?,
        }
        match self.open.last_mut() {
            Some(Open::List(values)) => values.push(value),
            Some(Open::Object { entries, key }) => {
                let key = std::mem::take(key);
                if self.checks.is_some() && entries.get(&key).is_some_and(|before| *before != value) {
                    return Err(self.refused(UnfitValue::KeyTwice { key }));
                }
                entries.insert(key, value);
            }
            Some(Open::Verbatim) => return Err(Error::custom("JSON as it stands is a text")),
            _ => self.done = Some(value),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        match self.open.last() {
            Some(Open::Counted(_)) => self.counted(text),
            None if self.count.is_some() => self.counted(text),
            Some(Open::Verbatim) => self.verbatim(text),
            _ => self.put(Value::from(text)),
        }
    }

    /// Writes the value of a text that is JSON already.
    fn verbatim(&mut self, text: &str) -> Result<(), Error> {
        let verbatim = self.open.pop();
        let written = if self.checks.is_some() { verbatim::write(text, self) } else { self.lenient(text) };
        self.open.extend(verbatim);
        written
    }

    /// Writes it as `serde_json` reads it.
    fn lenient(&mut self, text: &str) -> Result<(), Error> {
        let mut value: Value = serde_json::from_str(text)?;
        value.sort_all_objects();
        self.put(value)
    }

    /// Counts a value and the comma behind it.
    fn counted<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.one_more();
        self.count.as_mut().map_or(Ok(()), |count| count.text(value))
    }

    /// Counts the comma of an entry. Closing the list or object takes the last comma back.
    fn one_more(&mut self) {
        if let (Some(count), Some(Open::Counted(any))) = (&mut self.count, self.open.last_mut()) {
            count.add(1);
            *any = true;
        }
    }

    fn count_open(&mut self) -> &mut Self {
        self.one_more();
        self.open.push(Open::Counted(false));
        self
    }

    fn list(&mut self, length: Option<usize>) -> Result<&mut Self, Error> {
        if self.count.is_some() {
            return Ok(self.count_open());
        }
        self.check_depth(self.open.len() + 1)?;
        // A length is only a hint, so it must not cause an unbounded allocation.
        self.open.push(Open::List(Vec::with_capacity(length.unwrap_or(0).min(1_024))));
        Ok(self)
    }

    fn object(&mut self) -> Result<&mut Self, Error> {
        if self.count.is_some() {
            return Ok(self.count_open());
        }
        self.check_depth(self.open.len() + 1)?;
        self.open.push(Open::Object { entries: Map::new(), key: String::new() });
        Ok(self)
    }

    /// Opens an enum variant: an object with one entry.
    fn variant(&mut self, name: &'static str) -> Result<&mut Self, Error> {
        Ok(self.object()?.named(name))
    }

    fn named(&mut self, name: &'static str) -> &mut Self {
        match (self.open.last(), &mut self.count) {
            (Some(Open::Counted(_)), Some(count)) => count.key(name),
            (Some(Open::Object { .. }), _) => return self.key(name.to_owned()),
            _ => {}
        }
        self
    }

    fn key(&mut self, name: String) -> &mut Self {
        match (self.open.last_mut(), &mut self.count) {
            (Some(Open::Object { key, .. }), _) => *key = name,
            (Some(Open::Counted(_)), Some(count)) => count.key(&name),
            _ => {}
        }
        self
    }

    fn close(&mut self) -> Result<(), Error> {
        let value = match self.open.pop() {
            Some(Open::List(values)) => Value::Array(values),
            Some(Open::Object { mut entries, .. }) => {
                // Without `serde_json/preserve_order` they are sorted, and this does nothing.
                entries.sort_keys();
                Value::Object(entries)
            }
            Some(Open::Verbatim) => return Ok(()),
            Some(Open::Counted(any)) => return self.count_closed(any),
            None => return Err(Error::custom("nothing is open")),
        };
        self.put(value)
    }
}

impl JsonWriter {
    /// Counts the brackets, without the comma behind the last entry.
    fn count_closed(&mut self, any: bool) -> Result<(), Error> {
        self.count.as_mut().map_or(Ok(()), |count| {
            count.add(if any { 1 } else { 2 });
            count.check()
        })
    }
}

/// The text of a key. Numbers and booleans become text; other values are no keys.
fn key_of(key: Value) -> Option<String> {
    match key {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

macro_rules! scalars {
    ($($name:ident: $type:ty),+) => {
        $(fn $name(self, value: $type) -> Result<(), Error> {
            self.put(Value::from(value))
        })+
    };
}

impl<'a> Serializer for &'a mut JsonWriter {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = &'a mut JsonWriter;
    type SerializeTuple = &'a mut JsonWriter;
    type SerializeTupleStruct = &'a mut JsonWriter;
    type SerializeTupleVariant = &'a mut JsonWriter;
    type SerializeMap = &'a mut JsonWriter;
    type SerializeStruct = &'a mut JsonWriter;
    type SerializeStructVariant = &'a mut JsonWriter;

    scalars! {
        serialize_bool: bool,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.check_finite(value.is_finite())?;
        self.put(Value::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.check_finite(value.is_finite())?;
        self.put(Value::from(value))
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.serialize_u64(value),
            (_, Ok(value)) => self.serialize_i64(value),
            _ => Err(self.refused(UnfitValue::OutOfRange)),
        }
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match u64::try_from(value) {
            Ok(value) => self.serialize_u64(value),
            Err(_) => Err(self.refused(UnfitValue::OutOfRange)),
        }
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.list(Some(value.len()))?;
        value.iter().try_for_each(|byte| self.put(Value::from(*byte)))?;
        self.close()
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.put(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        if !self.marks_some {
            return value.serialize(self);
        }
        value.serialize(&mut *self.variant(difference::SOME)?)?;
        self.close()
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.put(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.put(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(&mut *self.variant(variant)?)?;
        self.close()
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Error> {
        self.list(length)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self, Error> {
        self.list(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Self, Error> {
        self.list(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self, Error> {
        self.variant(variant)?.list(Some(length))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        self.object()
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, Error> {
        if VERBATIM.contains(&name) {
            self.open.push(Open::Verbatim);
            return Ok(self);
        }
        self.object()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.variant(variant)?.object()
    }
}

macro_rules! elements {
    ($($trait:ident $element:ident $closes:literal),+) => {
        $(impl $trait for &mut JsonWriter {
            type Ok = ();
            type Error = Error;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Error> {
                (0..$closes).try_for_each(|_| self.close())
            }
        })+
    };
}

elements! {
    SerializeSeq serialize_element 1,
    SerializeTuple serialize_element 1,
    SerializeTupleStruct serialize_field 1,
    SerializeTupleVariant serialize_field 2
}

macro_rules! fields {
    ($($trait:ident $closes:literal),+) => {
        $(impl $trait for &mut JsonWriter {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                value.serialize(self.named(name))
            }

            fn end(self) -> Result<(), Error> {
                (0..$closes).try_for_each(|_| self.close())
            }
        })+
    };
}

fields!(SerializeStruct 1, SerializeStructVariant 2);

impl SerializeMap for &mut JsonWriter {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let key = self.key_text(key)?;
        self.key(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

#[cfg(test)]
mod tests;
