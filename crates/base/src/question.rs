//! Questions to people: free, with offered answers, or a form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Maximum length of one answer in a form, in bytes.
const MAX_ANSWER_BYTES: usize = 16_000;
/// Maximum length of a question, in characters.
pub const MAX_QUESTION_CHARS: usize = 4_000;
/// Maximum number of offered answers, of a question or a field.
pub const MAX_OPTIONS: usize = 24;
/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 16;
/// Maximum length of a field's name, label, option or hint, in characters.
const MAX_FIELD_CHARS: usize = 200;
/// Maximum size of all fields as JSON, in bytes.
const MAX_FORM_BYTES: usize = 16_384;
/// Names with a meaning of their own in JavaScript, where clients keep the answers by name.
const RESERVED_NAMES: [&str; 13] = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// A question to people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question, in Markdown, without the options and fields.
    pub text: String,
    /// The reason for the question.
    #[serde(default, skip_serializing_if = "QuestionKind::is_default")]
    pub kind: QuestionKind,
    /// Answers to choose from. People may also answer in their own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Fields of a form, if the question is one. Then there are no options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FormField>,
}

// The descriptions of this type and of `FieldKind` are in the schema that the model reads.
/// The reason for a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
pub enum QuestionKind {
    /// Information that you need is missing.
    #[default]
    MissingInfo,
    /// The request is ambiguous.
    AmbiguousRequirement,
    /// There is more than one good approach.
    ApproachChoice,
    /// The action may do harm.
    RiskConfirmation,
    /// You suggest an action.
    Suggestion,
}

impl QuestionKind {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormField {
    /// Key of the answer; unique in the form.
    pub name: String,
    /// The name that people see.
    pub label: String,
    /// Kind of answer.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Whether the form needs an answer here.
    #[serde(default)]
    pub required: bool,
    /// Answers of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// An example or hint, shown while the field is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
}

/// Kind of answer of a field. An unknown kind is a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Several lines of text.
    Textarea,
    /// A number.
    Number,
    /// One of the options.
    Select,
    /// Any of the options.
    MultiSelect,
    /// Yes or no.
    Checkbox,
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A file that users send with their answer.
    File,
    /// One line of text.
    #[default]
    #[serde(other)]
    Text,
}

/// Why an answer does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    /// The field is required and empty.
    Missing,
    /// It is not a number.
    NotNumber,
    /// It is not a date of the calendar.
    NotDate,
    /// It is none of the options.
    NotOption,
    /// It is neither yes nor no.
    NotYesOrNo,
    /// It is longer than an answer may be.
    TooLong,
}

impl Question {
    /// Renders the question with its options and fields as Markdown, for clients that show text only.
    #[must_use]
    pub fn as_text(&self) -> String {
        let options = self.options.iter().cloned();
        let lines = options.chain(self.fields.iter().map(FormField::as_text));
        let lines: Vec<String> = lines.enumerate().map(|(at, line)| format!("{}. {line}", at + 1)).collect();
        if lines.is_empty() { self.text.clone() } else { format!("{}\n\n{}", self.text, lines.join("\n")) }
    }
}

impl FormField {
    /// Renders the field's label and options as one line. A star marks a required field.
    #[must_use]
    pub fn as_text(&self) -> String {
        let star = if self.required { " *" } else { "" };
        let hint = match self.kind {
            FieldKind::Select | FieldKind::MultiSelect => Some(self.options.join(" / ")),
            FieldKind::Date => Some("YYYY-MM-DD".to_owned()),
            _ => self.placeholder.clone(),
        };
        let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
        format!("{}{star}{hint}", self.label)
    }

    /// Checks an answer, given as text, a number, a boolean or a list of texts. Returns it in the form in which the agent gets
    /// it, or `None` for an empty answer.
    ///
    /// # Errors
    ///
    /// The answer does not fit.
    pub fn check(&self, answer: &Value) -> Result<Option<Value>, FieldProblem> {
        let answer = match answer {
            Value::String(text) => Value::from(text.trim()),
            other => other.clone(),
        };
        let is_empty = match &answer {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Bool(yes) => self.kind == FieldKind::Checkbox && self.required && !yes,
            _ => false,
        };
        if is_empty {
            return if self.required { Err(FieldProblem::Missing) } else { Ok(None) };
        }
        if answer.to_string().len() > MAX_ANSWER_BYTES {
            return Err(FieldProblem::TooLong);
        }
        self.read(answer).map(Some)
    }

    fn read(&self, answer: Value) -> Result<Value, FieldProblem> {
        match self.kind {
            FieldKind::Text | FieldKind::Textarea | FieldKind::File => Ok(plain_text(&answer).into()),
            FieldKind::Number => read_number(&answer).ok_or(FieldProblem::NotNumber),
            FieldKind::Date => read_date(&answer).ok_or(FieldProblem::NotDate),
            FieldKind::Checkbox => read_yes_or_no(&answer).map(Value::Bool).ok_or(FieldProblem::NotYesOrNo),
            FieldKind::Select => self.option(&plain_text(&answer)).map(Value::from),
            FieldKind::MultiSelect => {
                let chosen = match answer {
                    Value::Array(list) => list.iter().map(plain_text).collect(),
                    // One option may contain a comma.
                    other if self.option(&plain_text(&other)).is_ok() => vec![plain_text(&other)],
                    other => plain_text(&other)
                        .split([',', ';', '，', '、'])
                        .map(|part| part.trim().to_owned())
                        .collect(),
                };
                chosen
                    .iter()
                    .filter(|one| !one.is_empty())
                    .map(|one| self.option(one).map(Value::from))
                    .collect()
            }
        }
    }

    /// Returns the option that an answer names: by its text in any case, or by its number.
    fn option(&self, answer: &str) -> Result<&str, FieldProblem> {
        let by_number = || self.options.get(answer.parse::<usize>().ok()?.checked_sub(1)?);
        let folded = answer.to_lowercase();
        let exact = self.options.iter().find(|option| *option == answer);
        let found = exact.or_else(|| self.options.iter().find(|option| option.to_lowercase() == folded));
        found.or_else(by_number).map(String::as_str).ok_or(FieldProblem::NotOption)
    }
}

/// Checks the answers of a form, by the names of its fields. An unknown name is ignored.
///
/// # Errors
///
/// The fields whose answers do not fit, by name.
pub fn check_form<'a>(
    fields: &'a [FormField],
    answers: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<(&'a str, FieldProblem)>> {
    let mut checked = Map::new();
    let mut problems = Vec::new();
    for field in fields {
        match field.check(answers.get(&field.name).unwrap_or(&Value::Null)) {
            Ok(Some(answer)) => drop(checked.insert(field.name.clone(), answer)),
            Ok(None) => {}
            Err(problem) => problems.push((field.name.as_str(), problem)),
        }
    }
    if problems.is_empty() { Ok(checked) } else { Err(problems) }
}

/// Renders checked answers as the message that answers the form: a line for each, by label.
#[must_use]
pub fn form_answer(fields: &[FormField], answers: &Map<String, Value>) -> String {
    let line =
        |field: &FormField| Some(format!("{}: {}", field.label, plain_text(answers.get(&field.name)?)));
    fields.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Reads the answers of a form from the message that answers it, by the names of the fields: lines as [`form_answer`]
/// writes them, which may have a number; the JSON that DeerFlow's frontend appends; a line for each field, in order; or,
/// for a form with one field, the whole text. Returns `None` if the message is none of these.
#[must_use]
pub fn read_form_answer(fields: &[FormField], text: &str) -> Option<Map<String, Value>> {
    labelled_answers(fields, text).or_else(|| appended_answers(fields, text)).or_else(|| {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match fields {
            [field] => Some(Map::from_iter([(field.name.clone(), text.trim().into())])),
            _ if lines.len() == fields.len() => {
                let pairs = fields.iter().zip(lines);
                Some(pairs.map(|(field, line)| (field.name.clone(), unnumbered(line).into())).collect())
            }
            _ => None,
        }
    })
}

fn labelled_answers(fields: &[FormField], text: &str) -> Option<Map<String, Value>> {
    let mut answers: Vec<(&FormField, String)> = Vec::new();
    for line in text.lines() {
        let open = fields.iter().filter(|field| !answers.iter().any(|(other, _)| other.name == field.name));
        let labelled_line = open.filter_map(|field| Some((field, labelled(line, &field.label)?))).next();
        match (labelled_line, answers.last_mut()) {
            (Some((field, rest)), _) => answers.push((field, rest.to_owned())),
            (None, Some((_, answer))) => {
                answer.push('\n');
                answer.push_str(line);
            }
            (None, None) => {}
        }
    }
    let pairs = answers.into_iter().map(|(field, answer)| (field.name.clone(), answer.into()));
    let answers: Map<String, Value> = pairs.collect();
    (!answers.is_empty()).then_some(answers)
}

/// Returns the rest of a line behind a label and a colon.
fn labelled<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let rest = unnumbered(line.trim()).get(..label.len()).filter(|start| start.eq_ignore_ascii_case(label));
    let rest = unnumbered(line.trim()).get(rest?.len()..)?.trim_start_matches(['*', ' ']);
    rest.strip_prefix([':', '：']).map(str::trim)
}

/// Returns a line without the number before it.
fn unnumbered(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')']) {
        Some(rest) if rest.len() + 1 < line.len() && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

fn appended_answers(fields: &[FormField], text: &str) -> Option<Map<String, Value>> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let mut found =
        starts.filter_map(|at| serde_json::from_str(text.get(at..)?.trim_end_matches(['`', '\n', ' '])).ok());
    found.find(|answers: &Map<String, Value>| fields.iter().any(|field| answers.contains_key(&field.name)))
}

/// Returns the fields of a form as clients can show them: texts are trimmed, and a choice without options is a text.
///
/// # Errors
/// The reason why the form cannot be shown.
pub fn check_fields(fields: Vec<FormField>) -> Result<Vec<FormField>, String> {
    if fields.len() > MAX_FIELDS {
        return Err(format!("a form has at most {MAX_FIELDS} fields"));
    }
    let fields: Vec<FormField> = fields.into_iter().map(check_field).collect::<Result<_, _>>()?;
    let mut names = HashSet::new();
    if let Some(twice) = fields.iter().find(|field| !names.insert(&field.name)) {
        return Err(format!("two fields have the name `{}`", twice.name));
    }
    let bytes: usize =
        fields.iter().map(|field| serde_json::to_string(field).unwrap_or_default().len()).sum();
    if bytes > MAX_FORM_BYTES {
        return Err(format!("the fields have at most {MAX_FORM_BYTES} bytes together"));
    }
    Ok(fields)
}

fn check_field(field: FormField) -> Result<FormField, String> {
    let name = field.name.trim().to_owned();
    if name.is_empty() {
        return Err("each field needs a name".to_owned());
    }
    if RESERVED_NAMES.contains(&name.as_str()) {
        return Err(format!("a field cannot have the name `{name}`"));
    }
    let label = Some(field.label.trim()).filter(|label| !label.is_empty()).unwrap_or(&name).to_owned();
    let placeholder = field.placeholder.map(|hint| hint.trim().to_owned()).filter(|hint| !hint.is_empty());
    let options = clean_options(&field.options);
    let is_longer = |text: &&String| text.chars().nth(MAX_FIELD_CHARS).is_some();
    let long = [&name, &label].into_iter().chain(&options).chain(&placeholder).find(is_longer);
    if let Some(long) = long {
        let start: String = long.chars().take(40).collect();
        return Err(format!("`{start}…`: a text in a field has at most {MAX_FIELD_CHARS} characters"));
    }
    if options.len() > MAX_OPTIONS {
        return Err(format!("`{name}`: offer at most {MAX_OPTIONS} options"));
    }
    let is_choice = matches!(field.kind, FieldKind::Select | FieldKind::MultiSelect);
    let kind = if is_choice && options.is_empty() { FieldKind::Text } else { field.kind };
    let options = if is_choice { options } else { Vec::new() };
    Ok(FormField { name, label, kind, required: field.required, options, placeholder })
}

/// Trims options, and drops empty and repeated ones.
#[must_use]
pub fn clean_options(options: &[String]) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(options.len());
    for option in options.iter().map(|option| option.trim()) {
        if !option.is_empty() && !unique.iter().any(|known| known == option) {
            unique.push(option.to_owned());
        }
    }
    unique
}

fn plain_text(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(list) => list.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn read_number(answer: &Value) -> Option<Value> {
    if answer.is_number() {
        return Some(answer.clone());
    }
    let text = answer.as_str()?;
    let number: serde_json::Number = match text.parse::<i64>() {
        Ok(whole) => whole.into(),
        Err(_) => serde_json::Number::from_f64(text.parse().ok()?)?,
    };
    Some(number.into())
}

/// Reads a date. A time behind it, as date pickers send it, is cut.
fn read_date(answer: &Value) -> Option<Value> {
    let date: jiff::civil::Date = answer.as_str()?.get(..10)?.parse().ok()?;
    Some(date.to_string().into())
}

fn read_yes_or_no(answer: &Value) -> Option<bool> {
    match answer {
        Value::Bool(yes) => Some(*yes),
        Value::String(text) => match text.to_lowercase().as_str() {
            "yes" | "y" | "true" | "1" | "是" => Some(true),
            "no" | "n" | "false" | "0" | "否" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(kind: FieldKind, required: bool) -> FormField {
        let options = ["Small", "Large, with lid", "42"].map(str::to_owned).to_vec();
        FormField { name: "f".into(), label: "Field".into(), kind, required, options, placeholder: None }
    }

    #[test]
    fn an_answer_is_converted_to_the_type_of_its_field() {
        let check = |kind, answer: Value, wanted: Result<Value, FieldProblem>| {
            let read = field(kind, true).check(&answer).map(Option::unwrap_or_default);
            assert_eq!(read, wanted, "{kind:?} {answer}");
        };
        check(FieldKind::Text, json!("  Ada "), Ok(json!("Ada")));
        check(FieldKind::Text, json!(7), Ok(json!("7")));
        check(FieldKind::Text, json!(" \n"), Err(FieldProblem::Missing));
        check(FieldKind::Text, json!(null), Err(FieldProblem::Missing));
        check(FieldKind::Textarea, json!("a".repeat(20_000)), Err(FieldProblem::TooLong));
        check(FieldKind::Number, json!("42"), Ok(json!(42)));
        check(FieldKind::Number, json!("-1.5"), Ok(json!(-1.5)));
        check(FieldKind::Number, json!(1e3), Ok(json!(1e3)));
        check(FieldKind::Number, json!("NaN"), Err(FieldProblem::NotNumber));
        check(FieldKind::Number, json!("many"), Err(FieldProblem::NotNumber));
        check(FieldKind::Date, json!("2028-02-29"), Ok(json!("2028-02-29")));
        check(FieldKind::Date, json!("2028-02-29T10:00:00Z"), Ok(json!("2028-02-29")));
        check(FieldKind::Date, json!("2027-02-29"), Err(FieldProblem::NotDate));
        check(FieldKind::Date, json!("tomorrow…"), Err(FieldProblem::NotDate));
        check(FieldKind::Select, json!("small"), Ok(json!("Small")));
        check(FieldKind::Select, json!("2"), Ok(json!("Large, with lid")));
        check(FieldKind::Select, json!("42"), Ok(json!("42")));
        check(FieldKind::Select, json!("huge"), Err(FieldProblem::NotOption));
        check(FieldKind::MultiSelect, json!(["Small", "42"]), Ok(json!(["Small", "42"])));
        check(FieldKind::MultiSelect, json!("large, with lid"), Ok(json!(["Large, with lid"])));
        check(FieldKind::MultiSelect, json!("1, 3"), Ok(json!(["Small", "42"])));
        check(FieldKind::MultiSelect, json!([]), Err(FieldProblem::Missing));
        check(FieldKind::MultiSelect, json!(["Small", "huge"]), Err(FieldProblem::NotOption));
        check(FieldKind::Checkbox, json!(true), Ok(json!(true)));
        check(FieldKind::Checkbox, json!("Yes"), Ok(json!(true)));
        check(FieldKind::Checkbox, json!(false), Err(FieldProblem::Missing));
        check(FieldKind::Checkbox, json!("perhaps"), Err(FieldProblem::NotYesOrNo));
        assert_eq!(field(FieldKind::Date, false).check(&json!("")), Ok(None));
        assert_eq!(field(FieldKind::Checkbox, false).check(&json!(false)), Ok(Some(json!(false))));
    }

    #[test]
    fn a_form_reports_each_wrong_field_and_otherwise_makes_one_message() {
        let mut fields = vec![
            field(FieldKind::Text, true),
            field(FieldKind::MultiSelect, false),
            field(FieldKind::Checkbox, false),
        ];
        for (field, name) in fields.iter_mut().zip(["who", "sizes", "gift"]) {
            (field.name, field.label) = (name.to_owned(), name.to_uppercase());
        }
        let answers = |answers: Value| answers.as_object().cloned().unwrap_or_default();
        let wrong = answers(json!({"sizes": ["huge"], "gift": true, "unknown": 1}));
        let problems = vec![("who", FieldProblem::Missing), ("sizes", FieldProblem::NotOption)];
        assert_eq!(check_form(&fields, &wrong), Err(problems));
        let right =
            check_form(&fields, &answers(json!({"who": "Ada", "sizes": "1,3", "gift": "no"}))).unwrap();
        assert_eq!(form_answer(&fields, &right), "WHO: Ada\nSIZES: Small, 42\nGIFT: no");
    }

    #[test]
    fn answers_are_read_from_a_message() {
        let named = |name: &str, label: &str| FormField {
            name: name.into(),
            label: label.into(),
            ..field(FieldKind::Text, true)
        };
        let fields = [named("who", "Full name"), named("why", "Reason")];
        let check = |text: &str, wanted: Option<Value>| {
            assert_eq!(read_form_answer(&fields, text).map(Value::Object), wanted, "{text}");
        };
        let ada = Some(json!({"who": "Ada", "why": "a\nb: c"}));
        check("Full name: Ada\nReason: a\nb: c", ada.clone());
        check("1. full name *: Ada\n2) reason： a\nb: c", ada);
        check("Reason: fun", Some(json!({"why": "fun"})));
        check("Hi!\n\n```json\n{\"who\": \"Ada\", \"why\": 1}\n```", Some(json!({"who": "Ada", "why": 1})));
        check("1. Ada\n\n2. fun", Some(json!({"who": "Ada", "why": "fun"})));
        check("Ada, for fun", None);
        check("", None);
        let [one, _] = &fields;
        let whole = read_form_answer(std::slice::from_ref(one), "Ada\nLovelace");
        assert_eq!(whole.map(Value::Object), Some(json!({"who": "Ada\nLovelace"})));
    }

    #[test]
    fn a_stored_question_without_kind_and_fields_is_readable() {
        let stored: Question = serde_json::from_value(json!({"text": "Which?", "options": ["a"]})).unwrap();
        let wanted = Question { text: "Which?".into(), options: vec!["a".into()], ..Question::default() };
        assert_eq!(stored, wanted);
    }
}
