//! A run's view of a skill. It is read before the run starts, so that the run needs no IO for it and sees one version
//! from beginning to end.

use std::sync::Arc;

/// An enabled skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name: lower-case letters, digits and hyphens. `/name` at the beginning of a message activates it.
    pub name: String,
    /// Its purpose and when to use it, for the model.
    pub about: String,
    /// Sandbox path of its `SKILL.md`.
    pub path: String,
    /// The tools that may be used while it is active; `None` allows all.
    pub tools: Option<Vec<String>>,
    /// Its whole `SKILL.md`.
    pub text: Arc<str>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Callers that may start it.
    pub invocation: SkillInvocation,
    /// Hint for the text after its name, for people, such as `[file] [format]`.
    pub argument_hint: Option<String>,
}

/// Callers that may start a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillInvocation {
    /// Whether the model sees it in its list of skills.
    pub by_model: bool,
    /// Whether people can start it by `/name`.
    pub by_people: bool,
}

impl Default for SkillInvocation {
    fn default() -> Self {
        Self { by_model: true, by_people: true }
    }
}

/// Secrets that a skill needs from its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSecrets {
    /// The secrets.
    pub required: Vec<RequiredSecret>,
    /// Whether they are available once the skill has been read. Otherwise a person must have started the skill by name.
    pub autonomous: bool,
}

/// A secret that a skill needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredSecret {
    /// Its name, and that of the environment variable.
    pub name: String,
    /// Its purpose, for people.
    pub about: Option<String>,
}
