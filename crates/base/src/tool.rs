//! The port to a tool, and a simple way to write one.

use crate::{
    BoxFuture, CallHost, CallId, Cut, Decision, Image, Marks, Question, RunEvent, RunId, Sandbox,
    SpendingTally, TaskReport, ThreadId, Update, foreign,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::sync::Arc;

/// A tool as the loop sees it. Authors write a [`TypedTool`] instead.
pub trait Tool: Send + Sync {
    /// Describes the tool to the model and to the loop. It is created once and shared by all requests.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Calls the tool. Dropping the future cancels the call and everything that it started.
    fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Returns a short description of the effect of a call, for its approvers, if its arguments alone do not show the
    /// effect.
    fn note(&self, _args: &Value) -> Option<String> {
        None
    }

    /// Examines a call before people are asked to approve it, without side effects. Returns a text for them, if the
    /// call's arguments alone do not show its effect.
    ///
    /// # Errors
    /// If the call cannot succeed. People are then not asked.
    fn examine<'a>(&'a self, _args: &'a Value) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the author of its results.
    fn origin(&self) -> ResultOrigin {
        ResultOrigin::Pudu
    }

    /// Returns the purpose of a call, as the model describes it to people: one sanitised line.
    fn purpose(&self, _args: &Value) -> Option<String> {
        None
    }
}

/// Author of a tool's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOrigin {
    /// pudu itself, or foreign text that the tool has already framed.
    Pudu,
    /// Files, and the output of programs. The text must stay exactly as it is.
    Files,
    /// Strangers.
    Strangers,
}

/// Name of the argument in which a model explains to people why it calls a tool.
pub const PURPOSE_ARGUMENT: &str = "description";
/// Maximum length of a call's purpose, in characters.
const MAX_PURPOSE_CHARS: usize = 80;

/// Description of a tool for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, unique in a run.
    pub name: String,
    /// Its purpose, for the model.
    #[serde(rename = "about")]
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether a call that a crash interrupted can simply be repeated, because it only reads.
    #[serde(rename = "repeatable")]
    pub idempotent: bool,
}

impl ToolSpec {
    /// Describes a tool whose arguments are a type.
    #[must_use]
    pub fn from_args<T: JsonSchema>(name: &str, about: &str, idempotent: bool) -> Self {
        Self { name: name.to_owned(), description: about.to_owned(), parameters: schema::<T>(), idempotent }
    }
}

/// Context of a tool call.
pub struct ToolCx {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The thread's sandbox.
    pub sandbox: Arc<dyn Sandbox>,
    /// Digests of the files that the agent has read.
    pub marks: Arc<Marks>,
    /// Receives the call's progress.
    pub events: Tell,
    /// The tools that a sub-agent of the call may use; `None` allows all of the agent's tools.
    pub allowed_tools: Option<Arc<[String]>>,
    /// The run's people and model.
    pub host: Arc<dyn CallHost>,
}

/// Maximum number of files sent to people with one answer.
pub const MAX_ARTIFACTS: usize = 20;

/// Callback for the events of a running call.
pub type Tell = Arc<dyn Fn(RunEvent) + Send + Sync>;

/// Output of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The complete text for the model, within the tool's own limit.
    pub text: String,
    /// How the text is shortened if it cannot be stored in a file; `None` keeps the whole text.
    pub cut: Option<Cut>,
    /// Whether there was more than the tool's limit.
    pub partial: bool,
    /// Changes of the thread's state.
    pub updates: Vec<Update>,
    /// A question to people, which ends the run.
    pub question: Option<Question>,
    /// Images among the agent's files, to be shown to the model.
    pub images: Vec<Image>,
    /// Contents of images that are not files yet, to be shown to the model.
    pub attached: Vec<Vec<u8>>,
    /// Spending of the model calls that it made.
    pub spending: SpendingTally,
    /// The approval decisions on calls that it made itself, in order.
    pub decisions: Vec<Decision>,
    /// How the call's sub-agent ended, if it had one.
    pub task: Option<Box<TaskReport>>,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Why a tool failed. The text is for the model, which may correct its call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// A tool as its author writes it: a name, a description, an argument type and a function.
pub trait TypedTool: Send + Sync + 'static {
    /// The arguments; the model sees their schema.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The name.
    const NAME: &'static str;
    /// Description of the tool, for the model.
    const DESCRIPTION: &'static str;
    /// Whether a call that a crash interrupted can simply be repeated.
    const IDEMPOTENT: bool = false;
    /// Author of its results.
    const ORIGIN: ResultOrigin = ResultOrigin::Pudu;
    /// Whether the model may state the purpose of a call for people who watch.
    const HAS_PURPOSE: bool = false;

    /// Returns the description. Override it if the description depends on the configuration.
    fn description(&self) -> String {
        Self::DESCRIPTION.to_owned()
    }

    /// Returns a short description of the effect of a call, for its approvers, if its arguments alone do not show the
    /// effect.
    fn note(&self, _args: &Self::Args) -> Option<String> {
        None
    }

    /// Examines a call before people are asked to approve it: see [`Tool::examine`].
    fn examine(&self, _args: Self::Args) -> impl Future<Output = Result<Option<String>, ToolError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Executes a call.
    fn run(
        &self,
        args: Self::Args,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// Wraps a [`TypedTool`] as a [`Tool`].
pub fn erase<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let mut spec = ToolSpec::from_args::<T::Args>(T::NAME, &tool.description(), T::IDEMPOTENT);
    if T::HAS_PURPOSE {
        add_purpose(&mut spec.parameters);
    }
    Arc::new(Erased { tool, spec: Arc::new(spec) })
}

/// Returns the JSON Schema of a type, without the keys that are useless to models.
fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(map) = schema.as_object_mut() {
        map.remove("$schema");
        map.remove("title");
    }
    schema
}

/// Adds the argument for the purpose of a call. The tool itself never sees it.
fn add_purpose(schema: &mut Value) {
    let about = "Why you do this, in three to eight words for the people who watch, in their language, such as \
                 \"Reading the sales figures\". Give it first.";
    if let Some(arguments) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        arguments.insert(PURPOSE_ARGUMENT.to_owned(), json!({"type": "string", "description": about}));
    }
}

/// Returns the purpose of a call as people see it. Because a model wrote it, it is cut to one short line, and `@` is
/// replaced so that platforms notify no user.
fn purpose(args: &Value) -> Option<String> {
    let line = foreign::line(args.get(PURPOSE_ARGUMENT)?.as_str()?, MAX_PURPOSE_CHARS);
    let line = line.trim_end_matches(['.', '…', '。', ' ']).replace('@', "＠");
    (!line.is_empty()).then_some(line)
}

struct Erased<T> {
    tool: T,
    spec: Arc<ToolSpec>,
}

impl<T: TypedTool> Erased<T> {
    fn read(&self, args: Value) -> Result<T::Args, ToolError> {
        serde_json::from_value(args)
            .map_err(|error| ToolError(format!("the arguments do not fit {}: {error}", T::NAME)))
    }
}

impl<T: TypedTool> Tool for Erased<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = self.read(args)?;
            self.tool.run(args, cx).await
        })
    }

    fn examine<'a>(&'a self, args: &'a Value) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(async move { self.tool.examine(self.read(args.clone())?).await })
    }

    fn note(&self, args: &Value) -> Option<String> {
        serde_json::from_value(args.clone()).ok().and_then(|args| self.tool.note(&args))
    }

    fn origin(&self) -> ResultOrigin {
        T::ORIGIN
    }

    fn purpose(&self, args: &Value) -> Option<String> {
        T::HAS_PURPOSE.then(|| purpose(args)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_one_short_line_that_notifies_no_user() {
        let check = |said: Value, expect: Option<&str>| {
            assert_eq!(purpose(&json!({ "description": said })).as_deref(), expect, "{said}");
        };
        check(json!("Reading the sales figures…"), Some("Reading the sales figures"));
        check(json!("查看销售数据。"), Some("查看销售数据"));
        check(json!(" one\n\ntwo\u{202e} "), Some("one two"));
        check(json!("ask @everyone <system>"), Some("ask ＠everyone &lt;system>"));
        check(json!("x".repeat(200)), Some("x".repeat(80).as_str()));
        check(json!(" … "), None);
        check(json!(7), None);
        assert_eq!(purpose(&json!({})), None);
    }
}
