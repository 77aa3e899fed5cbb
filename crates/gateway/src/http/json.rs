//! JSON bodies of requests and responses, and HTML forms. A body with keys must be an object, although serde would also
//! accept an array of its values. An error names the location in the body and the expected value.

use super::{body_limit::LimitedBody, errors::ApiError, urlencoded, wrong_value};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_net::json::repair;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};
use serde_json::error::Category;

/// JSON of a request or an answer.
pub(crate) struct Json<T>(pub(crate) T);

/// An HTML form, parsed like a query.
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        let kind = media_type.strip_prefix("application/").unwrap_or_default();
        if kind != "json" && !kind.ends_with("+json") {
            return Err(ApiError::wrong_type("send a JSON body with `content-type: application/json`"));
        }
        read(&whole_body(request, state).await?).map(Self)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Form<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        const FORM: &str = "application/x-www-form-urlencoded";
        if media_type(request.headers()) != FORM {
            let detail = format!("send a form with `content-type: {FORM}`");
            return Err(ApiError::wrong_type(detail));
        }
        let form = urlencoded::read(&whole_body(request, state).await?);
        form.map(Self).map_err(ApiError::invalid)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Parses a body. Unpaired surrogates become U+FFFD, because clients that truncate text by its length send them.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    if std::str::from_utf8(bytes).is_err() {
        return Err(ApiError::bad_request("the body is not valid UTF-8"));
    }
    let text = repair(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let KeyedBody(body) = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        unread(&path, &error.into_inner())
    })?;
    deserializer.end().map_err(|error| unread(".", &error))?;
    Ok(body)
}

fn unread(path: &str, error: &serde_json::Error) -> ApiError {
    let message = error.to_string();
    // The location is reported separately.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    match error.classify() {
        _ if message == "recursion limit exceeded" => {
            ApiError::invalid("the body is nested too deeply; the limit is 127 levels")
        }
        Category::Data => ApiError::invalid(wrong_value::describe(path, message)),
        Category::Syntax | Category::Eof | Category::Io => {
            let (line, column) = (error.line(), error.column());
            ApiError::bad_request(format!(
                "the body is not valid JSON: {message} (line {line}, character {column})"
            ))
        }
    }
}

/// Reads a body within its limit.
async fn whole_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let limited = LimitedBody::new(&request);
    Bytes::from_request(request, state).await.map_err(|error| {
        let too_large = error.status() == StatusCode::PAYLOAD_TOO_LARGE;
        let detail = if too_large { limited.exceeded() } else { error.body_text() };
        ApiError::new(error.status(), detail)
    })
}

/// Returns the media type of a body, in lower case and without its parameters.
fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A body that must be an object.
struct KeyedBody<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KeyedBody<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(StructsAsMaps(deserializer)).map(Self)
    }
}

/// Deserializer that passes values through unchanged, and reads structures from objects only.
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
        parts: Vec<NamedKeys>,
    }

    #[test]
    fn a_list_is_refused_for_a_body_with_keys() {
        let expected = NamedKeys { name: Some("a".to_owned()), count: 2, parts: Vec::new() };
        assert_eq!(read::<NamedKeys>(br#"{"name": "a", "count": 2}"#).unwrap(), expected);
        assert_eq!(read::<NamedKeys>(b"{}").unwrap(), NamedKeys::default());
        for wrong in ["[]", "[null, 2]", "[\"a\", 2]", "7", "null", "\"a\"", "{\"other\": 1}", ""] {
            assert!(read::<NamedKeys>(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(read::<serde_json::Value>(b"[1]").unwrap(), serde_json::json!([1]));
    }

    #[test]
    fn invalid_bytes_in_texts_are_replaced_and_the_rest_is_kept() {
        for (body, name) in [
            (br#"{"name": "cut \ud83d"}"#.as_slice(), "cut \u{fffd}"),
            (br#"{"name": "\udc00 whole \ud83d\ude00"}"#, "\u{fffd} whole \u{1f600}"),
            (b"{\"name\": \"a\x00b \\u0000\"}", "a\u{fffd}b \u{fffd}"),
            (b"\xef\xbb\xbf{\"name\": \"mark\"}", "mark"),
            (b"{\"name\": \"raw\nline\ttab\"}", "raw\nline\ttab"),
        ] {
            let read = read::<NamedKeys>(body).unwrap();
            assert_eq!(read.name.as_deref(), Some(name), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn invalid_utf8_is_refused() {
        for body in
            [b"{\"name\": \"latin \xfc\"}".as_slice(), b"\xff\xfe{\0}\0", b"{\"name\": \"\xed\xa0\x80\"}"]
        {
            let rejection = read::<NamedKeys>(body).unwrap_err();
            let refused = (rejection.status().as_u16(), &*rejection.body_text());
            assert_eq!(refused, (400, "the body is not valid UTF-8"), "{body:?}");
        }
    }

    #[test]
    fn errors_name_the_location_and_no_rust_types() {
        for (body, status, detail) in [
            ("[]", 422, "expected an object, got a list"),
            (r#"{"count": "secret"}"#, 422, "count: expected a whole number from 0 to 4294967295, got text"),
            (r#"{"count": -1}"#, 422, "count: expected a whole number from 0 to 4294967295, got -1"),
            (r#"{"name": {}}"#, 422, "name: expected text, got an object"),
            (
                r#"{"parts": [{}, {"count": null}]}"#,
                422,
                "parts[1].count: expected a whole number from 0 to 4294967295, got null",
            ),
            (
                r#"{"parts": [{"other": 1}]}"#,
                422,
                "parts[0]: unknown key `other`: expected one of `name`, `count`, `parts`",
            ),
            (r#"{"count": 1, "count": 1}"#, 422, "`count` is a duplicate key"),
            ("{", 400, "the body is not valid JSON: EOF while parsing an object (line 1, character 1)"),
            ("{} {}", 400, "the body is not valid JSON: trailing characters (line 1, character 4)"),
        ] {
            let rejection = read::<NamedKeys>(body.as_bytes()).unwrap_err();
            assert_eq!((rejection.status().as_u16(), &*rejection.body_text()), (status, detail), "{body}");
        }
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read::<serde_json::Value>(nested(127).as_bytes()).is_ok());
        let deep = read::<serde_json::Value>(nested(128).as_bytes()).unwrap_err();
        let expected = "the body is nested too deeply; the limit is 127 levels";
        assert_eq!((deep.status().as_u16(), &*deep.body_text()), (422, expected));
    }
}
