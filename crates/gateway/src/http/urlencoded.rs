//! Queries and forms: keys with text values, parsed as the expected types. Booleans follow pydantic.

use super::wrong_value;
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, Expected, IntoDeserializer, Unexpected, Visitor,
        value::{Error, MapDeserializer},
    },
    forward_to_deserialize_any,
};
use std::borrow::Cow;

/// Parses a query or a form. The error is worded for people.
pub(crate) fn read<T: DeserializeOwned>(query: &[u8]) -> Result<T, String> {
    let pairs = url::form_urlencoded::parse(query).map(|(key, value)| (key, QueryValue(value)));
    serde_path_to_error::deserialize(MapDeserializer::<_, Error>::new(pairs))
        .map_err(|error| wrong_value::describe(&error.path().to_string(), &error.inner().to_string()))
}

/// Parses a boolean like pydantic; `None` if the text is not one.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "t" | "y" => Some(true),
        "0" | "false" | "no" | "off" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Parses a key's boolean. The error is worded for people.
pub(crate) fn flag_of(key: &str, text: &str) -> Result<bool, String> {
    flag(text).ok_or_else(|| format!("{key}: expected true or false, got `{text}`"))
}

/// A value of a query.
struct QueryValue<'q>(Cow<'q, str>);

impl QueryValue<'_> {
    /// Returns the error for an invalid value.
    fn is_no(&self, expected: &dyn Expected) -> Error {
        Error::invalid_type(Unexpected::Other(&format!("`{}`", self.0)), expected)
    }
}

impl<'de> IntoDeserializer<'de, Error> for QueryValue<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Implements the parsing of numbers from text.
macro_rules! numbers {
    ($($method:ident $visit:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(self.is_no(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for QueryValue<'_> {
    type Error = Error;

    numbers! {
        deserialize_u8 visit_u8, deserialize_u16 visit_u16, deserialize_u32 visit_u32, deserialize_u64 visit_u64,
        deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32, deserialize_i64 visit_i64,
        deserialize_f32 visit_f32, deserialize_f64 visit_f64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match flag(&self.0) {
            Some(flag) => visitor.visit_bool(flag),
            None => Err(self.is_no(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0.into_owned())
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple tuple_struct map struct enum
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(default)]
    struct Asked {
        name: String,
        limit: Option<u32>,
        whole: Option<bool>,
    }

    #[test]
    fn values_are_parsed_as_the_expected_types() {
        let asked = |name: &str, limit, whole| Asked { name: name.to_owned(), limit, whole };
        for (query, expect) in [
            ("", asked("", None, None)),
            ("name=a%20b&limit=7&other=1", asked("a b", Some(7), None)),
            ("name=&whole=1", asked("", None, Some(true))),
            ("whole=Yes", asked("", None, Some(true))),
            ("whole=TRUE", asked("", None, Some(true))),
            ("whole=0", asked("", None, Some(false))),
            ("whole=no", asked("", None, Some(false))),
            ("whole=false", asked("", None, Some(false))),
        ] {
            assert_eq!(read::<Asked>(query.as_bytes()).unwrap(), expect, "{query}");
        }
    }

    #[test]
    fn errors_name_the_key_of_an_invalid_value() {
        for (query, detail) in [
            ("limit=x", "limit: expected a whole number from 0 to 4294967295, got `x`"),
            ("limit=-1", "limit: expected a whole number from 0 to 4294967295, got `-1`"),
            ("whole=perhaps", "whole: expected true or false, got `perhaps`"),
            ("whole=", "whole: expected true or false, got ``"),
            ("limit=1&limit=2", "`limit` is a duplicate key"),
        ] {
            assert_eq!(read::<Asked>(query.as_bytes()).unwrap_err(), detail, "{query}");
        }
    }
}
