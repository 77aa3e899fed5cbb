//! Events and answers of platforms, read leniently: half a surrogate pair never costs the document, and a strange field
//! or list entry never costs the object that holds it.

use pudu_net::json;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Reads a document of a platform.
pub(crate) fn from_bytes<T: DeserializeOwned>(document: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(&json::repair(document))
}

/// Reads a field; `null` and a value that cannot be read count as the default.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    from: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads a list element by element; an element that cannot be read is left out.
pub(crate) fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let Value::Array(values) = Value::deserialize(from)? else { return Ok(Vec::new()) };
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_a_pair_and_a_strange_field_cost_nothing_beside_them() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct LenientEvent {
            #[serde(default, deserialize_with = "lenient")]
            title: String,
            #[serde(default, deserialize_with = "each")]
            files: Vec<u8>,
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
