//! Lenient decoding of platforms' events and responses: an unpaired surrogate never invalidates the document, and an
//! invalid field or list entry never invalidates the object that contains it.

use pudu_net::json;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Decodes a document from a platform.
pub(crate) fn from_bytes<T: DeserializeOwned>(document: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(&json::repair(document))
}

/// Decodes the content of an event. If that fails, logs the kind and returns `None`.
pub(crate) fn read<T: DeserializeOwned>(content: Value, kind: &str) -> Option<T> {
    let content = serde_json::from_value(content);
    if content.is_err() {
        // The error may quote the message.
        tracing::warn!(kind, "dropped event: decode error");
    }
    content.ok()
}

/// Decodes a field. `null` and invalid values become the default.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    from: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Decodes a list element by element. Invalid elements are left out.
pub(crate) fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let Value::Array(values) = Value::deserialize(from)? else { return Ok(Vec::new()) };
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// Declares the payloads of a platform. A missing, `null` or invalid field gets its default, and a list is decoded
/// element by element. A field marked `exact` is decoded as serde does: if it is missing or invalid, the whole payload
/// is invalid. The fields have the visibility of their payload.
macro_rules! payloads {
    (@fields $head:tt $vis:vis [$($done:tt)*] $(#[$about:meta])* exact $name:ident: $type:ty, $($rest:tt)*) => {
        crate::lenient::payloads! { @fields $head $vis [$($done)* $(#[$about])* $vis $name: $type,] $($rest)* }
    };
    (@fields $head:tt $vis:vis [$($done:tt)*] $(#[$about:meta])* $name:ident: Vec<$type:ty>, $($rest:tt)*) => {
        crate::lenient::payloads! { @fields $head $vis [
            $($done)*
            $(#[$about])*
            #[serde(default, deserialize_with = "crate::lenient::each")]
            $vis $name: Vec<$type>,
        ] $($rest)* }
    };
    (@fields $head:tt $vis:vis [$($done:tt)*] $(#[$about:meta])* $name:ident: $type:ty, $($rest:tt)*) => {
        crate::lenient::payloads! { @fields $head $vis [
            $($done)*
            $(#[$about])*
            #[serde(default, deserialize_with = "crate::lenient::lenient")]
            $vis $name: $type,
        ] $($rest)* }
    };
    (@fields [$($head:tt)*] $vis:vis [$($done:tt)*]) => {
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        $($head)* { $($done)* }
    };
    ($($(#[$about:meta])* $vis:vis struct $name:ident { $($fields:tt)* })*) => {
        $(crate::lenient::payloads! { @fields [$(#[$about])* $vis struct $name] $vis [] $($fields)* })*
    };
}

pub(crate) use payloads;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lone_surrogates_and_invalid_fields_affect_nothing_else() {
        payloads! {
            #[derive(PartialEq)]
            struct LenientEvent {
                title: String,
                files: Vec<u8>,
            }
        }
        let check = |text: &str, title: &str, files: &[u8]| {
            let event: LenientEvent = from_bytes(text.as_bytes()).unwrap();
            assert_eq!(event, LenientEvent { title: title.into(), files: files.to_vec() }, "{text}");
        };
        check(r#"{"title": "cut \ud83d", "files": [1]}"#, "cut \u{fffd}", &[1]);
        check(r#"{"title": "\ude00", "other": "\ud83d"}"#, "\u{fffd}", &[]);
        check(r#"{"title": 7, "files": [1, "x", null, 300, 2]}"#, "", &[1, 2]);
        check(r#"{"title": null, "files": {"a": 1}}"#, "", &[]);
        let list: Vec<Box<serde_json::value::RawValue>> = from_bytes(br#"[{"a": "\ud83d"}, 7]"#).unwrap();
        let first: Value = serde_json::from_str(list[0].get()).unwrap();
        assert_eq!(first, json!({"a": "\u{fffd}"}), "an update of a batch is read later");
    }
}
