//! JSON of requests and answers. A body that is to have keys is an object: serde would take a list of its values as well.

use axum::{
    extract::{FromRequest, Request, rejection::JsonRejection},
    response::{IntoResponse, Response},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};

/// JSON of a request or an answer.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = JsonRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, JsonRejection> {
        let axum::Json(KeyedBody(body)) = axum::Json::from_request(request, state).await?;
        Ok(Self(body))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Reads a body that a handler has as bytes.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).map(|KeyedBody(body)| body)
}

/// A body whose keys are named.
struct KeyedBody<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KeyedBody<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(StructsAsMaps(deserializer)).map(Self)
    }
}

/// Reads what it is given as it is, and structures from objects only.
struct StructsAsMaps<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for StructsAsMaps<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    struct NamedKeys {
        name: Option<String>,
        count: u32,
    }

    #[test]
    fn a_list_is_no_body_with_keys() {
        let named = NamedKeys { name: Some("a".to_owned()), count: 2 };
        assert_eq!(read::<NamedKeys>(br#"{"name": "a", "count": 2}"#).unwrap(), named);
        assert_eq!(read::<NamedKeys>(b"{}").unwrap(), NamedKeys::default());
        for wrong in ["[]", "[null, 2]", "[\"a\", 2]", "7", "null", "\"a\"", "{\"other\": 1}", ""] {
            assert!(read::<NamedKeys>(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(read::<serde_json::Value>(b"[1]").unwrap(), serde_json::json!([1]));
    }
}
