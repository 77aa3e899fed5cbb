//! Asks the users in the chat a question and ends the run. Their answer starts the next run.

use pudu_base::{
    FieldKind, FormField, MAX_OPTIONS, MAX_QUESTION_CHARS, Question, QuestionKind, ToolCx, ToolError,
    ToolOutput, TypedTool, check_fields, clean_options,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum length of an offered answer, in characters.
const MAX_OPTION_CHARS: usize = 300;

pub(crate) struct AskClarification;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The question, in a sentence or two.
    question: String,
    /// The reason for the question.
    clarification_type: QuestionKind,
    /// Background that users need in order to answer. Omit it if the question is clear without them.
    context: Option<String>,
    /// Answers to choose from, a few words each. Users may always answer in their own words.
    #[serde(default)]
    options: Vec<String>,
    /// A form, if you need several facts at once. Use it in place of `options`.
    #[serde(default)]
    fields: Vec<FieldArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Field")]
struct FieldArgs {
    /// Short unique key, such as `start_date`.
    name: String,
    /// The name that users see. By default the key.
    #[serde(default)]
    label: String,
    /// Kind of answer.
    #[serde(default, rename = "type")]
    kind: FieldKind,
    /// Whether users must answer it.
    #[serde(default)]
    required: bool,
    /// Answers of `select` and `multi_select`.
    #[serde(default)]
    options: Vec<String>,
    /// An example or hint, shown in the empty field.
    placeholder: Option<String>,
}

impl TypedTool for AskClarification {
    type Args = Args;
    const NAME: &'static str = "ask_clarification";
    const DESCRIPTION: &'static str = "Asks the users in the chat a question and waits for their answer. \
                                       This call ends your turn, so first do all work that does not depend \
                                       on the answer, and ask all questions at once.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let question = question(args).map_err(ToolError)?;
        // Clients of the API read the question here.
        let text =
            format!("{}\n\nThe question was sent. The next message is the answer.", question.as_text());
        Ok(ToolOutput { text, question: Some(question), ..ToolOutput::default() })
    }
}

fn question(args: Args) -> Result<Question, String> {
    if args.question.trim().is_empty() {
        return Err("the question is empty".to_owned());
    }
    if args.fields.is_empty() {
        check_options(&args.options)?;
    }
    let context = args.context.filter(|context| !context.trim().is_empty());
    let context = context.map(|context| format!("{}\n\n", context.trim())).unwrap_or_default();
    let text = format!("{context}{} {}", icon(args.clarification_type), args.question.trim());
    let fields = form(args.fields)?;
    let options = if fields.is_empty() { clean_options(&args.options) } else { Vec::new() };
    let text = text.chars().take(MAX_QUESTION_CHARS).collect();
    Ok(Question { text, kind: args.clarification_type, options, fields })
}

fn check_options(options: &[String]) -> Result<(), String> {
    if options.len() > MAX_OPTIONS {
        return Err(format!("offer at most {MAX_OPTIONS} options"));
    }
    if options.iter().any(|option| is_longer(option, MAX_OPTION_CHARS)) {
        return Err(format!("an option may have at most {MAX_OPTION_CHARS} characters"));
    }
    Ok(())
}

fn form(fields: Vec<FieldArgs>) -> Result<Vec<FormField>, String> {
    let field = |args: FieldArgs| {
        let FieldArgs { name, label, kind, required, options, placeholder } = args;
        FormField { name, label, kind, required, options, placeholder }
    };
    check_fields(fields.into_iter().map(field).collect())
}

fn icon(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::MissingInfo | QuestionKind::AmbiguousRequirement => "❓",
        QuestionKind::ApproachChoice => "🔀",
        QuestionKind::RiskConfirmation => "⚠️",
        QuestionKind::Suggestion => "💡",
    }
}

fn is_longer(text: &str, chars: usize) -> bool {
    text.chars().nth(chars).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(more: &Value) -> Result<Question, String> {
        let mut args = json!({"question": "Where to?", "clarification_type": "missing_info"});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question(serde_json::from_value(args).map_err(|error| error.to_string())?)
    }

    #[test]
    fn a_form_has_the_fields_that_the_model_describes() {
        let fields = json!([
            {"name": " who ", "required": true, "placeholder": " "},
            {"name": "size", "label": "Size", "type": "select", "options": ["S", " S", "", "M"]},
            {"name": "free", "type": "select"},
            {"name": "odd", "type": "colour", "options": ["red"]},
            {"name": "letter", "type": "file"},
        ]);
        let parsed = asked(&json!({"fields": fields, "options": ["dropped beside a form"]})).unwrap();
        let field = |name: &str, label: &str, kind| FormField {
            name: name.into(),
            label: label.into(),
            kind,
            required: false,
            options: Vec::new(),
            placeholder: None,
        };
        let wanted = vec![
            FormField { required: true, ..field("who", "who", FieldKind::Text) },
            FormField { options: vec!["S".into(), "M".into()], ..field("size", "Size", FieldKind::Select) },
            field("free", "free", FieldKind::Text),
            field("odd", "odd", FieldKind::Text),
            field("letter", "letter", FieldKind::File),
        ];
        assert_eq!(parsed.fields, wanted);
        assert!(parsed.options.is_empty());
    }

    #[test]
    fn a_form_that_cannot_be_shown_is_refused_with_the_reason() {
        let check = |fields: &Value, reason: &str| {
            let problem = asked(&json!({ "fields": fields })).unwrap_err();
            assert!(problem.contains(reason), "{problem}");
        };
        let fields = |count: usize, more: &Value| -> Value {
            let field = |at: usize| {
                let mut field = json!({"name": format!("f{at}"), "type": "select"});
                field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                field
            };
            (0..count).map(field).collect()
        };
        check(&fields(17, &json!({})), "at most 16 fields");
        check(&fields(1, &json!({"name": " "})), "needs a name");
        check(&fields(1, &json!({"name": "__proto__"})), "cannot have the name");
        check(&fields(2, &json!({"name": "same"})), "two fields have the name `same`");
        check(&fields(1, &json!({"label": "é".repeat(201)})), "at most 200 characters");
        let options: Vec<String> = (0..25).map(|at| at.to_string()).collect();
        check(&fields(1, &json!({ "options": options })), "at most 24 options");
        let options: Vec<String> = (0..24).map(|at| format!("{at:0199}")).collect();
        check(&fields(16, &json!({ "options": options })), "at most 16384 bytes");
    }
}
