//! Names of agents.

use super::error::{AgentError, MAX_NAME_CHARS, NameProblem};

/// Name of the agent that answers by default.
pub const LEAD: &str = "lead_agent";
/// Reserved names: they have another meaning in commands or in the API.
const TAKEN: [&str; 6] = ["check", "default", "lead", "lead-agent", "list", "new"];

/// Normalises a name by DeerFlow's rules.
///
/// # Errors
/// If the name is invalid. No accepted name can lead outside the folder of agents.
pub fn normal(typed: &str) -> Result<String, AgentError> {
    let name = typed.trim().to_lowercase().replace('_', "-");
    let wrong = |why| Err(AgentError::Name { name: typed.chars().take(MAX_NAME_CHARS).collect(), why });
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > MAX_NAME_CHARS {
        return wrong(NameProblem::TooLong);
    }
    if !name.chars().all(fits) || !name.contains(|c: char| c != '-') {
        return wrong(NameProblem::Characters);
    }
    Ok(name)
}

/// Like [`normal`], for a new agent.
pub(super) fn fresh(typed: &str) -> Result<String, AgentError> {
    let name = normal(typed)?;
    match TAKEN.contains(&name.as_str()) {
        true => Err(AgentError::Name { name, why: NameProblem::Taken }),
        false => Ok(name),
    }
}

/// Returns whether a name is the lead agent's.
#[must_use]
pub fn is_lead(name: &str) -> bool {
    matches!(name.trim().to_lowercase().replace('-', "_").as_str(), LEAD | "lead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_and_cannot_leave_the_folder() {
        assert_eq!(normal(" Code_Reviewer ").unwrap(), "code-reviewer");
        for name in ["", " ", "-", "--", "../x", "a/b", "é", ".", "a b", "a\0b", "a.b", &"x".repeat(65)] {
            assert!(matches!(normal(name), Err(AgentError::Name { .. })), "{name:?}");
        }
        for name in ["new", "Default", "lead_agent", "list", "check"] {
            assert!(fresh(name).unwrap_err().to_string().contains("has another meaning"), "{name}");
        }
        assert!(is_lead("Lead-Agent") && is_lead("lead") && !is_lead("leader"));
    }
}
