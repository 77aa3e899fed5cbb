//! A server's question to people as a form, and the answers as the server needs them.

use pudu_base::{
    FieldKind, FieldProblem, FormField, MAX_OPTIONS, MAX_QUESTION_CHARS, Question, check_fields, check_form,
    foreign, read_form_answer,
};
use serde_json::{Map, Value};

/// Maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 120;

/// A form that a server asks people to fill in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerForm {
    fields: Vec<FormField>,
    /// The values of each field, in the order of the fields.
    values: Vec<FieldValues>,
}

/// The values of a field for the server.
#[derive(Clone, Debug, Default, PartialEq)]
struct FieldValues {
    /// The value of each option that people see.
    options: Vec<(String, Value)>,
    is_integer: bool,
    /// The value if people leave the field empty.
    default: Option<Value>,
}

impl ServerForm {
    /// Reads a schema. A field of an unknown type is a line of text.
    ///
    /// # Errors
    /// The reason why the form cannot be shown.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        let is_needed = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        // The order of the server is lost in parsing.
        let mut properties: Vec<_> = properties.into_iter().flatten().collect();
        properties.sort_by_key(|(name, _)| !is_needed(name));
        for (name, property) in properties {
            let is_required = is_needed(name);
            let (field, value) = field(name, property, is_required);
            fields.push(field);
            values.push(value);
        }
        Ok(Self { fields: check_fields(fields)?, values })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the question to people.
    pub(crate) fn question(&self, server: &str, message: &str) -> Question {
        let message: String = foreign::text(message).chars().take(MAX_QUESTION_CHARS).collect();
        Question {
            text: format!("❓ **{server}**: {}", message.trim()),
            fields: self.fields.clone(),
            ..Question::default()
        }
    }

    /// Reads the answers in a message of a person, as the server needs them.
    ///
    /// # Errors
    /// The problems, for people.
    pub(crate) fn answers(&self, message: &str) -> Result<Map<String, Value>, String> {
        let answers = read_form_answer(&self.fields, message)
            .ok_or("the answers could not be read: please write a line for each field")?;
        let checked = check_form(&self.fields, &answers).map_err(|problems| {
            let label = |name: &str| {
                let field = self.fields.iter().find(|field| field.name == name);
                field.map_or_else(|| name.to_owned(), |field| field.label.clone())
            };
            let lines =
                problems.iter().map(|(name, problem)| format!("{}: {}", label(name), about(*problem)));
            lines.collect::<Vec<_>>().join("; ")
        })?;
        let mut content = Map::new();
        for (field, values) in self.fields.iter().zip(&self.values) {
            let value = match checked.get(&field.name) {
                Some(answer) => Some(
                    values.value(answer).ok_or_else(|| format!("{}: {}", field.label, values.problem()))?,
                ),
                None => values.default.clone(),
            };
            content.extend(value.map(|value| (field.name.clone(), value)));
        }
        Ok(content)
    }
}

impl FieldValues {
    /// Returns the value of an answer; `None` if it is none of the options or not whole.
    fn value(&self, answer: &Value) -> Option<Value> {
        if self.is_integer && answer.as_i64().is_none() {
            let number = answer.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
            return number.map(|number| Value::from(number as i64));
        }
        if self.options.is_empty() {
            return Some(answer.clone());
        }
        let option = |answer: &Value| {
            let has_label = |(label, _): &&(String, Value)| {
                answer.as_str().is_some_and(|answer| answer.eq_ignore_ascii_case(label))
            };
            self.options.iter().find(has_label).map(|(_, value)| value.clone())
        };
        match answer {
            Value::Array(list) => list.iter().map(option).collect(),
            answer => option(answer),
        }
    }

    fn problem(&self) -> &'static str {
        if self.is_integer { "it must be a whole number" } else { about(FieldProblem::NotOption) }
    }
}

fn about(problem: FieldProblem) -> &'static str {
    match problem {
        FieldProblem::Missing => "an answer is needed",
        FieldProblem::NotNumber => "it must be a number",
        FieldProblem::NotDate => "it must be a date, YYYY-MM-DD",
        FieldProblem::NotOption => "it must be one of the options",
        FieldProblem::NotYesOrNo => "it must be yes or no",
        FieldProblem::TooLong => "it is too long",
    }
}

fn field(name: &str, property: &Value, required: bool) -> (FormField, FieldValues) {
    let text =
        |key: &str| property.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
    let items = property.get("items").filter(|_| kind == "array");
    let options = options(items.unwrap_or(property));
    let labels: Vec<String> = options.iter().map(|(label, _)| label.clone()).collect();
    // A choice that clients cannot show is typed, and checked as well.
    let is_choice = !labels.is_empty() && labels.len() <= MAX_OPTIONS;
    let field_kind = match (kind, text("format")) {
        ("array", _) if is_choice => FieldKind::MultiSelect,
        _ if is_choice => FieldKind::Select,
        ("boolean", _) => FieldKind::Checkbox,
        ("number" | "integer", _) => FieldKind::Number,
        (_, Some("date")) => FieldKind::Date,
        _ => FieldKind::Text,
    };
    let default = property.get("default").filter(|default| !default.is_null()).cloned();
    let shown = |default: &Value| match default {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let hint = default.as_ref().map(shown).or_else(|| text("description").map(str::to_owned));
    let label = text("title").or_else(|| text("description")).unwrap_or(name);
    let field = FormField {
        name: name.to_owned(),
        label: foreign::line(label, MAX_LABEL_CHARS),
        kind: field_kind,
        // A checkbox that must be answered would have to be checked, and a default is an answer.
        required: required && default.is_none() && field_kind != FieldKind::Checkbox,
        options: if is_choice { labels } else { Vec::new() },
        placeholder: hint.map(|hint| foreign::line(&hint, MAX_LABEL_CHARS)),
    };
    let default =
        default.or_else(|| (field_kind == FieldKind::Checkbox && required).then_some(Value::Bool(false)));
    (field, FieldValues { options, is_integer: kind == "integer", default })
}

/// Returns the options of a choice: the text for people and the value.
fn options(property: &Value) -> Vec<(String, Value)> {
    let list = |key: &str| property.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let label = |value: &Value| match value {
        Value::String(text) => foreign::line(text, MAX_LABEL_CHARS),
        other => other.to_string(),
    };
    let titled = ["oneOf", "anyOf"].into_iter().flat_map(list).filter_map(|option| {
        let value = option.get("const")?.clone();
        Some((label(option.get("title").unwrap_or(&value)), value))
    });
    let titled: Vec<(String, Value)> = titled.collect();
    if !titled.is_empty() {
        return titled;
    }
    let names = list("enumNames");
    let values = list("enum").into_iter().enumerate();
    values.map(|(at, value)| (label(names.get(at).unwrap_or(&value)), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: &Value, required: &[&str]) -> ServerForm {
        ServerForm::read(&json!({ "properties": properties, "required": required })).unwrap()
    }

    #[test]
    fn every_type_has_a_field_and_unknown_types_are_texts() {
        let check = |property: Value, kind: FieldKind, options: &[&str]| {
            let form = form(&json!({ "f": property }), &[]);
            let [field] = &form.fields[..] else { panic!("{form:?}") };
            assert_eq!((field.kind, &field.options[..]), (kind, &options.map_to_strings()[..]), "{property}");
        };
        check(json!({"type": "string"}), FieldKind::Text, &[]);
        check(json!({"type": "string", "format": "date"}), FieldKind::Date, &[]);
        check(json!({"type": "string", "format": "uri", "minLength": 3}), FieldKind::Text, &[]);
        check(json!({"type": "integer", "minimum": 1}), FieldKind::Number, &[]);
        check(json!({"type": "boolean"}), FieldKind::Checkbox, &[]);
        check(json!({"enum": ["a", 2]}), FieldKind::Select, &["a", "2"]);
        check(json!({"type": "string", "enum": ["a"], "enumNames": ["A!"]}), FieldKind::Select, &["A!"]);
        check(json!({"oneOf": [{"const": "a", "title": "First"}]}), FieldKind::Select, &["First"]);
        check(json!({"type": "array", "items": {"enum": ["a", "b"]}}), FieldKind::MultiSelect, &["a", "b"]);
        check(json!({"type": "array", "items": {"type": "object"}}), FieldKind::Text, &[]);
        check(json!({"type": "geo"}), FieldKind::Text, &[]);
        check(json!("?"), FieldKind::Text, &[]);
        let many: Vec<String> = (0..300).map(|n| format!("o{n}")).collect();
        check(json!({"enum": many}), FieldKind::Text, &[]);
    }

    trait MapToStrings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl MapToStrings for [&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn answers_become_the_servers_values() {
        let many: Vec<String> = (0..300).map(|n| format!("o{n}")).collect();
        let form = form(
            &json!({
                "name": {"type": "string", "title": "Your name"},
                "count": {"type": "integer"},
                "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
                "tags": {"type": "array", "items": {"anyOf": [{"const": 1, "title": "One"}, {"const": 2, "title": "Two"}]}},
                "gift": {"type": "boolean"},
                "color": {"type": "string", "default": "red"},
                "land": {"enum": many},
            }),
            &["name", "gift", "color"],
        );
        let check = |text: &str, expect: Result<Value, &str>| {
            let answers = form.answers(text).map(Value::Object);
            assert_eq!(
                answers.as_ref().map_err(String::as_str),
                expect.as_ref().map_err(|why| *why),
                "{text}"
            );
        };
        check(
            "Your name: Ada\ncount: 3.0\nsize: small\ntags: one, 2\nland: O7",
            Ok(
                json!({"name": "Ada", "count": 3, "size": "s", "tags": [1, 2], "gift": false, "color": "red", "land": "o7"}),
            ),
        );
        check("Your name: Ada", Ok(json!({"name": "Ada", "gift": false, "color": "red"})));
        check("Your name: Ada\ncount: 3.5", Err("count: it must be a whole number"));
        check("Your name: Ada\nland: Mars", Err("land: it must be one of the options"));
        check(
            "count: many\nsize: huge",
            Err(
                "Your name: an answer is needed; count: it must be a number; size: it must be one of the options",
            ),
        );
        check("go away", Err("the answers could not be read: please write a line for each field"));
    }

    #[test]
    fn a_form_that_cannot_be_shown_is_refused() {
        let properties: Map<String, Value> = (0..17).map(|n| (format!("f{n}"), json!({}))).collect();
        for (properties, why) in [
            (Value::Object(properties), "at most 16 fields"),
            (json!({"__proto__": {}}), "cannot have the name"),
            (json!({"n".repeat(300): {}}), "at most 200 characters"),
        ] {
            let problem = ServerForm::read(&json!({ "properties": properties })).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        for schema in [json!(null), json!([]), json!({"properties": 7}), json!({})] {
            assert!(ServerForm::read(&schema).unwrap().is_empty(), "{schema}");
        }
    }
}
