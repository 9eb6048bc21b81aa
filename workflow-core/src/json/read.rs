//! Reading JSON as a Rust value, with the place of what does not fit.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::UnfitJson;
use crate::panics::{Panicked, caught};

/// Reads a value of any type. All JSON from outside is read here, and a context value is read back. A panic of the type's `Deserialize` is a problem too.
pub(crate) fn read_json<T: DeserializeOwned>(data: Value) -> Result<T, UnfitJson> {
    match caught(|| serde_path_to_error::deserialize(data)) {
        Ok(read) => read.map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
            let path = Some(error.path().to_string()).filter(|path| path != ".");
            UnfitJson { path: path.unwrap_or_default(), problem: error.inner().to_string() }
        }),
        Err(Panicked { message }) => Err(UnfitJson::whole(format!("its `Deserialize` panicked: {message}"))),
    }
}
