//! The head of a `SKILL.md`: YAML between two lines `---`, with a few keys that are known.

use pudu_base::{RequiredSecret, SkillSecrets, foreign, is_secret_name};
use serde_json::Value;
use serde_saphyr::{budget, options};

/// Maximum size of the head, in bytes.
const MAX_FRONTMATTER_BYTES: usize = 16 * 1024;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Maximum number of tools named.
const MAX_TOOLS: usize = 64;
/// Maximum number of secrets named.
const MAX_SECRETS: usize = 16;
/// Maximum length of a secret's purpose, in characters.
const MAX_SECRET_ABOUT_CHARS: usize = 200;
/// The keys that a head may have.
const KEYS: [&str; 10] = [
    "name",
    "description",
    "license",
    "allowed-tools",
    "metadata",
    "compatibility",
    "version",
    "author",
    "required-secrets",
    "secrets-autonomous",
];

/// Names that other agents use for pudu's tools, each with pudu's own.
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
    /// Its purpose.
    pub about: String,
    /// Under which terms it may be used.
    pub license: Option<String>,
    /// The tools that it may use; `None` where it does not say.
    pub tools: Option<Vec<String>>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Problems that do not prevent its use, but its installation from an archive.
    pub odd: Vec<String>,
}

impl Front {
    /// Reads the head of a `SKILL.md`.
    ///
    /// # Errors
    /// When the skill cannot be used; the text names the mend.
    pub fn read(text: &str) -> Result<Self, String> {
        let head = head(text)?;
        let budget = budget! { max_depth: 8, max_nodes: 1_000, max_documents: 1 };
        let options = options! { emit_comments: false, with_snippet: false, budget: budget };
        let head: Value = serde_saphyr::from_str_with_options(head, options).map_err(|error| {
            let words = error.to_string();
            format!("its head is not YAML ({words}); text with `: ` or ` #` in it needs quotes")
        })?;
        let Value::Object(head) = head else { return Err("its head has no keys".to_owned()) };
        let text = |key: &str| match head.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(format!("`{key}` is no text; put it in quotes")),
        };
        let name = text("name")?.ok_or("`name` is missing in its head")?;
        check_name(&name)?;
        let about = text("description")?.filter(|about| !about.is_empty());
        let about =
            about.ok_or("`description` is missing in its head: say what it does and when to use it")?;
        let length = about.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            return Err(format!(
                "`description` has {length} characters; {MAX_DESCRIPTION_CHARS} is the most"
            ));
        }
        let tools = head.get("allowed-tools").map(tools).transpose()?;
        let mut odd: Vec<String> = head
            .keys()
            .filter(|key| !KEYS.contains(&key.as_str()))
            .map(|key| format!("`{}` is no key of a skill's head", key.escape_debug()))
            .collect();
        let secrets = secrets(head.get("required-secrets"), &mut odd)?;
        let autonomous = match head.get("secrets-autonomous") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(autonomous)) => *autonomous,
            Some(_) => return Err("`secrets-autonomous` is neither true nor false".to_owned()),
        };
        if about.contains(['<', '>']) {
            odd.push("`description` has angle brackets".to_owned());
        }
        let secrets = SkillSecrets { required: secrets, autonomous };
        Ok(Self { name, about, license: text("license").unwrap_or_default(), tools, secrets, odd })
    }
}

/// Returns what stands between the two lines.
fn head(text: &str) -> Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || "it does not begin with a line `---`, its head, and another line `---`".to_owned();
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
            return Err(format!("its head is longer than {} KiB", MAX_FRONTMATTER_BYTES / 1024));
        }
    }
    Err(missing())
}

/// Returns whether a skill can have a name.
#[must_use]
pub fn is_skill_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Checks a skill's name.
///
/// # Errors
/// When it is none; the text says what a name looks like.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) || hyphens {
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        return Err(format!(
            "`{}` is no name of a skill: it has small letters, digits and single hyphens inside, {MAX_NAME_CHARS} at most",
            shown.escape_debug()
        ));
    }
    Ok(())
}

/// Reads the tools: a list, or text with commas or spaces between them. What stands in brackets behind a tool
/// narrows its arguments elsewhere; here a tool is allowed or not.
fn tools(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "`allowed-tools` is neither a list of names nor text with names".to_owned();
    let typed: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => split(text),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let mut tools: Vec<String> = Vec::new();
    for name in typed {
        let name = name.split('(').next().unwrap_or_default().trim();
        let alias = ALIASES.iter().find(|(other, _)| *other == name).map(|(_, own)| *own);
        let name = alias.unwrap_or(name).to_owned();
        if !name.is_empty() && !tools.contains(&name) {
            tools.push(name);
        }
    }
    if tools.len() > MAX_TOOLS {
        return Err(format!("`allowed-tools` names {} tools; {MAX_TOOLS} is the most", tools.len()));
    }
    Ok(tools)
}

/// Reads the secrets: names, or objects with a name and a description. A name that no secret can have is odd, and nobody
/// is asked for it.
fn secrets(value: Option<&Value>, odd: &mut Vec<String>) -> Result<Vec<RequiredSecret>, String> {
    let wrong =
        || "`required-secrets` is no list of names, or of objects with `name` and `description`".to_owned();
    let items = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong()),
    };
    if items.len() > MAX_SECRETS {
        return Err(format!("`required-secrets` names {} secrets; {MAX_SECRETS} is the most", items.len()));
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
                "`{}` in `required-secrets` is no name that a secret can have",
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

/// Splits at commas and spaces that stand outside of brackets.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn good(text: &str) -> Front {
        Front::read(text).unwrap()
    }

    #[test]
    fn a_head_says_name_purpose_licence_and_tools() {
        let text = "\u{feff}---\r\nname: data-analysis\r\ndescription: \"Charts: from tables\"\r\nlicense: MIT\r\n\
                    allowed-tools: [bash, Read]\r\nmetadata: {a: 1}\r\n---\r\n# Do it\r\n";
        let front = Front {
            name: "data-analysis".into(),
            about: "Charts: from tables".into(),
            license: Some("MIT".into()),
            tools: Some(vec!["bash".into(), "read_file".into()]),
            secrets: SkillSecrets::default(),
            odd: vec![],
        };
        assert_eq!(good(text), front);
        let tools =
            |typed: &str| good(&format!("---\nname: a\ndescription: b\nallowed-tools: {typed}\n---\n")).tools;
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(tools("Bash(git:*, ls), Read  Grep"), names(&["bash", "read_file", "grep"]));
        assert_eq!(tools("[]"), names(&[]));
        assert_eq!(tools(""), names(&[]));
        assert_eq!(good("---\nname: a\ndescription: b\n---\n").tools, None);
    }

    #[test]
    fn secrets_are_names_with_or_without_a_purpose() {
        let head = |lines: &str| Front::read(&format!("---\nname: a\ndescription: b\n{lines}\n---\n"));
        let front = head(
            "required-secrets: [ERP_TOKEN, {name: MAIL_KEY, description: \"Sends\\nmail\"}, ERP_TOKEN, LD_PRELOAD]\nsecrets-autonomous: true",
        )
        .unwrap();
        let secret = |name: &str, about: Option<&str>| RequiredSecret {
            name: name.into(),
            about: about.map(str::to_owned),
        };
        let required = vec![secret("ERP_TOKEN", None), secret("MAIL_KEY", Some("Sends mail"))];
        assert_eq!(front.secrets, SkillSecrets { required, autonomous: true });
        assert_eq!(front.odd, ["`LD_PRELOAD` in `required-secrets` is no name that a secret can have"]);
        let many = format!(
            "required-secrets: [{}]",
            (0..17).map(|n| format!("K{n}")).collect::<Vec<_>>().join(", ")
        );
        for (lines, expect) in [
            ("required-secrets: KEY", "no list of names"),
            ("required-secrets: [1]", "no list of names"),
            ("required-secrets: [{description: x}]", "no list of names"),
            ("secrets-autonomous: maybe", "neither true nor false"),
            (many.as_str(), "16 is the most"),
        ] {
            let error = head(lines).unwrap_err();
            assert!(error.contains(expect), "{lines}: {error}");
        }
    }

    #[test]
    fn what_is_odd_is_told_and_what_is_wrong_has_its_mend() {
        let odd = good("---\nname: a\ndescription: use <b>\nmodel: big\n---\n").odd;
        assert_eq!(odd, ["`model` is no key of a skill's head", "`description` has angle brackets"]);
        let check = |text: &str, expect: &str| {
            let error = Front::read(text).unwrap_err();
            assert!(error.contains(expect), "{text:?}: {error}");
        };
        check("", "does not begin with a line `---`");
        check("# Skill\n", "does not begin with a line `---`");
        check("---\nname: a\n", "does not begin with a line `---`");
        check("---\nname: a\ndescription: when: now\n---\n", "needs quotes");
        check("---\n- a\n---\n", "no keys");
        check("---\ndescription: b\n---\n", "`name` is missing");
        check("---\nname: a\n---\n", "`description` is missing");
        check("---\nname: 1\ndescription: b\n---\n", "`name` is no text");
        check(&format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025)), "1024 is the most");
        check(&format!("---\nname: a\n{}", "#\n".repeat(9_000)), "longer than 16 KiB");
        check("---\nname: a\ndescription: b\nallowed-tools: {a: 1}\n---\n", "neither a list");
        check(&format!("---\na: {}1{}\n---\n", "[".repeat(50), "]".repeat(50)), "not YAML");
        for name in ["", "A", "a_b", "-a", "a-", "a--b", "../a", "ä", &"a".repeat(65)] {
            check(&format!("---\nname: \"{name}\"\ndescription: b\n---\n"), "is no name of a skill");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?([a-z:\\-\\[\\]{}\"' \n]|name: |description: |allowed-tools: ){0,80}(---\n)?") {
            let _ = Front::read(&text);
        }
    }
}
