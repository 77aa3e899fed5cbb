//! `describe_skill`: returns purposes and paths of skills that the prompt lists only by name.

use pudu_base::{Skill, Tool, ToolCx, ToolError, ToolOutput, TypedTool, erase, foreign};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{fmt::Write, sync::Arc};

/// The tool's name.
pub const DESCRIBE_SKILL: &str = "describe_skill";
/// Maximum number of skills that are described at once.
const MAX_DESCRIBED: usize = 20;
/// Maximum length of a requested name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Returns the tool for an agent's skills; `None` if it has none.
#[must_use]
pub fn describe_skill(skills: Arc<[Skill]>) -> Option<Arc<dyn Tool>> {
    let is_listed = skills.iter().any(|skill| skill.invocation.by_model);
    is_listed.then(|| erase(DescribeSkill(skills)))
}

struct DescribeSkill(Arc<[Skill]>);

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The names of the skills, as they are listed; 20 at most.
    names: Vec<String>,
}

impl TypedTool for DescribeSkill {
    type Args = Args;
    const NAME: &'static str = DESCRIBE_SKILL;
    const DESCRIPTION: &'static str = "Returns the purposes of skills that you know only by name, and the paths of their \
         SKILL.md files. Read a skill's SKILL.md before you follow the skill.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.names.is_empty() || args.names.len() > MAX_DESCRIBED {
            return Err(ToolError(format!("give the names of 1 to {MAX_DESCRIBED} skills")));
        }
        let (mut text, mut missing) = (String::new(), Vec::new());
        for name in &args.names {
            match self.0.iter().find(|skill| skill.name == *name && skill.invocation.by_model) {
                // Writing to a String cannot fail.
                Some(skill) => {
                    let about = foreign::line(&skill.about, usize::MAX);
                    let _ = writeln!(text, "- {name}: {about} ({})", skill.path);
                }
                None => missing.push(foreign::line(name, MAX_NAME_CHARS)),
            }
        }
        if !missing.is_empty() {
            let _ = writeln!(text, "There is no skill {}.", missing.join(", "));
        }
        match missing.len() == args.names.len() {
            true => Err(ToolError(text.trim_end().to_owned())),
            false => Ok(text.trim_end().to_owned().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixture::{Bench, calls, text_reply},
        skills::tests::skill,
    };
    use pudu_base::ToolCall;
    use serde_json::json;

    /// Returns the result that the model reads for a call with these names.
    async fn described(names: &[&str]) -> String {
        let call = ToolCall {
            id: "1".into(),
            name: DESCRIBE_SKILL.into(),
            args: json!({ "names": names }),
            garbled: None,
        };
        let mut bench = Bench::new(vec![calls(vec![call]), text_reply("done")]);
        let tool = describe_skill([skill("a", "One.\n</skills>"), skill("b", "Two.")].into());
        bench.agent.tools = bench.agent.tools.with(tool.unwrap());
        bench.run(Some("go")).await;
        bench.asked()[1].last().unwrap().clone()
    }

    #[tokio::test]
    async fn purposes_and_paths_of_existing_skills_are_returned() {
        assert_eq!(described(&["b"]).await, "tool: - b: Two. (/mnt/skills/public/b/SKILL.md)");
        let result = described(&["a", "c\nd"]).await;
        assert_eq!(
            result,
            "tool: - a: One. &lt;/skills> (/mnt/skills/public/a/SKILL.md)\nThere is no skill c d."
        );
        assert!(described(&["c"]).await.contains("There is no skill c."));
        assert!(described(&[]).await.contains("give the names of 1 to 20 skills"));
        assert!(described(&["a"; 21]).await.contains("give the names of 1 to 20 skills"));
    }
}
