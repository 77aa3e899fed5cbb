//! A run's view of a skill. It was read before the run starts, so that a run needs no IO for it and sees one
//! version from its beginning to its end.

use std::sync::Arc;

/// A skill that is switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name: small letters, digits and hyphens; `/name` at the beginning of a message activates it.
    pub name: String,
    /// Its purpose and when to use it, for the model.
    pub about: String,
    /// Path of its `SKILL.md`, as the agent knows it.
    pub path: String,
    /// The tools that it may use while it is active; `None` where it does not say, which allows all.
    pub tools: Option<Vec<String>>,
    /// Its whole `SKILL.md`.
    pub text: Arc<str>,
    /// The secrets that it needs.
    pub secrets: SkillSecrets,
    /// Callers that may start it.
    pub invocation: SkillInvocation,
    /// Hint for the text behind its name, for people: `[file] [format]`.
    pub argument_hint: Option<String>,
}

/// Callers that may start a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillInvocation {
    /// Whether the model finds it in its list of skills.
    pub by_model: bool,
    /// Whether people start it by `/name`.
    pub by_people: bool,
}

impl Default for SkillInvocation {
    fn default() -> Self {
        Self { by_model: true, by_people: true }
    }
}

/// Secrets that a skill needs from the person that it works for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSecrets {
    /// The secrets.
    pub required: Vec<RequiredSecret>,
    /// Whether they are given as soon as the skill was read; otherwise only to a person who asked for it by name.
    pub autonomous: bool,
}

/// A secret that a skill needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredSecret {
    /// Its name, which is that of the variable that commands find it in.
    pub name: String,
    /// Its purpose, for people.
    pub about: Option<String>,
}
