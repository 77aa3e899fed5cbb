//! Asks the users in the chat, and ends the run: their answer begins the next.

use pudu_base::{Question, ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of offered answers.
const OPTIONS: usize = 24;
/// Maximum length of a text, in characters.
const MAX_TEXT_CHARS: usize = 4_000;
/// Maximum length of an offered answer, in characters.
const MAX_OPTION_CHARS: usize = 300;

pub(crate) struct AskClarification;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The question, in a sentence or two.
    question: String,
    /// Why you ask.
    clarification_type: ClarificationKind,
    /// Facts that people need to answer. Leave it out if the question says it all.
    context: Option<String>,
    /// Answers to choose from, a few words each. People may always answer in their own words.
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
enum ClarificationKind {
    /// Something is not said that you need.
    MissingInfo,
    /// It can be read in more than one way.
    AmbiguousRequirement,
    /// There is more than one good way to do it.
    ApproachChoice,
    /// It may do harm.
    RiskConfirmation,
    /// You propose something.
    Suggestion,
}

impl ClarificationKind {
    fn sign(&self) -> &'static str {
        match self {
            Self::MissingInfo | Self::AmbiguousRequirement => "❓",
            Self::ApproachChoice => "🔀",
            Self::RiskConfirmation => "⚠️",
            Self::Suggestion => "💡",
        }
    }
}

impl TypedTool for AskClarification {
    type Args = Args;
    const NAME: &'static str = "ask_clarification";
    const DESCRIPTION: &'static str = "Asks the people in the chat a question and waits for their answer. Your turn ends with it, \
         so do first whatever does not depend on the answer, and ask everything at once.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.question.trim().is_empty() {
            return Err(ToolError("the question is empty".to_owned()));
        }
        if args.options.len() > OPTIONS {
            return Err(ToolError(format!("offer at most {OPTIONS} options")));
        }
        if args.options.iter().any(|option| option.chars().nth(MAX_OPTION_CHARS).is_some()) {
            return Err(ToolError(format!("an option has at most {MAX_OPTION_CHARS} characters")));
        }
        let context = args.context.filter(|context| !context.trim().is_empty());
        let context = context.map(|context| format!("{}\n\n", context.trim())).unwrap_or_default();
        let text = format!("{context}{} {}", args.clarification_type.sign(), args.question.trim());
        let text = text.chars().take(MAX_TEXT_CHARS).collect();
        let options = args.options.iter().map(|option| option.trim().to_owned());
        let options: Vec<String> = options.filter(|option| !option.is_empty()).collect();
        let question = Some(Question { text, options });
        let text = "The question is asked. The answer is the next message.".to_owned();
        Ok(ToolOutput { text, question, ..ToolOutput::default() })
    }
}
