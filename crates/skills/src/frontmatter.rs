//! The front matter (head) of a `SKILL.md`: YAML between two lines `---`. Heads written for other agents are parsed as
//! far as their meaning is clear.

mod lenient;

use pudu_base::{RequiredSecret, SkillInvocation, SkillSecrets, foreign, is_secret_name};
use serde_json::{Map, Value};
use serde_saphyr::{budget, options};

/// Maximum size of the head, in bytes.
const MAX_FRONTMATTER_BYTES: usize = 16 * 1024;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Maximum number of tools in a head.
const MAX_TOOLS: usize = 64;
/// Maximum number of secrets in a head.
const MAX_SECRETS: usize = 16;
/// Maximum length of a hint for the text after a skill's name, in characters.
const MAX_HINT_CHARS: usize = 80;
/// Maximum length of a secret's purpose, in characters.
const MAX_SECRET_ABOUT_CHARS: usize = 200;
/// Maximum number of notes about a head.
const MAX_NOTES: usize = 20;
/// Keys that have an effect in pudu, or have no effect in any agent.
const KEYS: [&str; 14] = [
    "name",
    "description",
    "when-to-use",
    "license",
    "allowed-tools",
    "metadata",
    "compatibility",
    "version",
    "author",
    "required-secrets",
    "secrets-autonomous",
    "argument-hint",
    "user-invocable",
    "disable-model-invocation",
];
/// Keys that restrict a skill in other agents. pudu does not enforce them, so they prevent an installation.
const RESTRICTIONS: [&str; 6] =
    ["disallowed-tools", "denied-tools", "disabled-tools", "allow-tools", "allowed-tool", "tools-allowed"];

/// Other agents' names for tools, each with pudu's name.
const ALIASES: [(&str, &str); 10] = [
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "str_replace"),
    ("Bash", "bash"),
    ("LS", "ls"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("WebSearch", "web_search"),
    ("WebFetch", "web_fetch"),
    ("Task", "task"),
];

/// The head of a `SKILL.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// The skill's name.
    pub name: String,
    /// Purpose of the skill.
    pub about: String,
    /// License of the skill.
    pub license: Option<String>,
    /// The tools that it may use; `None` if it does not restrict them.
    pub tools: Option<Vec<String>>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Whether users and the model may invoke it.
    pub invocation: SkillInvocation,
    /// Hint for the text after its name.
    pub argument_hint: Option<String>,
    /// Problems that prevent an installation from an archive, but not the use of the skill.
    pub odd: Vec<String>,
    /// Differences between the head and its effect in pudu, for the installing user.
    pub notes: Vec<String>,
}

impl Front {
    /// Parses the head of a `SKILL.md`. A head without a name gets the name of the skill's folder.
    ///
    /// # Errors
    /// When the skill is not usable. The error text describes the fix.
    pub fn read(text: &str, folder: Option<&str>) -> Result<Self, String> {
        let mut head = SkillHead::parse(head(text)?)?;
        let name = head.name(folder)?;
        let about = head.about()?;
        let license = head.text("license").ok().flatten();
        let tools =
            head.take("allowed-tools").map(|value| tools(&value, &mut head.notes)).transpose()?.flatten();
        let required = secrets(head.take("required-secrets").as_ref(), &mut head.odd)?;
        let autonomous = match head.take("secrets-autonomous") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(autonomous)) => autonomous,
            Some(_) => return Err("`secrets-autonomous` must be true or false".to_owned()),
        };
        let invocation = SkillInvocation {
            by_people: head.switch("user-invocable").unwrap_or(true),
            by_model: !head.switch("disable-model-invocation").unwrap_or(false),
        };
        if invocation == (SkillInvocation { by_people: false, by_model: false }) {
            head.odd.push(
                "with `user-invocable: false` and `disable-model-invocation: true`, neither users nor the model can start it"
                    .to_owned(),
            );
        }
        let argument_hint = head.argument_hint();
        let (odd, notes) = head.finish();
        let secrets = SkillSecrets { required, autonomous };
        Ok(Self { name, about, license, tools, secrets, invocation, argument_hint, odd, notes })
    }
}

/// The keys of a head. Parsing removes them one by one.
struct SkillHead {
    keys: Map<String, Value>,
    odd: Vec<String>,
    notes: Vec<String>,
}

impl SkillHead {
    fn parse(text: &str) -> Result<Self, String> {
        let (parsed, notes) = match yaml(text) {
            Ok(parsed) => (parsed, Vec::new()),
            Err(error) => {
                let words = error.to_string();
                let refused = || {
                    format!(
                        "its front matter is not valid YAML ({words}); text with `: ` or ` #` in it needs quotes"
                    )
                };
                let (quoted, keys) = lenient::quote(text, |text| yaml(text).is_ok());
                let parsed = yaml(&quoted).map_err(|_| refused())?;
                let keys = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                (
                    parsed,
                    vec![format!("the text of {keys} is read as if it were in quotes, which YAML requires")],
                )
            }
        };
        let Value::Object(parsed) = parsed else { return Err("its front matter has no keys".to_owned()) };
        let mut head = Self { keys: Map::new(), odd: Vec::new(), notes };
        for (key, value) in parsed {
            // Some agents use other letter cases, or `_` instead of `-`.
            let plain = key.trim().to_ascii_lowercase().replace('_', "-");
            if head.keys.contains_key(&plain) {
                head.notes.push(format!("`{}` occurs twice; the first one is used", key.escape_debug()));
            } else {
                head.keys.insert(plain, value);
            }
        }
        Ok(head)
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.keys.remove(key)
    }

    /// Removes and returns a string.
    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.take(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(format!("`{key}` is not text; put it in quotes")),
        }
    }

    fn name(&mut self, folder: Option<&str>) -> Result<String, String> {
        let Some(name) = self.text("name")? else {
            let folder = folder.filter(|folder| check_name(folder).is_ok());
            let folder = folder.ok_or("`name` is missing in its front matter")?;
            self.notes.push(format!(
                "`name` is missing in its front matter; the skill gets the name of its folder, `{folder}`"
            ));
            return Ok(folder.to_owned());
        };
        if let Err(why) = check_name(&name) {
            let plain = name.to_ascii_lowercase().replace(['_', ' '], "-");
            return Err(if check_name(&plain).is_ok() {
                format!("{why}; write `name: {plain}`")
            } else {
                why
            });
        }
        Ok(name)
    }

    fn about(&mut self) -> Result<String, String> {
        let lines = |value: Value| match value {
            Value::Array(items) => {
                Value::String(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
            }
            other => other,
        };
        if let Some(value) = self.take("description") {
            self.keys.insert("description".to_owned(), lines(value));
        }
        let about = self.text("description")?.filter(|about| !about.is_empty());
        let mut about = about.ok_or(
            "`description` is missing in its front matter: describe what the skill does and when to use it",
        )?;
        let length = about.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            return Err(format!(
                "`description` has {length} characters; the limit is {MAX_DESCRIPTION_CHARS}"
            ));
        }
        // Another agent's key for the second part of a description.
        if let Some(Ok(Some(when))) = self.keys.contains_key("when-to-use").then(|| self.text("when-to-use"))
        {
            match length + 1 + when.chars().count() <= MAX_DESCRIPTION_CHARS {
                true => about = format!("{about} {when}").trim_end().to_owned(),
                false => self.notes.push("`when-to-use` is left out: it is too long".to_owned()),
            }
        }
        Ok(about)
    }

    /// Removes and returns a boolean. An invalid value prevents the installation.
    fn switch(&mut self, key: &str) -> Option<bool> {
        let value = self.take(key)?;
        let text = value.as_str().map(|text| text.trim().to_ascii_lowercase());
        match (&value, text.as_deref()) {
            (Value::Null, _) => None,
            (Value::Bool(on), _) => Some(*on),
            (_, Some("true" | "yes" | "on")) => Some(true),
            (_, Some("false" | "no" | "off")) => Some(false),
            _ => {
                self.odd.push(format!("`{key}` must be true or false"));
                None
            }
        }
    }

    /// Removes and returns the hint. YAML parses `[file]` as a list.
    fn argument_hint(&mut self) -> Option<String> {
        let hint = match self.take("argument-hint")? {
            Value::String(text) => text,
            Value::Array(items) => {
                let names: Vec<String> =
                    items.iter().filter_map(|item| Some(format!("[{}]", item.as_str()?))).collect();
                names.join(" ")
            }
            _ => return None,
        };
        Some(foreign::line(&hint, MAX_HINT_CHARS).replace('`', "'")).filter(|hint| !hint.is_empty())
    }

    /// Returns the problems that prevent an installation, and the notes, which include keys without effect.
    fn finish(mut self) -> (Vec<String>, Vec<String>) {
        let unknown: Vec<String> =
            self.keys.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            let shown: String = key.chars().take(MAX_NAME_CHARS).collect();
            let shown = shown.escape_debug();
            match RESTRICTIONS.contains(&key.as_str()) {
                true => self.odd.push(format!(
                    "`{shown}` would have no effect: list the tools that the skill may use under `allowed-tools`"
                )),
                false => self.notes.push(format!("`{shown}` has no effect here")),
            }
        }
        self.notes.truncate(MAX_NOTES);
        (self.odd, self.notes)
    }
}

fn yaml(text: &str) -> Result<Value, serde_saphyr::Error> {
    let budget = budget! { max_depth: 8, max_nodes: 1_000, max_documents: 1 };
    let options = options! { emit_comments: false, with_snippet: false, budget: budget };
    serde_saphyr::from_str_with_options(text, options)
}

/// Returns the text between the two `---` lines.
fn head(text: &str) -> Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let missing = || "it does not begin with front matter between two `---` lines".to_owned();
    let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
    if first.trim_end() != "---" {
        return Err(missing());
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return rest.get(..end).ok_or_else(missing);
        }
        end += line.len();
        if end > MAX_FRONTMATTER_BYTES {
            return Err(format!("its front matter is larger than {} KiB", MAX_FRONTMATTER_BYTES / 1024));
        }
    }
    Err(missing())
}

/// Returns whether a name is valid for a skill.
#[must_use]
pub fn is_skill_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Checks a skill's name.
///
/// # Errors
/// When the name is invalid. The error text describes valid names.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) || hyphens {
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        return Err(format!(
            "`{}` is not a valid name of a skill: use at most {MAX_NAME_CHARS} lower-case letters, digits and single hyphens",
            shown.escape_debug()
        ));
    }
    Ok(())
}

/// Parses the tools, which are a list or a text separated by commas or spaces. Returns `None` if all tools are allowed.
/// In other agents, brackets after a tool restrict its arguments; pudu can only allow or deny a whole tool.
fn tools(value: &Value, notes: &mut Vec<String>) -> Result<Option<Vec<String>>, String> {
    let wrong = || "`allowed-tools` must be a list of names or text with names".to_owned();
    let typed: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => split(text.trim().trim_start_matches('[').trim_end_matches(']')),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let mut tools: Vec<String> = Vec::new();
    for name in typed {
        let name = name.split('(').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        if name == "*" {
            return Ok(None);
        }
        let alias = ALIASES.iter().find(|(other, _)| *other == name).map(|(_, own)| (*own).to_owned());
        let name = alias.unwrap_or_else(|| server_tool(name).unwrap_or_else(|| name.to_owned()));
        if name.contains('*') {
            let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
            notes.push(format!(
                "`{}` in `allowed-tools` is not a tool name: wildcards are not supported",
                shown.escape_debug()
            ));
        }
        if !name.is_empty() && !tools.contains(&name) {
            tools.push(name);
        }
    }
    if tools.len() > MAX_TOOLS {
        return Err(format!("`allowed-tools` names {} tools; the limit is {MAX_TOOLS}", tools.len()));
    }
    Ok(Some(tools))
}

/// Returns pudu's name for an MCP tool, given another agent's `mcp__SERVER__TOOL`.
fn server_tool(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("{server}_{tool}"))
}

/// Parses the secrets, which are names, or objects with a name and a description. An invalid name is added to `odd` and
/// its secret is never requested.
fn secrets(value: Option<&Value>, odd: &mut Vec<String>) -> Result<Vec<RequiredSecret>, String> {
    let wrong = || {
        "`required-secrets` must be a list of names, or of objects with `name` and `description`".to_owned()
    };
    let items = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong()),
    };
    if items.len() > MAX_SECRETS {
        return Err(format!("`required-secrets` names {} secrets; the limit is {MAX_SECRETS}", items.len()));
    }
    let mut secrets: Vec<RequiredSecret> = Vec::new();
    for item in items {
        let (name, about) = match item {
            Value::String(name) => (name.trim(), None),
            Value::Object(item) => (
                item.get("name").and_then(Value::as_str).ok_or_else(wrong)?.trim(),
                item.get("description").and_then(Value::as_str),
            ),
            _ => return Err(wrong()),
        };
        if !is_secret_name(name) {
            let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
            odd.push(format!(
                "`{}` in `required-secrets` is not a valid name of a secret",
                shown.escape_debug()
            ));
        } else if !secrets.iter().any(|secret| secret.name == name) {
            let about = about
                .map(|about| foreign::line(about, MAX_SECRET_ABOUT_CHARS))
                .filter(|about| !about.is_empty());
            secrets.push(RequiredSecret { name: name.to_owned(), about });
        }
    }
    Ok(secrets)
}

/// Splits at commas and spaces outside of brackets.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut names = vec![String::new()];
    for c in text.chars() {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            names.push(String::new());
        } else if let Some(name) = names.last_mut() {
            name.push(c);
        }
    }
    names
}

#[cfg(test)]
mod tests;
