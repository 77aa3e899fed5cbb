//! Converts values of LangGraph's serializer to JSON.
//!
//! Its msgpack extensions encode Python objects, each as a tuple of module, class and constructor arguments. No class
//! is ever instantiated here: an object becomes its fields plus the class's name.

use rmpv::Value as Packed;
use serde_json::{Map, Value, json};

/// Key for the class's name among an object's fields.
pub(crate) const CLASS: &str = "__class__";
/// Maximum depth of a value, including levels inside of objects.
const MAX_DEPTH: usize = 128;

/// Codes of the msgpack extensions.
mod code {
    pub(super) const SINGLE_ARG: i8 = 0;
    pub(super) const POSITIONAL_ARGS: i8 = 1;
    pub(super) const KEYWORD_ARGS: i8 = 2;
    pub(super) const METHOD: i8 = 3;
    pub(super) const PYDANTIC_V1: i8 = 4;
    pub(super) const PYDANTIC_V2: i8 = 5;
    pub(super) const DELTA_SNAPSHOT: i8 = 7;
}

/// Reason why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    /// The value is truncated or invalid.
    #[error("truncated or damaged data")]
    Damaged,
    /// The value is nested too deeply.
    #[error("more than {MAX_DEPTH} levels of nesting")]
    Deep,
    /// Only Python can read the serialization.
    #[error("unsupported serialization `{0}`")]
    Kind(String),
}

/// Reads a value with a type tag.
pub(crate) fn read(kind: &str, bytes: &[u8]) -> Result<Value, ValueError> {
    match kind {
        "msgpack" => unpack(bytes, MAX_DEPTH),
        // serde_json limits the depth to 128.
        "json" => serde_json::from_slice(bytes).map(revived).map_err(|_| ValueError::Damaged),
        "null" | "empty" | "bytes" | "bytearray" => Ok(Value::Null),
        other => Err(ValueError::Kind(other.chars().take(20).collect())),
    }
}

fn unpack(mut bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
    let packed = rmpv::decode::read_value_with_max_depth(&mut bytes, depth).map_err(|error| match error {
        rmpv::decode::Error::DepthLimitExceeded => ValueError::Deep,
        _ => ValueError::Damaged,
    })?;
    if !bytes.is_empty() {
        return Err(ValueError::Damaged);
    }
    plain(packed, depth)
}

fn plain(packed: Packed, depth: usize) -> Result<Value, ValueError> {
    let depth = depth.checked_sub(1).ok_or(ValueError::Deep)?;
    Ok(match packed {
        Packed::Nil | Packed::Binary(_) => Value::Null,
        Packed::Boolean(flag) => flag.into(),
        Packed::Integer(number) => {
            number.as_i64().map(Value::from).or(number.as_u64().map(Value::from)).unwrap_or_default()
        }
        Packed::F32(number) => json!(number),
        Packed::F64(number) => json!(number),
        Packed::String(text) => String::from_utf8_lossy(text.as_bytes()).into(),
        Packed::Array(items) => {
            Value::Array(items.into_iter().map(|item| plain(item, depth)).collect::<Result<_, _>>()?)
        }
        Packed::Map(entries) => {
            let entry = |(key, value): (Packed, Packed)| {
                let key = match key {
                    Packed::String(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
                    other => other.to_string(),
                };
                Ok((key, plain(value, depth)?))
            };
            Value::Object(entries.into_iter().map(entry).collect::<Result<_, _>>()?)
        }
        Packed::Ext(code, bytes) => object(code, &bytes, depth)?,
    })
}

/// Converts a Python object to JSON.
fn object(code: i8, bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
    if code == code::DELTA_SNAPSHOT {
        return unpack(bytes, depth);
    }
    let known = matches!(code, code::SINGLE_ARG..=code::PYDANTIC_V2);
    // Arrays of numbers, and extensions that are newer than this code.
    if !known {
        return Ok(Value::Null);
    }
    let Value::Array(parts) = unpack(bytes, depth)? else { return Err(ValueError::Damaged) };
    let mut parts = parts.into_iter().skip(1);
    let (Some(Value::String(class)), Some(made)) = (parts.next(), parts.next()) else {
        return Err(ValueError::Damaged);
    };
    Ok(match (code, made) {
        (code::KEYWORD_ARGS | code::PYDANTIC_V1 | code::PYDANTIC_V2, Value::Object(fields)) => {
            named(class, fields)
        }
        (code::POSITIONAL_ARGS, Value::Array(parts)) if class.ends_with("Path") => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            parts.join("/").into()
        }
        (code::SINGLE_ARG | code::POSITIONAL_ARGS | code::METHOD, made) => made,
        _ => return Err(ValueError::Damaged),
    })
}

fn named(class: String, mut fields: Map<String, Value>) -> Value {
    fields.insert(CLASS.to_owned(), class.into());
    Value::Object(fields)
}

/// Converts objects in LangChain's JSON form (`lc`, `type`, `id`, `kwargs`) to their fields.
fn revived(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(revived).collect()),
        Value::Object(mut fields) => {
            let class = match (fields.contains_key("lc"), fields.get("id")) {
                (true, Some(Value::Array(id))) => id.last().and_then(Value::as_str).map(str::to_owned),
                _ => None,
            };
            match (class, fields.remove("kwargs")) {
                (Some(class), Some(Value::Object(kwargs))) => {
                    named(class, kwargs.into_iter().map(|(key, value)| (key, revived(value))).collect())
                }
                (_, kwargs) => {
                    fields.extend(kwargs.map(|kwargs| ("kwargs".to_owned(), kwargs)));
                    Value::Object(fields.into_iter().map(|(key, value)| (key, revived(value))).collect())
                }
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(value: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    fn object(code: i8, parts: Vec<Packed>) -> Packed {
        Packed::Ext(code, packed(&Packed::Array(parts)))
    }

    #[test]
    fn objects_become_their_fields() {
        let text = Packed::from;
        let fields = Packed::Map(vec![(text("content"), text("hi"))]);
        let message =
            object(5, vec![text("langchain_core"), text("HumanMessage"), fields.clone(), text("x")]);
        let table = [
            (message.clone(), json!({"content": "hi", "__class__": "HumanMessage"})),
            (
                object(2, vec![text("m"), text("Overwrite"), fields]),
                json!({"content": "hi", "__class__": "Overwrite"}),
            ),
            (object(0, vec![text("builtins"), text("set"), Packed::Array(vec![1.into()])]), json!([1])),
            (
                object(
                    1,
                    vec![text("pathlib"), text("PosixPath"), Packed::Array(vec![text("a"), text("b")])],
                ),
                json!("a/b"),
            ),
            (
                object(
                    3,
                    vec![text("datetime"), text("datetime"), text("2026-01-01"), text("fromisoformat")],
                ),
                json!("2026-01-01"),
            ),
            (
                Packed::Ext(7, packed(&Packed::Array(vec![message]))),
                json!([{"content": "hi", "__class__": "HumanMessage"}]),
            ),
            (Packed::Ext(6, vec![1, 2, 3]), Value::Null),
            (Packed::Map(vec![(7.into(), Packed::Binary(vec![0]))]), json!({"7": null})),
        ];
        for (value, expect) in table {
            assert_eq!(read("msgpack", &packed(&value)), Ok(expect), "{value}");
        }
        let old = br#"{"a": [{"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "x"}}]}"#;
        assert_eq!(read("json", old), Ok(json!({"a": [{"content": "x", "__class__": "AIMessage"}]})));
    }

    #[test]
    fn invalid_truncated_deep_and_pickled_values_are_refused() {
        let full = packed(&Packed::Array(vec![Packed::from("word"); 3]));
        for end in 0..full.len() {
            assert_eq!(read("msgpack", &full[..end]), Err(ValueError::Damaged), "{end}");
        }
        assert_eq!(read("msgpack", &[full, vec![0xc0]].concat()), Err(ValueError::Damaged));
        let mut deep = vec![0x91; 100_000];
        deep.push(0xc0);
        assert_eq!(read("msgpack", &deep), Err(ValueError::Deep));
        // Each object is a nested value whose levels are counted.
        let nested = (0..200).fold(Packed::Nil, |inner, _| Packed::Ext(7, packed(&inner)));
        assert_eq!(read("msgpack", &packed(&nested)), Err(ValueError::Deep));
        // Four gigabytes are announced, but only five bytes follow.
        for head in [0xdd, 0xdf, 0xdb, 0xc6, 0xc9] {
            assert_eq!(read("msgpack", &[head, 0xff, 0xff, 0xff, 0xff, 0]), Err(ValueError::Damaged));
        }
        assert_eq!(read("pickle", b"x"), Err(ValueError::Kind("pickle".into())));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for kind in ["msgpack", "json"] {
                read(kind, &bytes).ok();
            }
        }
    }
}
