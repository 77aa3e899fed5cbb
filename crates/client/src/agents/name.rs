//! The names of agents.

use super::error::{AgentError, MAX_NAME_CHARS, NameProblem};

/// Name of the agent that answers if no other is named.
pub const LEAD: &str = "lead_agent";
/// Names with another meaning where agents are chosen, or reserved by the API.
const TAKEN: [&str; 6] = ["check", "default", "lead", "lead-agent", "list", "new"];

/// Brings a name to DeerFlow's form.
///
/// # Errors
/// When it cannot be one: nothing that leaves the folder of the agents passes.
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

/// Like [`normal`], for an agent that is to be made.
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
    fn names_are_brought_to_one_form_and_none_leaves_the_folder() {
        assert_eq!(normal(" Code_Reviewer ").unwrap(), "code-reviewer");
        for name in ["", " ", "-", "--", "../x", "a/b", "é", ".", "a b", "a\0b", "a.b", &"x".repeat(65)] {
            assert!(matches!(normal(name), Err(AgentError::Name { .. })), "{name:?}");
        }
        for name in ["new", "Default", "lead_agent", "list", "check"] {
            assert!(fresh(name).unwrap_err().to_string().contains("means something else"), "{name}");
        }
        assert!(is_lead("Lead-Agent") && is_lead("lead") && !is_lead("leader"));
    }
}
