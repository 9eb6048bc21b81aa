//! Data that is one count where nothing else is to say, and else a map.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};

/// Data that has one count, and often nothing else.
pub(super) trait CountOrFields: Sized {
    /// The forms, for errors.
    const EXPECTED: &str;

    fn of_count(count: u32) -> Self;

    fn of_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error>;
}

/// Reads either form.
pub(super) fn read<'de, T: CountOrFields, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Either(PhantomData))
}

struct Either<T>(PhantomData<T>);

impl<'de, T: CountOrFields> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<T, E> {
        let count = u32::try_from(count).map_err(|_| E::custom("more than a run can make"))?;
        Ok(T::of_count(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::of_fields(MapAccessDeserializer::new(map))
    }
}
