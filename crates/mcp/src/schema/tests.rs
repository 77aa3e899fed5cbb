use super::*;

fn repair(schema: &Value) -> ToolSchema {
    ToolSchema::repair(schema.as_object().unwrap().clone()).unwrap()
}

/// Checks what becomes of one argument, and whether that is noted.
fn check(argument: &Value, expect: &Value) {
    let repaired = repair(&json!({ "type": "object", "properties": { "x": argument } }));
    assert_eq!(repaired.parameters["properties"]["x"], *expect, "{argument}");
    assert_eq!(repaired.changes.is_empty(), argument == expect, "{argument}: {:?}", repaired.changes);
}

#[test]
fn a_sound_schema_is_left_alone() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "q": { "type": ["string", "null"], "description": "d", "enum": ["a", null], "x-mcp-header": "Q" },
            "at": { "$ref": "#/$defs/At" },
            "list": { "type": "array", "items": { "anyOf": [{ "type": "integer", "minimum": 1 }, true] } },
            "type": { "type": "string" },
        },
        "required": ["q"],
        "additionalProperties": false,
        "anyOf": [{ "required": ["q"] }],
        "$defs": { "At": { "type": "object", "properties": { "lat": { "type": "number" } } } },
    });
    let repaired = repair(&schema);
    let mut expect = schema;
    expect["properties"]["list"]["items"]["anyOf"][1] = json!({});
    assert_eq!(repaired, ToolSchema { parameters: expect, ..ToolSchema::default() });
}

#[test]
fn the_whole_always_describes_an_object() {
    let check = |schema: &Value, expect: &Value| assert_eq!(repair(schema).parameters, *expect, "{schema}");
    let empty = json!({ "type": "object", "properties": {} });
    check(&json!({}), &empty);
    check(&json!({ "type": null }), &empty);
    check(&json!({ "type": ["object", "null"] }), &empty);
    check(&json!({ "type": "Object", "properties": null }), &empty);
    check(
        &json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
        &json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {} }),
    );
    check(
        &json!({ "type": "string", "description": "the title", "enum": ["a"] }),
        &json!({ "type": "object", "properties": {}, "description": "the title" }),
    );
    check(
        &json!({ "anyOf": [{ "type": "object" }] }),
        &json!({ "type": "object", "properties": {}, "anyOf": [{ "type": "object" }] }),
    );
    check(
        &json!({ "city": { "type": "string" }, "days": { "type": "int" } }),
        &json!({ "type": "object", "properties": { "city": { "type": "string" }, "days": { "type": "integer" } } }),
    );
    check(
        &json!({ "type": "object", "properties": [{ "name": "q", "type": "string" }, "x"] }),
        &json!({ "type": "object", "properties": { "q": { "type": "string" } } }),
    );
}

#[test]
fn a_part_that_providers_refuse_is_repaired_or_dropped() {
    let list = repair(&json!({ "properties": { "x": { "type": "array" } } }));
    assert_eq!(list.parameters["properties"]["x"], json!({ "type": "array", "items": {} }));
    for (argument, expect) in [
        (json!("string"), json!({ "type": "string" })),
        (json!(null), json!({})),
        (json!({ "type": "Float" }), json!({ "type": "number" })),
        (json!({ "type": "uuid" }), json!({})),
        (json!({ "type": ["str", "string", "nil"] }), json!({ "type": "string" })),
        (json!({ "type": { "any": 1 } }), json!({})),
        (json!({ "$ref": "#/$defs/Gone", "title": "t" }), json!({ "title": "t" })),
        (json!({ "$ref": "https://example.org/s.json" }), json!({})),
        (
            json!({ "items": [{ "type": "string" }, { "type": "int" }] }),
            json!({
                "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            }),
        ),
        (json!({ "enum": [] }), json!({})),
        (json!({ "enum": "a|b" }), json!({})),
        (json!({ "minimum": "3", "maxLength": "many" }), json!({ "minimum": 3 })),
        (json!({ "description": ["a", "b"], "format": 7 }), json!({ "description": "a\nb" })),
        (json!({ "anyOf": [], "oneOf": {} }), json!({})),
        (json!({ "additionalProperties": "no" }), json!({ "additionalProperties": {} })),
        (
            json!({ "type": "object", "properties": { "a": { "type": "text" } }, "required": "a" }),
            json!({
                "type": "object", "properties": { "a": { "type": "string" } },
            }),
        ),
    ] {
        check(&argument, &expect);
    }
    let limit = repair(&json!({ "properties": { "n": { "minimum": 1, "exclusiveMinimum": true } } }));
    assert_eq!(limit.parameters["properties"]["n"], json!({ "exclusiveMinimum": 1 }));
}

#[test]
fn required_arguments_are_those_that_there_are() {
    let required = |schema: Value| repair(&schema).parameters["required"].clone();
    let q = json!({ "type": "string" });
    assert_eq!(required(json!({ "properties": { "q": q, "required": ["q"] } })), json!(["q"]));
    assert_eq!(
        required(json!({ "properties": { "q": q }, "required": ["q", "gone", 1, "q"] })),
        json!(["q"])
    );
    assert_eq!(required(json!({ "properties": { "q": q }, "required": true })), Value::Null);
    let marked =
        json!({ "properties": { "q": { "type": "string", "required": true }, "r": { "required": false } } });
    assert_eq!(required(marked), json!(["q"]));
    // An argument may have this name.
    let repaired = repair(&json!({ "properties": { "required": { "type": "boolean" } } }));
    assert_eq!(repaired.parameters["properties"], json!({ "required": { "type": "boolean" } }));
}

#[test]
fn names_of_arguments_that_providers_refuse_are_mapped_and_mapped_back() {
    let long = "x".repeat(80);
    let repaired = repair(&json!({
        "properties": {
            "城市": { "type": "string" },
            "$filter": { "type": "object", "properties": { "a b": {} } },
            (long): {},
            "ok.name-1": {},
        },
        "required": ["城市"],
    }));
    let properties = repaired.parameters["properties"].as_object().unwrap();
    assert!(properties.keys().all(|key| is_key(key)), "{properties:?}");
    let city = repaired.parameters["required"][0].as_str().unwrap().to_owned();
    let filter = properties.keys().find(|key| key.starts_with("filter_")).unwrap().clone();
    let inner = properties[&filter]["properties"].as_object().unwrap().keys().next().unwrap().clone();
    let args = json!({ (city): "Köln", (filter): { (inner): [1] }, "ok.name-1": 2, "free key": 3 });
    let expect = json!({ "城市": "Köln", "$filter": { "a b": [1] }, "ok.name-1": 2, "free key": 3 });
    assert_eq!(repaired.restore_names(args), expect);
}

#[test]
fn deep_and_large_schemas_are_bounded() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
    let repaired = repair(&deep);
    assert!(
        repaired.parameters.to_string().matches("properties").count() <= MAX_DEPTH
            && !repaired.changes.is_empty()
    );
    let many = |count: usize, about: &str| {
        let arguments =
            (0..count).map(|n| (format!("a{n}"), json!({ "type": "string", "description": about })));
        json!({ "properties": arguments.collect::<Map<_, _>>() })
    };
    let shortened = repair(&many(100, &"long ".repeat(200)));
    assert!(shortened.parameters.to_string().len() < MAX_BYTES);
    assert_eq!(shortened.parameters["properties"]["a7"], json!({ "type": "string" }));
    let objects = (0..5_000).map(|_| json!({}));
    let parts = repair(&json!({ "anyOf": objects.collect::<Vec<_>>() }));
    assert_eq!(parts.parameters["anyOf"].as_array().unwrap().len(), 5_000);
    assert!(parts.changes.iter().any(|change| change.contains("too many parts")), "{:?}", parts.changes);
    let huge = json!({ "properties": { "a": { "enum": vec!["value"; 20_000] } } });
    assert!(ToolSchema::repair(huge.as_object().unwrap().clone()).unwrap_err().contains("64 KiB"));
}
