//! One value of a context: any Rust value, serialised on demand.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{UnfitJson, UnfitValue};
use crate::json::{self, Misfit, ToJson, read_json};
use crate::panics::discard;

/// A type for values in a context. The bounds suffice: there is nothing to implement.
///
/// ```
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct Budget { cents: u64 }
///
/// fn can_be_kept<T: workflow_core::store::ContextData>() {}
/// can_be_kept::<Budget>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a context",
    label = "not `Serialize + DeserializeOwned + Clone + Send + Sync + 'static`",
    note = "derive `Serialize`, `Deserialize` and `Clone` on it"
)]
pub trait ContextData: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> ContextData for T {}

/// A shared value of any type, as a [`ContextStore`](crate::store::ContextStore) stores it.
///
/// It holds the Rust value itself. Cloning copies a pointer. Only [`to_json`](Self::to_json) serialises.
///
/// ```
/// use workflow_core::store::ContextValue;
///
/// let written = ContextValue::new(7_u32);
/// assert_eq!(written.get::<u32>().unwrap(), 7);
///
/// let restored = ContextValue::from_json(written.to_json().unwrap());
/// assert_eq!(restored.get::<u64>().unwrap(), 7);
/// ```
#[derive(Clone)]
pub struct ContextValue {
    value: Arc<dyn ErasedValue>,
    /// Its JSON, if the value was checked for a store that serialises.
    json: Option<Arc<Value>>,
}

impl ContextValue {
    /// Wraps a value. One allocation.
    ///
    /// ```
    /// let value = workflow_core::store::ContextValue::new(vec!["a".to_owned()]);
    /// assert_eq!(value.get::<Vec<String>>().unwrap(), ["a"]);
    /// ```
    pub fn new<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
        Self { value: Arc::new(value), json: None }
    }

    /// The same value with its JSON, or the reason why that cannot be read back as a `T`.
    pub(super) fn fit<T: ContextData>(self) -> Result<Self, Misfit> {
        let json = json::fit(&*self.value, usize::MAX)?;
        let read = read_json::<T>(json.clone());
        let read = read.map_err(|UnfitJson { path, problem }| Misfit::Unfit {
            path,
            problem: UnfitValue::NotReadBack { problem },
        })?;
        discard(read);
        Ok(Self { json: Some(Arc::new(json)), ..self })
    }

    /// A value that a store has read as JSON.
    ///
    /// ```
    /// let value = workflow_core::store::ContextValue::from_json(serde_json::json!([1, 2]));
    /// assert_eq!(value.get::<Vec<u8>>().unwrap(), [1, 2]);
    /// ```
    pub fn from_json(json: Value) -> Self {
        Self::new(json)
    }

    /// The value as JSON.
    ///
    /// ```
    /// let value = workflow_core::store::ContextValue::new(Some(1));
    /// assert_eq!(value.to_json().unwrap(), serde_json::json!(1));
    /// ```
    ///
    /// # Errors
    /// The error of the type's own `Serialize`.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match &self.json {
            Some(json) => Ok(Value::clone(json)),
            None => json::to_json(&*self.value),
        }
    }

    /// The value as a `T`: a clone of a `T`, or else a `T` read from the value's JSON. So a value from memory and one
    /// from a disk read alike.
    ///
    /// ```
    /// let value = workflow_core::store::ContextValue::new(300_u32);
    /// assert_eq!(value.get::<u64>().unwrap(), 300);
    /// assert!(value.get::<u8>().is_err());
    /// ```
    ///
    /// # Errors
    /// If the value has no JSON, or its JSON is no `T`.
    pub fn get<T: ContextData>(&self) -> Result<T, serde_json::Error> {
        let any: &(dyn Any + Send + Sync) = &*self.value;
        match any.downcast_ref::<T>() {
            Some(value) => Ok(value.clone()),
            None => T::deserialize(self.to_json()?),
        }
    }

    /// Whether both are one value in memory. Equal values may differ here.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }
}

/// Shows the type, never the value: a context may hold secrets.
impl fmt::Debug for ContextValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContextValue({})", self.value.type_name())
    }
}

/// The operations of a value whose type is erased.
trait ErasedValue: Any + ToJson + Send + Sync {
    fn type_name(&self) -> &'static str;
}

impl<T: Serialize + Send + Sync + 'static> ErasedValue for T {
    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use static_assertions::assert_impl_all;

    use super::*;

    assert_impl_all!(ContextValue: Send, Sync, Clone, fmt::Debug);

    #[test]
    fn a_value_is_read_as_another_type_through_its_json() {
        let value = ContextValue::new(7_u32);
        assert_eq!(value.get::<u64>().unwrap(), 7);
        assert_eq!(value.get::<Value>().unwrap(), json!(7));
        assert!(value.get::<String>().is_err());
    }

    #[test]
    fn a_value_made_from_json_reads_like_the_one_that_was_written() {
        let restored = ContextValue::from_json(ContextValue::new(Some("a")).to_json().unwrap());
        assert_eq!(restored.get::<Option<String>>().unwrap(), Some("a".to_owned()));
        assert_eq!(restored.get::<Value>().unwrap(), json!("a"));
    }

    #[test]
    fn a_clone_is_the_same_value() {
        let value = ContextValue::new(());
        assert!(value.is_same(&value.clone()));
        assert!(!value.is_same(&ContextValue::new(())));
    }

    #[test]
    fn debug_output_names_the_type_only() {
        assert_eq!(format!("{:?}", ContextValue::new(7_u32)), "ContextValue(u32)");
    }
}
